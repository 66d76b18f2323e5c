"""Patches of entities that exist, and of those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Text
from omnigraph.errors import InvalidArgumentError, WriteRefusedError

SCHEMA = """
node Part { code: String @key  size: I64?  note: String?  photo: Blob?  vec: Vector(2)? }
edge Uses: Part -> Part { weight: F64? @key(@src, @dst) }
"""
ROWS = "query q() { match { $p: Part } return { $p.code, $p.size, $p.note } order { $p.code } }"
TABLE = pa.table({"code": ["a", "new", "b"], "size": [7, 8, 9]})
SOURCES: dict[str, tuple[Any, str | None]] = {
    "table": (TABLE, "Part"),
    "records": (TABLE.to_pylist(), "Part"),
    "lines": (
        Text(
            "\n".join(
                f'{{"type": "Part", "data": {{"code": "{code}", "size": {size}}}}}'
                for code, size in (("a", 7), ("new", 8), ("b", 9))
            )
        ),
        None,
    ),
}


@pytest.fixture
def main(tmp_path: Path) -> Branch:
    branch = omnigraph.create(str(tmp_path / "graph"), schema=SCHEMA).branch("main")
    parts = [{"code": each, "size": 1, "note": each, "photo": b"x"} for each in "ab"]
    branch.load(parts, type="Part", mode="append")
    return branch


def rows(branch: Branch) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in branch.query(ROWS)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_patch_inserts_or_skips_what_does_not_exist(
    main: Branch, source: str, on_error: Any
) -> None:
    data, type_ = SOURCES[source]
    patched: Any = {"type": type_, "mode": "patch", "on_error": on_error}
    skipped = main.load(data, missing="skip", **patched)
    assert skipped.nodes == {"Part": 2}
    assert rows(main) == [("a", 7, "a"), ("b", 9, "b")]
    assert main.load(data, **patched).nodes == {"Part": 3}
    assert rows(main) == [("a", 7, "a"), ("b", 9, "b"), ("new", 8, None)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_what_does_not_exist_may_be_an_error(main: Branch, source: str, on_error: Any) -> None:
    data, type_ = SOURCES[source]
    patched: Any = {"type": type_, "mode": "patch", "missing": "error", "on_error": on_error}
    if on_error == "fail":
        head = main.head
        with pytest.raises(WriteRefusedError, match="Part 'new' does not exist") as refused:
            main.load(data, **patched)
        assert [each.entity_id for each in refused.value.violations] == ["new"]
        assert main.head == head
    else:
        assert main.load(data, **patched).rejected == 1
        assert rows(main) == [("a", 7, "a"), ("b", 9, "b")]


def test_edges_and_entities_without_a_key_are_found_by_their_ids(main: Branch) -> None:
    edges = [{"from": "a", "to": "b", "weight": 1.0}]
    assert main.load(edges, type="Uses", mode="patch", missing="skip").edges == {}
    main.load(edges, type="Uses", mode="append")
    more = [*edges, {"from": "b", "to": "a", "weight": 2.0}]
    assert main.load(more, type="Uses", mode="patch", missing="skip").edges == {"Uses": 1}


def test_an_incomplete_row_of_what_does_not_exist_is_skipped(tmp_path: Path) -> None:
    schema = "node Part { code: String @key  size: I64  note: String? }"
    branch = omnigraph.create(str(tmp_path / "graph"), schema=schema).branch("main")
    branch.load([{"code": "a", "size": 1}], type="Part", mode="append")
    notes = pa.table({"code": ["a", "new"], "note": ["x", "y"]})
    with pytest.raises(WriteRefusedError, match="size"):
        branch.load(notes, type="Part", mode="patch")
    branch.load(notes, type="Part", mode="patch", missing="skip")
    assert rows(branch) == [("a", 1, "x")]


def test_only_a_patch_says_what_becomes_of_the_missing(main: Branch) -> None:
    with pytest.raises(InvalidArgumentError, match="missing"):
        main.load(TABLE, type="Part", mode="merge", missing="skip")
