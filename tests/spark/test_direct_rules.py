"""Rules that are mapped without Spark give the rows, rejects and places that Spark gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph.errors import UncompiledValueError
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.mapping.arrow_expressions import compile_expression, evaluate
from omnigraph.pipelines.run import target_attempt
from omnigraph.pipelines.run.direct_rules import DirectRules, plan_direct_rules
from omnigraph.pipelines.run.pipeline_run import run_pipeline

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = """
node Person {
  handle: String @key
  name: String?
  age: I32?
  size: F64?
  big: I64?
  ok: Bool?
  day: Date?
  @range(age, 0..150)
}
node Team { slug: String @key  lead: String? }
edge MemberOf: Person -> Team { since: I32?  @key(@src, @dst) }
"""
PIPELINE = """
graphs: {{company: company.omni}}
sources:
  people: {{kind: files, paths: {paths}}}
into:
  - graph: company
    mode: {mode}
    on_error: quarantine
    rejects: bad
    max_rejected: 100%
    map:
      nodes:
        - type: Person
          source: people
          where: "{where}"
          set:
            handle: login
            name: {{template: "{{first}} {{last}}"}}
            age: int(years)
            size: "cast(`height` AS double)"
            big: try_cast(years AS bigint)
            ok: {{value: true}}
            day: {day}
        - {{type: Team, source: people, where: lead = 'yes', set: {{slug: team, lead: login}}}}
      edges:
        - {{type: MemberOf, source: people, from: login, to: team, set: {{since: {{value: 7}}}}}}
"""
WORDS = ["", "a", "x y", '"q"', "ä\\b", "a,b", "tab\there", "two\nlines", "名"]
YEARS = ["", "5", " 7 ", "+8", "-0", "007", "151", "abc", "1.5", "99999999999", "1e3", "0x10"]
HEIGHTS = ["", "1.5", ".5", "1.", "-2e3", " 3 ", "1,5", "abc", "1e400"]
DAYS = ["", "2020-01-31", "2020-02-30", " 1999-12-31 "]


def write_csv(path: Path, seed: int, count: int) -> None:
    """People of whom some are wrong in some way."""
    rng = random.Random(seed)

    def quote(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if text or rng.random() < 0.1 else ""

    lines = [b"login,first,last,years,height,start,team,lead"]
    for number in range(count):
        values = [f"p{number if rng.random() < 0.95 else number - 1}"]
        values += [rng.choice(each) for each in (WORDS, WORDS, YEARS, HEIGHTS, DAYS)]
        values += [f"t{number}", rng.choice(["yes", "yes", "no", ""])]
        line = ",".join(map(quote, values)).encode()
        if rng.random() < 0.04:
            line = rng.choice([b"too,few", line + b",many", line.replace(b"t", b"\xff")])
        lines.append(line)
    path.write_bytes(b"\n".join(lines) + b"\n")


def write_parquet(path: Path, seed: int, count: int) -> None:
    """The same with types, in several row groups."""
    rng = random.Random(seed)
    years = [rng.choice([None, 1, 36, 151, 2**40]) for _ in range(count)]
    table = pa.table(
        {
            "login": [f"p{n if rng.random() < 0.95 else n - 1}" for n in range(count)],
            "first": pa.array([rng.choice([*WORDS, None]) for _ in range(count)]),
            "last": pa.array([rng.choice(WORDS) for _ in range(count)]).dictionary_encode(),
            "years": pa.array(years, pa.int64()),
            "height": pa.array([rng.choice([None, 1.5, 2.0]) for _ in range(count)], pa.float32()),
            "start": pa.array([rng.choice([None, date(2020, 1, 2)]) for _ in range(count)]),
            "team": pa.array([f"t{n}" for n in range(count)], pa.large_string()),
            "lead": [rng.choice(["yes", "no", None]) for _ in range(count)],
            "other": pa.array(range(count), pa.int32()),
        }
    )
    pq.write_table(table, path, row_group_size=97)


@contextmanager
def without_direct_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All rules are frames of Spark."""
    with monkeypatch.context() as patch:
        patch.setattr(target_attempt, "plan_direct_rules", lambda *_: DirectRules())
        yield


def run_once(folder: Path, text: str) -> dict[str, Any]:
    """What a run made of the files of a folder: rows, rejects and counts."""
    folder.mkdir()
    graph = omnigraph.create(str(folder / "company.omni"), schema=SCHEMA, durable=False)
    (folder / "company.yaml").write_text(text)
    (target,) = run_pipeline(read_pipeline(folder / "company.yaml")).targets
    found: dict[str, Any] = {"status": target.status, "error": target.error}
    found |= {"entities": target.entities, "rejected": target.rejected, "read": target.rows_read}
    main = graph.branch()
    found["rows"] = {
        name: sorted(map(str, main.snapshot().to_arrow(name).to_pylist()))
        for name in ("Person", "Team", "MemberOf")
    }
    if target.rejects is not None:
        rejects = pq.read_table(target.rejects).to_pylist()
        found["rejects"] = sorted(str(each).replace(str(folder), "") for each in rejects)
    graph.close()
    return found


