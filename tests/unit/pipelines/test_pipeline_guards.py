from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.bulk_sources import LocateOrigins, TableSource
from omnigraph.errors import LoadError, StorageError
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.mapping.mapping_sql import build_steps, is_column_name
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.writers.inputs.input_tables import REFUSED
from unit.pipelines.definitions import PEOPLE, catalog, read, with_map

SCHEMA = "node Person { handle: String @key  age: I32? }"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("login", True),
        (" a.b.`c d` ", True),
        ("int(a)", False),
        ("a + b", False),
        ("a[0]", False),
        ("'a'", False),
    ],
)
def test_only_the_name_of_a_value_cannot_fail(sql: str, expected: bool) -> None:
    assert is_column_name(sql) is expected


def test_only_expressions_that_can_fail_are_tried(tmp_path: Path) -> None:
    rules = """
    nodes:
      - type: Person
        explode: [items as item, "from_json(item.x, 'array<int>') as n"]
        chunk: {text: body, words: 4, overlap: 1}
        set:
          handle: login
          name: {template: "{item.first} {upper(last)}"}
          level: {value: senior}
          age: int(years)
          embedding: {embed: body}
    edges:
      - {type: Knows, from: a, to: lower(b)}
    """
    person, knows = (
        build_steps(rule, catalog())
        for rule in read(tmp_path, with_map(rules)).targets[0].mapping.rules
    )
    assert {column.name: column.can_fail for column in person.columns} == {
        "handle": False,
        "name": True,
        "level": False,
        "age": True,
        "embedding": False,
    }
    assert [step.can_fail for step in person.expansions] == [False, True, False, False]
    assert [column.can_fail for column in knows.columns] == [False, True]


def _marked() -> pa.Table:
    why = {"property": "age", "message": "Person.age: no number", "record": '{"age":"x"}'}
    return pa.table(
        {
            "handle": ["ada", "bo", "cy"],
            "age": pa.array([1, None, 3], pa.int32()),
            REFUSED: [None, why, None],
        }
    )


class _Made(TableSource):
    """Rows of people that were made of records, which nobody finds again."""

    @property
    def locate(self) -> LocateOrigins | None:
        return lambda _: {}


def _people() -> _Made:
    return _Made(_marked().to_reader(), "Person")


def test_a_row_that_says_why_it_is_refused_is_refused(tmp_path: Path) -> None:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as graph:
        main = graph.branch()
        with pytest.raises(LoadError) as caught:
            main.load(_people(), mode="append")
        (violation,) = caught.value.violations
        assert violation.message == 'Person.age: no number: {"age":"x"}'
        assert (violation.property, caught.value.retryable) == ("age", False)
        result = main.load(
            _people(), mode="append", on_error="quarantine", rejects=tmp_path / "bad"
        )
        assert (result.rejected, main.count("Person")) == (1, 2)
        assert result.rejects is not None
        (row,) = pq.read_table(result.rejects).to_pylist()
        assert (row["raw"], row["property"], row["id"]) == ('{"age":"x"}', "age", "bo")


def test_files_on_an_s3_that_does_not_answer_fail_a_run_that_is_in_the_ledger(
    tmp_path: Path,
) -> None:
    options = (
        "{aws_endpoint: 'http://127.0.0.1:1', aws_access_key_id: '${ID}', aws_region: r,"
        " aws_secret_access_key: '${ID}', allow_http: 'true'}"
    )
    source = f"{{kind: files, paths: s3://none/x.csv, options: {options}}}"
    text = PEOPLE.replace("{kind: files, paths: people.jsonl}", source)
    text = text.replace("handle: login", "handle: login, age: n").partition("        - type")[0]
    text += "        - {type: Person, set: {handle: login}}\n"
    with omnigraph.create(tmp_path / "company.omni", schema=SCHEMA) as graph:
        before = graph.branch().head.id
        with pytest.raises(StorageError) as caught:
            run_pipeline(read(tmp_path, text), RunOptions(environment={"ID": "x"}))
        assert caught.value.retryable
        assert graph.branch().head.id == before
    (run,) = Ledger.open(str(tmp_path / "company.omni"), "people").list_runs()
    assert (run.status, run.error) == ("failed", caught.value.message)
