"""How many rows a run may leave out, and how few it may load."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.bulk.bulk_sources import LoadCounts
from omnigraph.errors import PipelineInvalidError, TooFewRowsError, TooManyRejectedError
from omnigraph.pipelines.config.definition import Target
from omnigraph.pipelines.config.expectations import RejectLimit
from omnigraph.pipelines.run.target_attempt import require_reject_limit
from unit.pipelines.definitions import PEOPLE, read

QUARANTINE = "    on_error: quarantine\n    rejects: bad\n"


def _target(folder: Path, fields: str = "") -> Target:
    (target,) = read(folder, PEOPLE.replace("    map:", f"{fields}    map:")).targets
    return target


@pytest.mark.parametrize(
    ("limit", "rejected", "rows", "is_allowed"),
    [
        (RejectLimit(count=0), 0, 0, True),
        (RejectLimit(count=0), 1, 1000, False),
        (RejectLimit(count=3), 3, 4, True),
        (RejectLimit(count=3), 4, 1000, False),
        (RejectLimit(percent=5), 5, 100, True),
        (RejectLimit(percent=5), 6, 100, False),
        # A run of which nothing is left has not succeeded, whatever is tolerated.
        (RejectLimit(percent=100), 1000, 1000, False),
        (RejectLimit(percent=100), 999, 1000, True),
        (RejectLimit(count=1000), 1000, 1000, False),
    ],
)
def test_a_limit_is_a_number_or_a_share(
    limit: RejectLimit, rejected: int, rows: int, *, is_allowed: bool
) -> None:
    assert limit.allows_rejected(rejected, rows) is is_allowed


def test_a_target_tolerates_a_tenth_unless_it_says_otherwise(tmp_path: Path) -> None:
    target = _target(tmp_path, QUARANTINE)
    require_reject_limit(target, LoadCounts(90, 10, None))
    with pytest.raises(TooManyRejectedError, match="11 of 100 rows were rejected, and at most 10%"):
        require_reject_limit(target, LoadCounts(89, 11, "bad/x.parquet"))
    strict = _target(tmp_path, QUARANTINE + "    max_rejected: 2\n")
    with pytest.raises(TooManyRejectedError) as caught:
        require_reject_limit(strict, LoadCounts(97, 3, "bad/x.parquet"))
    assert (caught.value.rejected, caught.value.rejects) == (3, "bad/x.parquet")
    assert "bad/x.parquet" in str(caught.value.hint)


def test_a_target_may_expect_rows(tmp_path: Path) -> None:
    require_reject_limit(_target(tmp_path), LoadCounts(0, 0, None))
    target = _target(tmp_path, "    min_rows: 10\n")
    require_reject_limit(target, LoadCounts(10, 0, None))
    with pytest.raises(TooFewRowsError, match="would load 9 rows, and 'min_rows' expects 10"):
        require_reject_limit(target, LoadCounts(9, 0, None))


@pytest.mark.parametrize("text", ["5.5%", "5 %", "0", "12"])
def test_limits_are_read(tmp_path: Path, text: str) -> None:
    limit = _target(tmp_path, f'{QUARANTINE}    max_rejected: "{text}"\n').max_rejected
    assert str(limit) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (f"{QUARANTINE}    max_rejected: many\n", "'many' is not a number of rows or a share"),
        (f"{QUARANTINE}    max_rejected: 101%\n", "'101%' is not a number of rows or a share"),
        (f"{QUARANTINE}    max_rejected: -1\n", "'-1' is not a number of rows or a share"),
        ("    max_rejected: 5%\n", "'max_rejected' needs 'on_error: quarantine'"),
        ("    min_rows: -1\n", "'min_rows' expects: integer"),
    ],
)
def test_limits_that_mean_nothing_are_refused(tmp_path: Path, fields: str, message: str) -> None:
    with pytest.raises(PipelineInvalidError, match=message):
        _target(tmp_path, fields)
