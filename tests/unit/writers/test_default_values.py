"""Defaults in loads of every kind, in schema changes and in merges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Graph, Text
from omnigraph.errors import LoadError, MigrationUnsupportedError, OmnigraphError
from omnigraph.query.entity_conditions import load_whole_catalog
from omnigraph.schema import accept_schema, format_schema
from omnigraph.schema.accepted_decoder import decode_accepted

SCHEMA = """
node Part {
  code: String @key
  score: I64 = 3
  twice: I64? = score * 2
  at: DateTime = now()
  note: String?
}
node Event { kind: String = "note" next: I64? }
edge Uses: Part -> Part { weight: F64 = 0.5 }
"""
ROWS = "query q() { match { $p: Part } return { $p.code, $p.score, $p.twice } order { $p.code } }"


def created(path: Path, schema: str = SCHEMA) -> Graph:
    return omnigraph.create(str(path / "graph"), schema=schema)


def rows(branch: Branch, text: str = ROWS) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in branch.query(text)]


SOURCES = {
    "named lines": Text(
        '{"type": "Part", "data": {"code": "a"}}\n'
        '{"type": "Part", "data": {"code": "b", "score": 5, "twice": null}}\n'
    ),
    "many named lines": Text(
        '{"type": "Part", "data": {"code": "a"}}\n'
        '{"type": "Part", "data": {"code": "b", "score": 5, "twice": null}}\n'
        + "".join(f'{{"type": "Event", "data": {{"next": {n}}}}}\n' for n in range(200))
        + "".join(
            f'{{"type": "Part", "data": {{"code": "z{n}", "score": 0}}}}\n' for n in range(200)
        )
    ),
    "plain records": [{"code": "a"}, {"code": "b", "score": 5, "twice": None}],
    "plain lines": Text('{"code": "a"}\n{"code": "b", "score": 5, "twice": null}\n'),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["append", "merge", "patch", "overwrite"])
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_load_gives_new_entities_their_defaults(
    tmp_path: Path, source: str, mode: Any, on_error: Any
) -> None:
    main = created(tmp_path).branch("main")
    type_ = "Part" if source.startswith("plain") else None
    main.load(SOURCES[source], type=type_, mode=mode, on_error=on_error)
    assert rows(main)[:2] == [("a", 3, 6), ("b", 5, None)]


@pytest.mark.parametrize("mode", ["append", "merge", "patch", "overwrite"])
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_table_without_a_column_gets_the_default(
    tmp_path: Path, mode: Any, on_error: Any
) -> None:
    main = created(tmp_path).branch("main")
    main.load(pa.table({"code": ["a", "b"]}), type="Part", mode=mode, on_error=on_error)
    edges = pa.table({"from": ["a"], "to": ["b"]})
    main.load(edges, type="Uses", mode=mode, on_error=on_error)
    main.load(pa.table({"next": [1, 2]}), type="Event", mode=mode, on_error=on_error)
    assert rows(main) == [("a", 3, 6), ("b", 3, 6)]
    found = "query q() { match { $a: Part  $a $e:uses $b } return { $e.weight } }"
    assert rows(main, found) == [(0.5,)]
    assert rows(main, "query q() { match { $e: Event } return { $e.kind } }") == [("note",)] * 2


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_entities_that_exist_keep_what_a_load_says_nothing_about(
    tmp_path: Path, on_error: Any
) -> None:
    main = created(tmp_path).branch("main")
    main.load([{"code": "a", "score": 9, "twice": 1}], type="Part", mode="append")
    main.load(pa.table({"code": ["a", "b"]}), type="Part", mode="merge", on_error=on_error)
    assert rows(main) == [("a", 9, 1), ("b", 3, 6)]
    named = Text('{"type": "Part", "data": {"code": "a", "note": "n"}}')
    main.load(named, mode="patch", on_error=on_error)
    assert rows(main) == [("a", 9, 1), ("b", 3, 6)]
    # A record that names its type is whole: what it leaves out is as of a new entity.
    main.load(named, mode="merge", on_error=on_error)
    assert rows(main) == [("a", 3, 6), ("b", 3, 6)]


def test_a_record_whose_default_has_no_value_is_refused_or_left_out(tmp_path: Path) -> None:
    schema = "node Part { code: String @key  n: I64  part: I64? = div(10, n) }"
    main = created(tmp_path, schema).branch("main")
    records = Text(
        '{"type": "Part", "data": {"code": "a", "n": 0}}\n'
        '{"type": "Part", "data": {"code": "b", "n": 5}}\n'
    )
    with pytest.raises(LoadError, match=r"line 1: the default of Part\.part"):
        main.load(records, mode="append")
    assert main.load(records, mode="append", on_error="quarantine").rejected == 1
    more = [{"code": "c", "n": 0}, {"code": "d", "n": 2}]
    with pytest.raises(OmnigraphError, match=r"Part\.part"):
        main.load(more, type="Part", mode="patch")
    assert main.load(more, type="Part", mode="patch", on_error="quarantine").rejected == 1
    text = "query q() { match { $p: Part } return { $p.code, $p.part } order { $p.code } }"
    assert rows(main, text) == [("b", 2), ("d", 5)]


def test_all_entities_of_a_write_have_one_time(tmp_path: Path) -> None:
    main = created(tmp_path).branch("main")
    main.load(pa.table({"code": [str(n) for n in range(100)]}), type="Part", mode="append")
    found = rows(main, "query q() { match { $p: Part } return distinct { $p.at } }")
    assert len(found) == 1


def test_the_accepted_schema_keeps_defaults_under_a_feature() -> None:
    accepted = accept_schema(load_whole_catalog(SCHEMA)).schema
    assert "defaults" in accepted.features
    assert decode_accepted(accepted.to_json()) == accepted


def test_the_formatter_writes_a_default_after_the_type() -> None:
    text = 'node A { b:I64=3  c:[String]? = ["a","b"]@index d: I64=-1 merge counter }'
    assert format_schema(text) == (
        'node A {\n  b: I64 = 3\n  c: [String]? = ["a", "b"] @index\n'
        "  d: I64 = -1 merge counter\n}\n"
    )
    assert format_schema(format_schema(text)) == format_schema(text)


BEFORE = """
node Part { code: String @key  score: I64?  note: String? }
edge Uses: Part -> Part { weight: F64? }
"""
AFTER = """
node Part {
  code: String @key
  score: I64 = 7
  note: String?
  twice: I64 = score * 2
  label: String = upper(code)
  @range(score, 0..9)
}
edge Uses: Part -> Part { weight: F64 = 0.5 }
"""
FILLED = (
    "query q() { match { $p: Part }"
    " return { $p.code, $p.score, $p.twice, $p.label, $p.note } order { $p.code } }"
)


def migrated(path: Path) -> tuple[Graph, Branch]:
    """A graph whose branch `main` has defaults, and `dev` the schema before."""
    graph = created(path, BEFORE)
    main = graph.branch("main")
    main.load([{"code": "a", "score": 2}, {"code": "b"}], type="Part", mode="append")
    main.load([{"from": "a", "to": "b"}], type="Uses", mode="append")
    graph.create_branch("dev")
    main.apply_schema(AFTER)
    return graph, main


def test_a_required_property_with_a_default_is_filled(tmp_path: Path) -> None:
    graph, main = migrated(tmp_path)
    assert rows(main, FILLED) == [("a", 2, 4, "A", None), ("b", 7, 14, "B", None)]
    main.mutate('query q() { insert Part { code: "c" } }')
    assert rows(main, FILLED)[2] == ("c", 7, 14, "C", None)
    before = "query q() { match { $p: Part } return { $p.code, $p.score } order { $p.code } }"
    assert rows(graph.branch("dev"), before) == [("a", 2), ("b", None)]
    assert graph.check().is_healthy


def test_a_fill_that_entities_contradict_names_them(tmp_path: Path) -> None:
    graph, main = migrated(tmp_path)
    head = main.head
    for more, code, entity in (
        ("part: I64 = div(10, score - 7)", "OG-MF-109", "'b'"),
        ("wide: I32 = score * 2147483647", "OG-MF-109", "'a', 'b'"),
        ("kind: enum(x, y) = note", "OG-MF-109", "'a', 'b'"),
        ("one: I64 = 1 @unique", "OG-MF-107", r"'a' \(1\), 'b' \(1\)"),
        ("low: I64 = score * 100\n  @range(low, 0..300)", "OG-MF-107", r"'b' \(700\)"),
    ):
        source = AFTER.replace("label:", f"{more}\n  label:")
        with pytest.raises(MigrationUnsupportedError, match=rf"{code}.*{entity}"):
            main.apply_schema(source)
    assert main.head == head
    assert graph.check().is_healthy


def test_another_default_changes_no_entity(tmp_path: Path) -> None:
    _, main = migrated(tmp_path)
    pins = main.snapshot().view.snapshot.pins
    main.apply_schema(AFTER.replace("= 7", "= 8"))
    main.apply_schema(AFTER.replace(" = 7", ""))
    main.apply_schema(AFTER.replace("note: String?", "note: String? = code"))
    assert main.snapshot().view.snapshot.pins == pins
    assert rows(main, FILLED)[1] == ("b", 7, 14, "B", None)


@pytest.mark.parametrize("target", ["main", "dev"])
def test_a_merge_fills_what_the_side_without_the_default_has(tmp_path: Path, target: str) -> None:
    graph, main = migrated(tmp_path)
    dev = graph.branch("dev")
    dev.mutate(
        'query q() { insert Part { code: "d", note: "d" }'
        ' update Part set { note: "b" } where code = "b" }'
    )
    main.mutate(
        'query q() { insert Part { code: "c" } update Part set { score: 1 } where code = "a" }'
    )
    graph.branch(target).merge(dev if target == "main" else main)
    assert rows(graph.branch(target), FILLED) == [
        ("a", 1, 4, "A", None),
        ("b", 7, 14, "B", "b"),
        ("c", 7, 14, "C", None),
        ("d", 7, 14, "D", "d"),
    ]
    assert graph.check().is_healthy
