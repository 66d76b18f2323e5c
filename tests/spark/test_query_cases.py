"""A few of the `.gqt` cases on Spark; `pytest --arm spark -n0 tests/cases` runs them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from logic.parse import parse_case
from logic.runner import run_case
from logic.spark_arm import SparkArm
from omnigraph.lang.lexer import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[1] / "cases"
CASES = sorted(FOLDER.glob("values/*.gqt"))[::12] + sorted(FOLDER.glob("system_fields/*.gqt"))[::5]


@pytest.mark.smoke
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_gives_what_it_expects_on_spark(
    path: Path, spark: SparkSession, tmp_path: Path
) -> None:
    assert spark is not None
    case = parse_case(path.read_bytes(), name=path.name)
    run_case(case, SparkArm(tmp_path), mode=Mode.STRICT)
