"""Definitions whose expressions Spark reads before anything runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from omnigraph.errors import SparkMissingError
from omnigraph.pipelines.config.definition_validator import (
    LazySparkSession,
    ValidationReport,
    validate_definition,
)
from spark.pipeline_world import SCHEMA

pytestmark = pytest.mark.usefixtures("spark")

HEAD = """\
graphs: {company: {uri: company.omni, schema: company.pg}}
"""


def _checked(folder: Path, text: str, *, spark: LazySparkSession | None = None) -> ValidationReport:
    (folder / "company.pg").write_text(SCHEMA)
    path = folder / "people.yaml"
    path.write_text(HEAD + text)
    return validate_definition(path, spark)


def _told(found: ValidationReport) -> list[tuple[int, int, str]]:
    return [(each.line, each.column, each.message) for each in found.problems]


EVERY_KIND = """\
schedule: every day
source: {kind: files, paths: people.jsonl, columns: "login string, years string"}
retries: 3
into:
  - graph: company
    mode: replace
    map:
      nodes:
        - type: Persn
          set: {handle: "login ++ ("}
        - type: Person
          where: lowr(login) = 'x'
          set:
            handle: logn
            name: upper(login)
            levle: "'junior'"
            level: "'junior'"
            age: years
        - type: Team
          set: {slug: "lower(login", name: [a]}
      edges:
        - type: MemberOf
          from: login
          too: login
"""


@pytest.mark.smoke
def test_every_kind_of_mistake_is_told_at_once_by_its_place(tmp_path: Path) -> None:
    found = _checked(tmp_path, EVERY_KIND)
    told = _told(found)
    assert [(line, column) for line, column, _ in told] == sorted(
        (line, column) for line, column, _ in told
    )
    wanted = [
        (2, 1, "'every day' is not a schedule"),
        (4, 1, "pipeline: unknown field 'retries'"),
        (7, 11, "target: 'replace' is not a value of mode"),
        (10, 11, "the schema has no node type 'Persn'"),
        (11, 25, "'login ++ (' is not an expression: Syntax error at or near end of input"),
        (13, 11, "'lowr(login) = 'x'' is not an expression: there is no function `lowr`"),
        (15, 21, "Person.handle: A column, variable, or function parameter with name `logn`"),
        (17, 13, "Person has no property 'levle'"),
        (19, 18, "Person.age: expects I32?, the expression gives string"),
        (21, 23, "'lower(login' is not an expression: Syntax error at or near end of input"),
        (21, 44, "'name' is not a value"),
        (23, 11, "edge: 'to' is missing"),
        (25, 11, "edge: unknown field 'too'"),
    ]
    assert len(told) == len(wanted), told
    for (line, column, message), (at_line, at_column, start) in zip(told, wanted, strict=True):
        assert (line, column) == (at_line, at_column)
        assert message.startswith(start), message
    assert str(found.problems[0]).startswith(f"{tmp_path}/people.yaml:2:1: ")


@pytest.mark.smoke
def test_what_is_mended_of_all_that_was_told_leaves_nothing(tmp_path: Path) -> None:
    mended = (
        EVERY_KIND.replace("every day", '"0 4 * * *"')
        .replace("retries: 3\n", "")
        .replace("replace", "merge")
        .replace("Persn", "Team")
        .replace('handle: "login ++ ("', "slug: login, name: login")
        .replace("lowr", "lower")
        .replace("logn", "login")
        .replace("            levle: \"'junior'\"\n", "")
        .replace("age: years", "age: int(years)")
        .replace('"lower(login", name: [a]', "lower(login), name: login")
        .replace("too", "to")
    )
    assert _told(_checked(tmp_path, mended)) == []


MAPPED = """\
source: SOURCE
into:
  - graph: company
    map:
      nodes:
        - type: Team
          set: {slug: SLUG, name: {template: "the {title}"}}
