"""The reader of `examples`, which has nothing of ours, reads what we read."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from golden.golden_archive import unpack
from omnigraph import Graph
from omnigraph.storage.objects import layout

EXAMPLES = Path(__file__).parents[2] / "examples"
READER = EXAMPLES / "read_graph.py"
LINES_MAX = 200


def _load_reader() -> Any:  # a script without types
    spec = importlib.util.spec_from_file_location("read_graph", READER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reader = _load_reader()


def test_the_reader_is_short_and_imports_nothing_of_ours() -> None:
    text = READER.read_text()
    assert len(text.splitlines()) <= LINES_MAX
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    libraries = {name.split(".")[0] for name in imported} - sys.stdlib_module_names
    assert libraries == {"lance", "pyarrow"}


@pytest.mark.parametrize("name", ["format-1", "format-2"])
def test_it_reads_the_golden_stores(name: str, tmp_path: Path) -> None:
    store = unpack(name, tmp_path)
    with omnigraph.open(store) as graph:
        assert _count_compared(graph, store) >= 16


def test_it_reads_blobs(tmp_path: Path) -> None:
    store = unpack("format-2", tmp_path)
    rows = reader.StoredGraph(store).entities("main", "Document").to_pylist()
    assert {row["id"]: row["scan"] for row in rows} == {
        "d1": bytes(range(256)) * 40,
        "d2": b"",
        "d3": None,
    }


def test_it_reads_the_company_through_its_migration(tmp_path: Path) -> None:
    company = EXAMPLES / "company"
    store = tmp_path / "company.omni"
    with omnigraph.create(store, schema=(company / "company.pg").read_text()) as graph:
        main = graph.branch()
        main.load(company / "company.jsonl", mode="append")
        graph.tag("founding")
        graph.create_branch("hires").load(company / "hires.jsonl", mode="merge")
        main.apply_schema((company / "company_next.pg").read_text())
        main.merge("hires")
        assert _count_compared(graph, store) >= 15


def test_it_folds_records_that_hold_the_pins_of_touched_tables(tmp_path: Path) -> None:
    schema = "".join(f"node T{number} {{ name: String @key }}\n" for number in range(66))
    store = tmp_path / "wide.omni"
    with omnigraph.create(store, schema=schema) as graph:
        main = graph.branch()
        for number in range(3):
            main.load([{"type": f"T{number}", "data": {"name": "x"}}], mode="append")
        side = graph.create_branch("side")
        side.load([{"type": "T1", "data": {"name": "y"}}], mode="append")
        main.apply_schema(schema.replace("node T1 {", 'node First @rename_from("T1") {'))
        record = json.loads((store / layout.build_record_path("main.0", 4)).read_bytes())
        assert record["partial"]
        assert _count_compared(graph, store) == 2 * 66


def test_it_prints_names_and_entities(tmp_path: Path) -> None:
    store = unpack("format-1", tmp_path)
    run = [sys.executable, str(READER), str(store)]
    names = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "tag v1: edge:Knows, edge:LivesIn, node:Person, node:Place\n" in names
    rows = subprocess.run([*run, "main", "Place"], capture_output=True, text=True, check=True)
    assert rows.stdout == '{"id": "Oslo", "name": "Oslo"}\n'


def test_it_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    store = unpack("format-2", tmp_path)
    (store / layout.FORMAT).write_text('{"format": 2, "features": ["paged-pins"]}')
    with pytest.raises(ValueError, match="needs a newer reader"):
        reader.StoredGraph(store)


def _count_compared(graph: Graph, store: Path) -> int:
    """Compare every type at every branch and tag; how many tables were compared."""
    stored = reader.StoredGraph(store)
    names = [*graph.branches(), *(tag.name for tag in graph.tags())]
    assert sorted(stored.names()) == sorted(names)
    compared = 0
    for name in names:
        snapshot = graph.snapshot(name)
        digest, _ = stored.snapshot(name)
        for type_key in stored.types(digest):
            type_name = type_key.partition(":")[2]
            ours = snapshot.to_arrow(type_name)
            theirs = stored.entities(name, type_name)
            assert _sort_rows(theirs, ours.column_names) == _sort_rows(ours, ours.column_names)
            compared += 1
        assert len(stored.types(digest)) == len(snapshot.tables())
    return compared


def _sort_rows(table: pa.Table, columns: list[str]) -> list[dict[str, object]]:
    """The rows of the columns that both have: blobs are compared on their own."""
    ends = {"id": "@id", "source": "@src", "target": "@dst"}
    renamed = table.rename_columns([ends.get(name, name) for name in table.column_names])
    rows: list[dict[str, object]] = renamed.select(columns).sort_by("@id").to_pylist()
    return rows
