"""Merges of tables that lack columns: what a table does not have keeps its committed value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.errors import LoadError, WriteRefusedError
from omnigraph.ids import generate_ulid
from omnigraph.writers import committed_values

SCHEMA = """
node Doc {
  slug: String @key
  title: String
  body: String?
  email: String? @unique
  tags: [String]?
  vec: Vector(2)?
  scan: Blob?
}
edge Cites: Doc -> Doc { weight: F64?  note: String? }
"""
READ = "query q() { match { $d: Doc } return { $d.slug, $d.title, $d.body, $d.tags, $d.vec } }"


def doc(slug: str, **more: object) -> dict[str, Any]:
    data = {"slug": slug, "title": f"T{slug}", "body": f"B{slug}", "email": f"{slug}@x"}
    kept = {"tags": ["t", slug], "vec": [1.0, 2.0], "scan": "base64:iVBORw0KGgo="}
    return {"type": "Doc", "data": data | kept | more}


@pytest.fixture(params=["at once", "in units"])
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a load is made: in memory, or as a bulk load."""
    return {} if request.param == "at once" else {"on_error": "quarantine"}


@pytest.fixture
def main() -> Iterator[Branch]:
    """Three documents with everything, and an edge."""
    with omnigraph.create(f"memory://{generate_ulid()}", schema=SCHEMA, actor="ada") as graph:
        branch = graph.branch()
        cites = {"edge": "Cites", "from": "a", "to": "b", "data": {"weight": 1.5, "note": "n"}}
        branch.load([doc("a"), doc("b"), doc("c"), cites], mode="append")
        yield branch


def docs(branch: Branch) -> dict[str, dict[str, Any]]:
    rows = branch.query(READ).to_pylist()
    return {row["d.slug"]: {name[2:]: value for name, value in row.items()} for row in rows}


def lines(branch: Branch) -> set[bytes]:
    return set(b"".join(branch.export()).splitlines())


def test_a_table_of_a_snapshot_loads_back_with_nothing_lost(
    main: Branch, engine: dict[str, Any]
) -> None:
    before, snapshot = lines(main), main.snapshot()
    for name in ("Doc", "Cites"):
        main.load(snapshot.to_arrow(name), type=name, mode="merge", **engine)
    assert lines(main) == before


def test_a_table_with_blobs_is_a_copy_of_its_type(main: Branch, tmp_path: Path) -> None:
    pq.write_table(main.snapshot().to_arrow("Doc", blobs=True), tmp_path / "docs.parquet")
    with omnigraph.create(f"memory://{generate_ulid()}", schema=SCHEMA, actor="ada") as other:
        other.branch().load(tmp_path / "docs.parquet", type="Doc", mode="append")
        copied = {line for line in lines(main) if b'"type":"Doc"' in line}
        assert lines(other.branch()) == copied
        assert len(copied) == 3


def test_only_the_columns_of_a_table_change(main: Branch, engine: dict[str, Any]) -> None:
    table = pa.table({"slug": ["b", "new"], "title": ["changed", "New"]})
    main.load(table, type="Doc", mode="merge", **engine)
    found = docs(main)
    assert found["b"] == docs(main)["a"] | {
        "slug": "b", "title": "changed", "body": "Bb", "tags": ["t", "b"]
    }  # fmt: skip
    assert found["new"] == {
        "slug": "new", "title": "New", "body": None, "tags": None, "vec": None
    }  # fmt: skip
    assert main.blob("node", "Doc", "b", "scan").read() == b"\x89PNG\r\n\x1a\n"


def test_a_null_in_a_column_is_a_value(main: Branch, engine: dict[str, Any]) -> None:
    table = pa.table({"slug": ["b"], "body": pa.array([None], pa.string())})
    main.load(table, type="Doc", mode="merge", **engine)
    assert docs(main)["b"]["body"] is None
    assert docs(main)["b"]["title"] == "Tb"


def test_a_required_column_may_be_absent_for_entities_that_exist(
    main: Branch, engine: dict[str, Any]
) -> None:
    main.load(pa.table({"slug": ["b"], "body": ["x"]}), type="Doc", mode="merge", **engine)
    assert (docs(main)["b"]["title"], docs(main)["b"]["body"]) == ("Tb", "x")


def test_a_new_entity_needs_its_required_values(main: Branch) -> None:
    table = pa.table({"slug": ["b", "new"], "body": ["x", "y"]})
    with pytest.raises(WriteRefusedError, match=r"row 2: .*non-nullable property 'title'"):
        main.load(table, type="Doc", mode="merge")
    made = main.load(table, type="Doc", mode="merge", on_error="quarantine")
    assert (made.nodes, made.rejected) == ({"Doc": 1}, 1)
    assert docs(main)["b"]["body"] == "x"


def test_a_key_cannot_be_absent(main: Branch) -> None:
    table = pa.table({"@id": ["a"], "title": ["x"]})
    with pytest.raises(LoadError, match=r"property 'slug' .* no such column"):
        main.load(table, type="Doc", mode="merge")