"""


def _with(source: str, slug: str = "code") -> str:
    return MAPPED.replace("SOURCE", source).replace("SLUG", slug)


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("{kind: files, paths: teams.csv}", True),
        ("{kind: files, paths: teams.parquet}", True),
        ("{kind: files, paths: teams.jsonl}", False),
        ("{kind: files, paths: teams.jsonl, columns: 'code string, title string'}", True),
        ("{kind: http, url: 'http://127.0.0.1:1'}", False),
        ("{kind: http, url: 'http://127.0.0.1:1', columns: 'code string, title string'}", True),
        ("{kind: kafka, servers: 'h:1', topics: t, columns: 'code int, title string'}", True),
        ("{kind: postgres, url: '${NO_SUCH_SECRET}', table: t}", False),
    ],
)
def test_columns_are_checked_wherever_they_are_known(
    tmp_path: Path, source: str, known: bool
) -> None:
    (tmp_path / "teams.csv").write_text("code,title\na,A\n")
    (tmp_path / "teams.jsonl").write_text('{"code": "a", "title": "A"}\n')
    pq.write_table(pa.table({"code": ["a"], "title": ["A"]}), tmp_path / "teams.parquet")
    text = _with(source, "string(code)")
    assert _told(_checked(tmp_path, text)) == []
    told = _told(_checked(tmp_path, text.replace("(code)", "(cod)").replace("{title}", "{tile}")))
    assert [(line, column) for line, column, _ in told] == ([(8, 23), (8, 42)] if known else [])


def test_a_rule_that_does_not_say_its_source_is_told_that_alone(tmp_path: Path) -> None:
    sources = """\
sources:
  a: {kind: files, paths: a.jsonl, columns: "x string"}
  b: {kind: files, paths: b.jsonl, columns: "code string, title string"}
"""
    text = MAPPED.replace("source: SOURCE\n", sources).replace("SLUG", "code")
    ((line, _, message),) = _told(_checked(tmp_path, text))
    assert (line, message) == (9, "Team: say which source it is from: a, b")
    named = text.replace("- type: Team", "- type: Team\n          source: b")
    assert _told(_checked(tmp_path, named)) == []
    assert len(_told(_checked(tmp_path, named.replace("source: b", "source: a")))) == 2


def test_columns_that_are_none_are_told_where_they_are_declared(tmp_path: Path) -> None:
    source = "{kind: files, paths: x.jsonl, columns: 'code strng'}"
    ((line, column, message),) = _told(_checked(tmp_path, _with(source)))
    assert (line, column) == (2, 39)
    assert message == 'these are not columns: Unsupported data type "STRNG"'


def test_a_mapping_without_expressions_over_unknown_columns_starts_no_spark(tmp_path: Path) -> None:
    def never() -> SparkSession:
        raise AssertionError

    session = LazySparkSession(never)
    found = _checked(tmp_path, _with("{kind: files, paths: x.jsonl}"), spark=session)
    assert (found.problems, found.remarks) == ((), ())


def test_without_spark_a_note_says_what_was_not_checked(tmp_path: Path) -> None:
    def missing() -> None:
        raise SparkMissingError

    text = _with("{kind: files, paths: x.jsonl}", "lower(")
    found = _checked(tmp_path, text, spark=LazySparkSession(missing))  # type: ignore[arg-type]  # it raises
    assert found.problems == ()
    assert found.remarks[0].startswith("expressions are not checked: ")


def test_spark_says_nothing_of_it_on_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(_told(_checked(tmp_path, EVERY_KIND))) > 1
    assert capfd.readouterr().err == ""
    assert logging.getLogger("SQLQueryContextLogger").level < logging.CRITICAL


def test_files_that_are_not_there_yet_are_a_note(tmp_path: Path) -> None:
    found = _checked(tmp_path, _with("{kind: files, paths: later.csv}"))
    assert found.problems == ()
    assert found.remarks == (
        f"columns of source 'source' are not known: {tmp_path}/later.csv: no such file",
    )