def compare_both_ways(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same run without Spark SQL and with it."""
    planned: list[DirectRules] = []

    def plan(*arguments: Any) -> DirectRules:
        planned.append(plan_direct_rules(*arguments))
        return planned[-1]

    with monkeypatch.context() as patch:
        patch.setattr(target_attempt, "plan_direct_rules", plan)
        direct = run_once(folder / "direct", text)
    assert len(planned[0].rules) == 3
    with without_direct_rules(monkeypatch):
        return direct, run_once(folder / "spark", text)


@pytest.mark.parametrize("seed", range(2))
def test_random_csv_files_give_the_same_rows_and_rejects_both_ways(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        write_csv(tmp_path / "in" / f"people {number}.csv", 10 * seed + number, 60)
    where = ["NOT (lead IS NULL OR lead = 'no')", "int(years) > 3"][seed]
    text = PIPELINE.format(
        paths=f'"{tmp_path}/in/*.csv"', mode="merge", where=where, day="cast(start AS date)"
    )
    # The second file has the people of the first: only some of them are not rejected.
    direct, spark = compare_both_ways(tmp_path, text, monkeypatch)
    assert direct == spark
    assert direct["status"] == "succeeded"
    assert len(direct["rejects"]) > 30


def test_random_parquet_files_give_the_same_rows_and_rejects_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        write_parquet(tmp_path / "in" / f"people {number}.parquet", number, 60)
    text = PIPELINE.format(
        paths=f'"{tmp_path}/in/*.parquet"', mode="append", where="team >= 't2'", day="start"
    )
    direct, spark = compare_both_ways(tmp_path, text, monkeypatch)
    assert direct == spark
    assert direct["status"] == "succeeded"
    assert direct["rejects"]


CASTS = [
    *(f"{name}(text)" for name in ("tinyint", "int", "bigint", "double", "float", "boolean")),
    *("date(text)", "cast(text AS string)", "text::smallint", "try_cast(text AS int)"),
    *("concat('a', text, 'b\\n')", "text = 'yes'", "text >= '5'", "int(number)", "string(number)"),
    *("float(number)", "number > 5", "-3", "2.5D", "NOT (text IS NULL) AND number <= 7L"),
    *("text IS NULL OR number = 5", "string(flag)", "double(small)", "smallint(number)", "`text`"),
    *("number = bigint(text)", "bigint(text) = number", "tinyint(number) = smallint(text)"),
    # A word of SQL, and the usual name of an end.
    *("from", "int(from)", "concat(from, text)", "from <> 'yes' AND from IS NOT NULL", "from::int"),
]
TEXTS = [
    *("", " ", "5", " 5\t", "+5", "-5", "- 5", "5-", "005", "128", "-129", "32768", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "1_000", "٣", "5L", "1.0", "0x10", "1e2", "+"),
    *(
        "1e400",
        "-.5",
        ".",
        "1d",
        "nan",
        "NaN",
        "Infinity",
        "-inf",
        "0x1p3",
        "1e",
        "e1",
        "++1",
        "1f",
    ),
    *("true", "T", " yes ", "no", "0", "f", "maybe", "TRUE", "tru", "y", "N", "２"),
    *(
        "2020-02-29",
        "2021-02-29",
        "2020-1-1",
        "2020",
        "0001-01-01",
        "2020-01-01T00:00",
        " 2020-01-01 ",
    ),
    *("9999-12-31", "10000-01-01", "x2020-01-01", "2020-13-01", "2020/01/01", "a'b\"", "ä"),
]


def test_every_cast_has_the_values_and_the_failures_of_spark(spark: SparkSession) -> None:
    numbers = [0, 5, 7, -3, 127, 128, 32768, 2**31, 2**53 + 1, -(2**63), None]
    rows = pa.table(
        {
            "text": [*TEXTS, None],
            "from": [None, *TEXTS],
            "number": pa.array(
                [numbers[n % len(numbers)] for n in range(len(TEXTS) + 1)], pa.int64()
            ),
            "flag": [[True, False, None][n % 3] for n in range(len(TEXTS) + 1)],
            "small": pa.array(
                [[1.5, 0.1, None][n % 3] for n in range(len(TEXTS) + 1)], pa.float32()
            ),
        }
    )
    types = dict(zip(rows.schema.names, rows.schema.types, strict=True))
    frame, unsure = spark.createDataFrame(rows), 0
    for sql in CASTS:
        compiled = compile_expression(sql, types)
        compiled = compiled or compile_expression(sql, types, is_condition=True)
        assert compiled is not None, sql
        tried = f"transform(array(0), i -> {sql})"
        failed = f"try_to_binary(cast(xxhash64({tried}) AS string), 'utf-8') IS NULL"
        value = f"CASE WHEN {failed} THEN NULL ELSE {sql} END AS value"
        wanted = frame.selectExpr(value, f"{failed} AS failed").toArrow()
        for number in range(rows.num_rows):
            one = rows.slice(number, 1).to_batches()[0]
            try:
                found = evaluate(compiled.tree, one)
            except UncompiledValueError:
                unsure += 1
                continue
            is_failed = found.failed is not None and bool(found.failed[0].as_py())
            shown = (sql, one.to_pylist())
            assert is_failed == wanted["failed"][number].as_py(), shown
            if not is_failed:
                assert str(found.values[0].as_py()) == str(wanted["value"][number].as_py()), shown
    assert unsure < len(CASTS) * len(TEXTS) / 10


def test_values_that_only_spark_judges_are_loaded_by_spark(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(
        "login,first,last,years,height,start,team,lead\na,A,B,5,1d,2020-1-1,t,yes\n"
    )
    text = PIPELINE.format(
        paths=tmp_path / "in.csv", mode="append", where="login <> 'x'", day="cast(start AS date)"
    )
    found = run_once(tmp_path / "run", text)
    assert found["entities"] == {"node:Person": 1, "node:Team": 1, "edge:MemberOf": 1}
    assert found["rejected"] == 0
