"""What rules expect of their rows, and what happens where it is not met."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from omnigraph.pipelines.ledger.run_ledger import Ledger, Run
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from spark.pipeline_world import SIMPLE, company, defined, entities, loads

pytestmark = pytest.mark.usefixtures("spark")

QUARANTINE = "mode: append\n    on_error: quarantine\n    rejects: bad\n    max_rejected: 50%"
PEOPLE = [{"login": "ada", "age": 36}, {"login": "bo", "age": -1}, {"login": "cy", "age": None}]


def _run(folder: Path, *expectations: str, quarantine: bool = False) -> Run:
    source = folder / "in" / "a.jsonl"
    source.parent.mkdir(exist_ok=True)
    source.write_text("".join(f"{json.dumps(each)}\n" for each in PEOPLE))
    simple = SIMPLE.replace("{handle: login,", "{handle: login, age: cast(age AS int),")
    text = simple.replace("mode: append", QUARANTINE) if quarantine else simple
    lines = "".join(f"\n            - {each}" for each in expectations)
    text = text.replace("- type: Person", f"- type: Person\n          expect:{lines}")
    return run_pipeline(defined(folder, text), RunOptions(wait=lambda _: None))


def test_a_condition_that_is_broken_fails_the_target_and_commits_nothing(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        run = _run(tmp_path, "{that: age >= 0, name: an age}", "{min_rows: 3}")
        (target,) = run.targets
        assert (target.status, target.error_code) == ("failed", "expectation_failed")
        assert target.error is not None
        assert "node:Person: expected an age, found 1 of 3 rows" in target.error
        assert (target.is_retryable, target.attempts, loads(graph)) == (False, 1, [])
        assert run.to_json()["conditions"] == ["BrokenExpectation"]
        found = Ledger.open(f"{tmp_path}/company.omni", run.pipeline).find_run(run.id)
        assert found is not None
        (rule,) = found.targets[0].rules
        assert [(each.found, each.is_met) for each in rule.expectations] == [(1, False), (3, True)]


def test_a_condition_may_reject_rows_or_only_warn(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        run = _run(
            tmp_path,
            "{that: age >= 0, action: reject}",
            "{that: length(handle) > 2, action: warn}",
            "{max_rejected: 50%}",
            quarantine=True,
        )
        (target,) = run.targets
        assert (target.status, target.rejected, target.error) == ("succeeded", 1, None)
        assert entities(graph) == {"Person": ["ada", "cy"]}
        (rule,) = target.rules
        assert (rule.rows, rule.rejected) == (3, 1)
        # Each condition is about all rows that the mapping gave.
        assert [(each.found, each.is_met) for each in rule.expectations] == [
            (1, False),
            (2, False),
            (1, True),
        ]
        assert target.rejects is not None
        (reject,) = pq.read_table(target.rejects).to_pylist()
        assert "Person: expected age >= 0" in reject["reason"]
        assert json.loads(reject["raw"])["login"] == "bo"


@pytest.mark.parametrize(
    ("expectation", "found"),
    [
        ("{min_rows: 4}", "expected at least 4 rows, found 3 of 3 rows"),
        ("{max_rows: 2}", "expected at least 0 and at most 2 rows, found 3 of 3 rows"),
        ("{that: 1 / (age - 36) < 9}", "found 1 of 3 rows"),
    ],
)
def test_numbers_of_rows_and_conditions_without_a_result_are_counted(
    tmp_path: Path, expectation: str, found: str
) -> None:
    with company(tmp_path):
        (target,) = _run(tmp_path, expectation).targets
        assert target.error_code == "expectation_failed"
        assert target.error is not None
        assert found in target.error


def test_rejects_that_the_load_finds_count_for_their_type(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        run = _run(
            tmp_path,
            "{max_rejected: 0, action: warn}",
            "{that: age <> -1, action: reject}",
            quarantine=True,
        )
        (target,) = run.targets
        assert target.status == "succeeded"
        assert [each.name for each in target.rules[0].broken] == [
            "at most 0 rejected",
            "age <> -1",
        ]
        assert len(loads(graph)) == 1


def test_a_condition_over_a_column_that_is_not_there_is_a_problem_of_the_definition(
    tmp_path: Path,
) -> None:
    with company(tmp_path) as graph:
        (target,) = _run(tmp_path, "{that: years > 1}").targets
        assert target.error_code == "pipeline_invalid"
        assert "Person: expect:" in str(target.error)
        assert loads(graph) == []
