"""What is loaded does not depend on how the caller's session is set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from omnigraph.spark.frame_load import map_columns
from omnigraph.spark.spark_session import get_strict_session
from spark.pipeline_world import SIMPLE, company, defined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = """\
login,years,seen
ada,36,2020-01-02 03:04:05
bo,abc,2020-01-02 03:04:05
cy,9999999999,2020-01-02 03:04:05
di,7,never
ed,,
"""
VALUES = "age: int(years), seenAt: to_timestamp(seen), "
OTHER = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/New_York"}


@pytest.fixture
def lenient(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as somebody may have it who wants nulls for what cannot be."""
    before = {key: str(spark.conf.get(key)) for key in OTHER}
    for key, value in OTHER.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        assert spark.conf.get(key) == OTHER[key]
        spark.conf.set(key, value)


def _loaded(folder: Path) -> tuple[bytes, list[dict[str, Any]]]:
    folder.mkdir()
    (folder / "people.csv").write_text(PEOPLE)
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', "{kind: files, paths: people.csv}")
    text = text.replace("set: {", f"set: {{{VALUES}")
    text = text.replace(
        "mode: append",
        "on_error: quarantine\n    rejects: bad\n    max_rejected: 100%\n    mode: append",
    )
    with company(folder) as graph:
        run = run_pipeline(defined(folder, text))
        assert run.status == "succeeded", run.targets
        (file,) = (folder / "bad").rglob("*.parquet")
        rejects = pq.read_table(file).select(["id", "reason"]).to_pylist()
        return b"".join(graph.branch().export()), rejects


def test_a_pipeline_refuses_the_same_records_whatever_the_session_makes_of_them(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    lines, rejects = _loaded(tmp_path / "strict")
    assert len(rejects) == 3
    assert b"2020-01-02T03:04:05" in lines
    request.getfixturevalue("lenient")
    again, told = _loaded(tmp_path / "lenient")
    assert again == lines
    assert len(told) == len(rejects)


def test_a_mapping_is_refused_where_values_that_cannot_be_become_nulls(
    lenient: SparkSession, tmp_path: Path
) -> None:
    frame = lenient.createDataFrame([("ada", "abc")], "who string, years string")
    schema = "node Person { name: String @key  age: I32? }"
    with omnigraph.create(tmp_path / "g", schema=schema, durable=False) as graph:
        load = graph.spark.load
        with pytest.raises(InvalidArgumentError, match=r"spark\.sql\.ansi\.enabled"):
            load(frame, type="Person", mode="append", mapping={"name": "who", "age": "int(years)"})
        assert graph.branch().count("Person") == 0
        # Names of columns can be had from any session.
        load(frame, type="Person", mode="append", mapping={"name": "who"})
        assert graph.branch().count("Person") == 1


def test_a_session_that_is_strict_already_is_used_as_it_is(
    spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    assert get_strict_session(spark) is spark
    other = request.getfixturevalue("lenient")
    made = get_strict_session(other)
    assert made is not other
    assert get_strict_session(other) is made
    assert made.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize("spelled", ["TRUE", "True"])
def test_how_a_setting_is_spelled_changes_nothing(
    spark: SparkSession, request: pytest.FixtureRequest, spelled: str
) -> None:
    key = "spark.sql.ansi.enabled"
    before = str(spark.conf.get(key))
    request.addfinalizer(lambda: spark.conf.set(key, before))
    spark.conf.set(key, spelled)
    assert get_strict_session(spark) is spark
    frame = spark.createDataFrame([("ada", "36")], "login string, years string")
    made = map_columns(frame, {"name": "login", "age": "int(years)"})
    assert made.columns == ["name", "age"]
