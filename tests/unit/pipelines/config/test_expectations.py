"""Expectations as a definition states them."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import PipelineInvalidError
from omnigraph.pipelines.config.expectations import (
    Expectation,
    RejectLimit,
    RowCondition,
    RowRange,
)
from unit.pipelines.definitions import PEOPLE, read


def _read(folder: Path, expectation: str) -> tuple[Expectation, ...]:
    text = PEOPLE.replace("- type: Person", f"- type: Person\n          expect: [{expectation}]")
    (target,) = read(folder, text).targets
    return target.mapping.rules[0].expectations


def test_an_expectation_is_a_condition_a_number_of_rows_or_a_limit(tmp_path: Path) -> None:
    found = _read(tmp_path, "{that: name <> ''}, {min_rows: 2, name: some}, {max_rejected: 5%}")
    assert [each.check for each in found] == [
        RowCondition("name <> ''"),
        RowRange(2),
        RejectLimit(percent=5),
    ]
    assert [each.name for each in found] == ["name <> ''", "some", "at most 5% rejected"]
    assert {each.action for each in found} == {"fail"}


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        ("{action: warn}", "expects one of 'that'"),
        ("{that: a, min_rows: 1}", "expects one of 'that'"),
        ("{min_rows: 1, action: reject}", "'action: reject' needs 'that'"),
        ("{min_rows: 2, max_rows: 1}", "'max_rows' is less than 'min_rows'"),
        ("{max_rejected: few}", "'few' is not a number of rows"),
        ("{that: a, action: ignore}", "action"),
        ("{thta: a}", "unknown field 'thta'"),
    ],
)
def test_what_an_expectation_cannot_be_is_a_problem(
    tmp_path: Path, expectation: str, problem: str
) -> None:
    with pytest.raises(PipelineInvalidError) as caught:
        _read(tmp_path, expectation)
    assert problem in str(caught.value)
