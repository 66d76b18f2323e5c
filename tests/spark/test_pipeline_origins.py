"""Which files and columns records come from, and that their numbers lead back to them alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from omnigraph.bulk.bulk_sources import OriginRecord
from omnigraph.errors import OmnigraphError, PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config.definition import FeedSource, FileSource
from omnigraph.pipelines.mapping.mapping_frames import build_frames
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.stream_run import stream_pipeline
from omnigraph.pipelines.run.target_attempt import catalog_of
from omnigraph.pipelines.sources import SourceState, open_source, read_source_state
from omnigraph.pipelines.sources.provenance import OpenSource
from omnigraph.pipelines.sources.source_dispatch import read_header_frame
from omnigraph.writers.inputs.input_tables import ORIGIN
from spark.pipeline_world import SIMPLE, company, defined, entities, logins

pytestmark = pytest.mark.usefixtures("spark")

# Names that mean other files too, or none, to whoever takes them for patterns.
NAMES = ["d[1]", "d1", "a{b,c}", "ab", "b*", "bb", "q?", "qq", "s\\t", "p q", "p%20q"]


def _records(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _table(path: Path, name: str) -> None:
    pq.write_table(pa.table({"login": [name]}), str(path))


def _text(path: Path, name: str) -> None:
    path.write_text(f'login\n"{name}"\n')


WRITERS = {
    "json": lambda path, name: _records(path, [{"login": name}]),
    "csv": _text,
    "parquet": _table,
}


@pytest.mark.parametrize("format_", list(WRITERS))
def test_files_whose_names_look_like_patterns_are_read_once(
    tmp_path: Path, spark: SparkSession, format_: str
) -> None:
    folder = tmp_path / "in[1]"
    folder.mkdir()
    for name in NAMES:
        WRITERS[format_](folder / f"{name}.{format_}", name)
    source = FileSource((str(folder),))
    with open_source(source, read_source_state(source), spark) as records:
        assert sorted(row.login for row in records.collect()) == sorted(NAMES)


def test_a_header_is_that_of_the_file_and_not_of_one_that_its_name_means(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "d[1].csv").write_text("mine\n1\n")
    (tmp_path / "d1.csv").write_text("other\n1\n")
    source = FileSource((str(tmp_path / "d[1].csv"),))
    assert "mine" in read_header_frame(source, read_source_state(source).listing, spark).columns


def test_a_file_that_spark_does_not_read_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    _records(tmp_path / "_a.jsonl", [{"login": "ada"}])
    _records(tmp_path / "b.jsonl", [{"login": "bo"}])
    source = FileSource(
        (str(tmp_path / "_a.jsonl"), str(tmp_path / "b.jsonl")), columns="login string"
    )
    with (
        pytest.raises(SourceRefusedError, match=r"_a\.jsonl$") as caught,
        open_source(source, read_source_state(source), spark),
    ):
        raise AssertionError("a record was lost")
    assert "begins with '_'" in (caught.value.hint or "")


def test_a_folder_whose_name_looks_like_a_pattern_is_streamed(tmp_path: Path) -> None:
    for folder, name in (("in[1]", "ada"), ("in1", "bo")):
        (tmp_path / folder).mkdir()
        _records(tmp_path / folder / "a.jsonl", [{"login": name}])
    text = SIMPLE.replace("in/*.jsonl", "in[1]")
    with company(tmp_path) as graph:
        stream_pipeline(defined(tmp_path, text), RunOptions(), is_available_now=True)
        assert entities(graph) == {"Person": ["ada"]}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("replace('a(*)b', 'zz', login)", "a(*)b"),
        ("to_json(struct(1 AS one, *))", '{"one":1,"login":"ada"}'),
        ("to_json(struct(struct(*) AS all, login))", '{"all":{"login":"ada"},"login":"ada"}'),
        ("to_json(struct(length(login) * 2 AS n, *))", '{"n":6,"login":"ada"}'),
    ],
)
def test_a_star_is_the_columns_of_a_record_and_a_text_is_what_it_says(
    tmp_path: Path, sql: str, expected: str
) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    with company(tmp_path) as graph:
        text = SIMPLE.replace("name: login", f'name: "{sql}"')
        (target,) = run_pipeline(defined(tmp_path, text)).targets
        assert target.error is None
        rows = graph.branch("main").query("query q() { match { $p: Person } return { $p.name } }")
        assert rows.to_pylist() == [{"p.name": expected}]


def test_words_of_a_chunk_are_no_column_of_a_record(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    rule = 'chunk: {text: login, words: 3}\n          set: {name: "to_json(struct(*))", '
    with company(tmp_path) as graph:
        text = SIMPLE.replace("set: {", rule).replace("name: login, ", "")
        (target,) = run_pipeline(defined(tmp_path, text)).targets
        assert target.error is None
        rows = graph.branch("main").query("query q() { match { $p: Person } return { $p.name } }")
        (row,) = rows.to_pylist()
        assert set(json.loads(row["p.name"])) == {"login", "chunk"}


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("name: login", "name: to_json(struct(* EXCEPT (login)))"),
        ("set: {", "where: '*'\n          set: {"),
        ("set: {", "explode: '* as x'\n          set: {"),
    ],
)
def test_a_star_that_no_names_can_stand_for_is_refused_where_it_is(
    tmp_path: Path, spark: SparkSession, line: str, other: str
) -> None:
    mapped = defined(tmp_path, SIMPLE.replace(line, other)).targets[0].mapping
    records = _numbered(spark, [("ada", 1, 1)])
    with company(tmp_path) as graph, pytest.raises(PipelineInvalidError) as caught:
        build_frames(mapped, catalog_of(graph.branch("main")), {"source": records}, mode="append")
    told = str(caught.value)
    assert "a star" in told
    assert "names of the columns" in told
    assert "__origin" not in told


def _numbered(spark: SparkSession, rows: list[tuple[str, int, int]]) -> DataFrame:
    schema = f"login string, {PART} bigint, {ROW} bigint"
    return spark.createDataFrame(rows, schema).coalesce(1)


def test_equal_rows_have_the_same_record_in_whatever_order_they_come(
    tmp_path: Path, spark: SparkSession
) -> None:
    text = SIMPLE.replace("- type: Person", "- type: Person\n          distinct: true")
    mapped = defined(tmp_path, text).targets[0].mapping
    equal = [("ada", 7, 0), ("ada", 3, 0), ("ada", 5, 0)]
    found = set()
    with company(tmp_path) as graph:
        catalog = catalog_of(graph.branch("main"))
        for order in permutations(equal):
            records = _numbered(spark, list(order))
            ((_, rows),) = build_frames(mapped, catalog, {"source": records}, mode="append")
            (row,) = rows.collect()
            found.add((row[ORIGIN]["part"], row[ORIGIN]["row"]))
    assert found == {(3, 0)}


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, found in before.items():
            spark.conf.unset(name) if found is None else spark.conf.set(name, found)


FILES, FILE_BYTES, MANY = 12, 2_000, 6
SMALL = {"spark.sql.files.openCostInBytes": "1", "spark.sql.leafNodeDefaultParallelism": "2"}


def _same_sized(folder: Path) -> Path:
    """Files of one record each, but for one with many; answers that."""
    for number in range(FILES):
        rows = [{"login": f"p{n}"} for n in range(50)] if number == MANY else []
        text = "".join(json.dumps(row) + "\n" for row in rows)
        filled = {"login": "x" * (FILE_BYTES - len(text) - len('{"login": ""}\n'))}
        (folder / f"{number:02}.jsonl").write_text(text + json.dumps(filled) + "\n")
    return folder / f"{MANY:02}.jsonl"


@contextmanager
def _numbers_of_p5(folder: Path, spark: SparkSession) -> Iterator[tuple[OpenSource, Any]]:
    source = FileSource((str(folder),), columns="login string")
    found = read_source_state(source)
    with _set(spark, SMALL), open_source(source, found, spark) as records:
        (row,) = records.where("login = 'p5'").select(PART, ROW).collect()
        yield OpenSource.from_records("people", source, found, records), (row[PART], row[ROW])


def test_a_record_is_found_again_when_executors_came_meanwhile(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = _same_sized(tmp_path)
    with _numbers_of_p5(tmp_path, spark) as (origins, numbers):
        # As many partitions are wanted as there are cores.
        spark.conf.set("spark.sql.leafNodeDefaultParallelism", "3")
        ((_, found),) = origins.locate([numbers])
    assert found == OriginRecord(f"{path} line 6", str(path), 6, '{"login":"p5"}')


def test_no_other_record_is_found_when_files_are_cut_differently(
    tmp_path: Path, spark: SparkSession
) -> None:
    _same_sized(tmp_path)
    name = "spark.sql.files.maxPartitionBytes"
    with _numbers_of_p5(tmp_path, spark) as (origins, numbers):
        # Four files in a partition, with a byte that opening each of them costs.
        with _set(spark, {name: str(4 * (FILE_BYTES + 1))}):
            assert list(origins.locate([numbers])) == []
        ((_, found),) = origins.locate([numbers])
    assert found.text == '{"login":"p5"}'


def test_settings_of_a_session_are_as_before_behind_the_last_source(
    tmp_path: Path, spark: SparkSession
) -> None:
    name = "spark.sql.files.minPartitionNum"
    _records(tmp_path / "a.jsonl", [{"login": "ada"}])
    source = FileSource((str(tmp_path),))
    before = spark.conf.getAll
    with open_source(source, read_source_state(source), spark):
        with open_source(source, read_source_state(source), spark):
            held = spark.conf.get(name)
            assert held is not None
        assert spark.conf.get(name) == held
    assert spark.conf.getAll == before
    with _set(spark, {name: "7"}), open_source(source, read_source_state(source), spark):
        assert spark.conf.get(name) == "7"


def test_lines_that_hold_arrays_are_not_counted_as_records(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('[{"login":"a"},{"login":"b"}]\n[]\n{"login":"c"}\n{"login":"d"}\n')
    source = FileSource((str(path),), columns="login string")
    found = read_source_state(source)
    with open_source(source, found, spark) as records:
        origins = OpenSource.from_records("people", source, found, records)
        rows = records.select(PART, ROW).collect()
        places = [
            each.location for _, each in origins.locate([(row[PART], row[ROW]) for row in rows])
        ]
    assert places == [f"{path} record {number}" for number in (1, 2, 3, 4)]


def test_records_that_cannot_be_read_again_are_an_error_of_their_source(
    spark: SparkSession,
) -> None:
    source = FeedSource("a.omni")
    origins = OpenSource.from_records(
        "people", source, SourceState(None), _numbered(spark, [("ada", 1, 1)])
    )
    with pytest.raises(OmnigraphError, match=r"source 'people'.*commit"):
        list(origins.locate([(1, 1)]))