def test_kept_values_are_held_against_the_rules(
    main: Branch, engine: dict[str, Any], tmp_path: Path
) -> None:
    # Both entities are written, so that what is committed of `a` says nothing about its address.
    pq.write_table(pa.table({"slug": ["c"], "email": ["a@x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"slug": ["a"], "title": ["new"]}), tmp_path / "2.parquet")
    if engine:
        assert main.load(tmp_path, type="Doc", mode="merge", **engine).rejected
    else:
        with pytest.raises(WriteRefusedError, match="@unique"):
            main.load(tmp_path, type="Doc", mode="merge")
    assert main.graph.check().problems == ()


@pytest.mark.parametrize("name", ["part.csv", "part.parquet"])
def test_files_of_one_load_may_have_different_columns(
    main: Branch, engine: dict[str, Any], tmp_path: Path, name: str
) -> None:
    parts = {"1": {"slug": ["a"], "title": ["first"]}, "2": {"slug": ["b"], "body": ["second"]}}
    for number, columns in parts.items():
        path = tmp_path / f"{number}-{name}"
        if name.endswith("csv"):
            path.write_text(
                f"{','.join(columns)}\n{','.join(each[0] for each in columns.values())}"
            )
        else:
            pq.write_table(pa.table(columns), path)
    main.load(tmp_path, type="Doc", mode="merge", **engine)
    found = docs(main)
    assert (found["a"]["title"], found["a"]["body"]) == ("first", "Ba")
    assert (found["b"]["title"], found["b"]["body"]) == ("Tb", "second")


def test_edges_are_patched_by_their_ids(main: Branch, engine: dict[str, Any]) -> None:
    edges = main.snapshot().to_arrow("Cites").select(["@id", "@src", "@dst"])
    heavier = edges.append_column("weight", pa.array([7.0]))
    main.load(heavier, type="Cites", mode="merge", **engine)
    (edge,) = main.snapshot().to_arrow("Cites").to_pylist()
    assert (edge["weight"], edge["note"], main.count("Cites")) == (7.0, "n", 1)


def test_two_columns_for_one_end_are_refused(main: Branch) -> None:
    table = pa.table({"from": ["a"], "@src": ["a"], "to": ["b"]})
    with pytest.raises(LoadError, match="the source stands both in column 'from' and in"):
        main.load(table, type="Cites", mode="append")


def test_other_modes_write_null_for_an_absent_column(main: Branch, engine: dict[str, Any]) -> None:
    table = pa.table({"slug": ["a"], "title": ["alone"]})
    main.mutate("query m() { delete Cites where weight > 0.0 }")
    main.load(table, type="Doc", mode="overwrite", **engine)
    assert docs(main) == {
        "a": {"slug": "a", "title": "alone", "body": None, "tags": None, "vec": None}
    }


def test_a_record_is_whole(main: Branch) -> None:
    main.load([{"type": "Doc", "data": {"slug": "a", "title": "x"}}], mode="merge")
    assert docs(main)["a"] == {"slug": "a", "title": "x", "body": None, "tags": None, "vec": None}


def test_kept_values_come_in_parts(
    main: Branch, engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_values, "_PART_BYTES", 700)
    slugs = [f"s{number:03}" for number in range(300)]
    main.load([doc(slug) for slug in slugs], mode="append")
    mixed = [each for number, slug in enumerate(slugs) for each in (slug, f"n{number}")]
    main.load(pa.table({"slug": mixed, "title": mixed}), type="Doc", mode="merge", **engine)
    found = docs(main)
    assert all(found[slug]["body"] == f"B{slug}" for slug in slugs)
    assert all(found[slug]["title"] == slug for slug in mixed)
    assert all(found[f"n{number}"]["body"] is None for number in range(300))
    assert main.graph.check().problems == ()


# ---- records that name their type ----


def test_a_patch_of_typed_records_changes_what_they_mention(
    main: Branch, engine: dict[str, Any]
) -> None:
    before = docs(main)
    records = [
        {"type": "Doc", "data": {"slug": "a", "title": "changed"}},
        {"type": "Doc", "data": {"slug": "b", "body": None, "vec": [3.0, 4.0]}},
        {"type": "Doc", "data": {"slug": "c"}},
        {"type": "Doc", "data": {"slug": "new", "title": "New"}},
    ]
    text = "\n".join(map(json.dumps, records))
    main.load(omnigraph.Text(text), mode="patch", **engine)
    found = docs(main)
    assert found["a"] == before["a"] | {"title": "changed"}
    assert found["b"] == before["b"] | {"body": None, "vec": [3.0, 4.0]}
    assert found["c"] == before["c"]
    assert (found["new"]["title"], found["new"]["tags"]) == ("New", None)
    assert main.blob("node", "Doc", "b", "scan").read() == b"\x89PNG\r\n\x1a\n"


def test_many_records_of_a_patch_are_told_apart_by_their_members(
    main: Branch, engine: dict[str, Any]
) -> None:
    # So many lines of a block are read by Arrow, which shows no absent member.
    names = [f"n{number:03}" for number in range(300)]
    main.load([doc(name) for name in names], mode="append")
    before = docs(main)
    patches: list[dict[str, Any]] = [
        {"slug": name, **({"body": None} if number % 3 else {"title": '"body": no'})}
        for number, name in enumerate(names)
    ]
    text = "\n".join(json.dumps({"type": "Doc", "data": each}) for each in patches)
    main.load(omnigraph.Text(text), mode="patch", **engine)
    expected = before | {each["slug"]: before[each["slug"]] | each for each in patches}
    assert docs(main) == expected


def test_a_patch_does_not_take_an_id_twice(main: Branch) -> None:
    edge = main.query("query q() { match { $a: Doc $a $e:cites $b } return { $e.@id } }")
    entity_id = edge.to_pylist()[0]["e.@id"]
    same = {"edge": "Cites", "id": entity_id, "from": "a", "to": "b"}
    main.load([same | {"data": {"note": "m"}}], mode="patch")
    assert any(b'"note":"m","weight":1.5' in line for line in lines(main))
    with pytest.raises(WriteRefusedError, match="is there twice"):
        main.load([same | {"data": {"note": "o"}}, same | {"data": {"weight": 2}}], mode="patch")
