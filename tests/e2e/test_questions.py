"""The questions of the guide: their answers are those of SQL on the same data."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "questions.md").read_text()
DATA = ROOT / "examples" / "research" / "research.jsonl"
QUERIES = "\n".join(re.findall(r"^```gq [^\n]*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
NAMES = re.findall(r"^query (\w+)", QUERIES, re.MULTILINE)
SQL = dict(
    re.findall(
        r"^-- (\w+)\n(.*?;)$",
        Path(__file__).with_name("questions.sql").read_text(),
        re.DOTALL | re.MULTILINE,
    )
)
RETRACTED = """query retracted() {
  match {
    $a: Author { orcid: "a00001" }
    $a wrote $p
    $p.status = "retracted"
  }
  return { $p.doi, $a.hIndex }
  order { $p.doi }
}"""
VECTOR = [number % 7 - 3 for number in range(64)]
PARAMS: dict[str, dict[str, Any]] = {
    "busy_countries": {"n": 40},
    "prolific": {"n": 8},
    "with_keywords": {"list": ["log", "tree"]},
    "nearest_papers": {"v": VECTOR},
    "like_this": {"d": "10.1/043"},
    "cited_within_three": {"d": "10.1/120"},
    "parts_of": {"c": "db"},
    "distance": {"x": "10.1/005", "y": "10.1/140"},
    "way": {"x": "10.1/140", "y": "10.1/111"},
    "co_author_steps": {"x": "a00001", "y": "a00044"},
    "future_co_authors": {"x": "a00001"},
    "retract": {"x": "a00001"},
}
# Pages of one result, and what changes the graph: compared in tests of their own.
READS = [name for name in NAMES if name not in {"catalogue", "retract"}]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    schema = re.search(r"^```pg [^\n]*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert schema is not None
    folder = tmp_path_factory.mktemp("research")
    with omnigraph.create(folder / "graph", schema=schema[1], durable=False) as found:
        found.branch().load(DATA, mode="append")
        yield found


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table of each type; edges have their ends in `src` and `dst`."""
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in DATA.read_text().splitlines():
        record = json.loads(line)
        values = record.get("data", {})
        if "edge" in record:
            values = {"src": record["from"], "dst": record["to"], **values}
        rows[record.get("type") or record["edge"]].append(values)
    with duckdb.connect() as connection:
        for name, records in rows.items():
            columns = {column: None for record in records for column in record}
            found = {column: [record.get(column) for record in records] for column in columns}
            connection.register(name, pa.table(found))
        yield connection


def ask_sql(tables: duckdb.DuckDBPyConnection, name: str) -> list[tuple[Any, ...]]:
    used = {key: value for key, value in PARAMS.get(name, {}).items() if f"${key}" in SQL[name]}
    return tables.execute(SQL[name], used).fetchall()


def as_rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(name_nodes, row.values())) for row in found.to_pylist()]


def name_nodes(value: Any) -> Any:
    """A value, with the ids of nodes instead of the nodes of a path or a list."""
    if isinstance(value, dict):
        return name_nodes(value["nodes"])
    if isinstance(value, list) and isinstance(value[0], dict):
        return [node["@id"] for node in value]
    return value


def test_every_question_is_asked_in_sql_too() -> None:
    assert set(SQL) >= set(NAMES)


@pytest.mark.parametrize("name", READS)
def test_a_question_has_the_answer_of_sql(
    graph: Graph, tables: duckdb.DuckDBPyConnection, name: str
) -> None:
    found = as_rows(graph.branch().query(QUERIES, name=name, params=PARAMS.get(name)).to_arrow())
    expected = ask_sql(tables, name)
    assert expected, "the sample data has an answer"
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-6) if is_number_row(other) else row == other


def is_number_row(row: tuple[Any, ...]) -> bool:
    return any(isinstance(value, float) for value in row) and not any(
        isinstance(value, list) for value in row
    )


def test_the_pages_of_the_catalogue_are_the_whole(
    graph: Graph, tables: duckdb.DuckDBPyConnection
) -> None:
    expected = ask_sql(tables, "catalogue")
    found: list[tuple[Any, ...]] = []
    cursor: str | None = None
    while not found or cursor is not None:
        page = graph.branch().query(QUERIES, name="catalogue", params={"cursor": cursor, "n": 40})
        assert page.total == len(expected)
        found += as_rows(page.to_arrow())
        cursor = page.cursor
    assert found == expected


def test_the_papers_of_one_author_are_retracted(
    graph: Graph, tables: duckdb.DuckDBPyConnection
) -> None:
    expected = [doi for (doi,) in ask_sql(tables, "retract")]
    draft = graph.create_branch("retraction")
    changed = draft.mutate(QUERIES, name="retract", params=PARAMS["retract"])
    assert changed.affected_nodes == len(expected) + 1
    ((index,),) = tables.execute("SELECT hIndex FROM author WHERE orcid = 'a00001'").fetchall()
    assert as_rows(draft.query(RETRACTED).to_arrow()) == [
        (doi, (index or 0) + 1) for doi in expected
    ]
