"""Which entities may have changed between two views, as the records between them tell it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
import places
from omnigraph import Branch, Graph, LoadModeName
from omnigraph.changes.change_candidates import collect_writes, find_candidates
from omnigraph.changes.row_comparison import compare_rows
from omnigraph.changes.rows_by_id import fetch_rows
from omnigraph.changes.type_difference import Op, are_copies_shared, compute_difference
from omnigraph.changes.type_pairs import ColumnPair, pair_types
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning import Lineage
from omnigraph.versioning.change_sets import INLINE_IDS_MAX

SCHEMA = "node Person { name: String @key  age: I32? }\nnode City { name: String @key }\n"
PERSON = TypeKey(TypeKind.NODE, "Person")
BULK = 100_000


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph without entities."""
    with omnigraph.create(places.fresh_uri(), schema=SCHEMA) as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


@pytest.fixture
def lineage(graph: Graph) -> Lineage:
    """How its commits descend from each other."""
    return graph._session.resources.lineage


def _load(branch: Branch, names: range, mode: LoadModeName = "append", age: int = 1) -> None:
    rows = {"name": [f"p{n:06}" for n in names], "age": pa.repeat(pa.scalar(age), len(names))}
    branch.load(pa.table(rows), mode=mode, type="Person")


def _touched(branch: Branch, lineage: Lineage, seq: int) -> dict[str, tuple[int, bool]]:
    snapshot = branch.snapshot()
    records = lineage.read_between(snapshot.at, seq)
    found = collect_writes(records, lineage.log.objects, snapshot.view.tables)
    return {path: (len(each.ids), each.is_all) for path, each in found.items()}


def _path(branch: Branch, type_key: str) -> str:
    return branch.snapshot().at.pins[type_key].path


def test_ids_are_found_in_records_in_files_beside_them_and_in_data_files(
    main: Branch, lineage: Lineage
) -> None:
    _load(main, range(10))
    _load(main, range(5, 10 + INLINE_IDS_MAX), "merge")
    assert _touched(main, lineage, 0) == {_path(main, "node:Person"): (10 + INLINE_IDS_MAX, False)}
    seq = main.snapshot().version
    _load(main, range(5_000, 5_000 + BULK))
    main.optimize()
    found = _touched(main, lineage, seq)
    assert found == {_path(main, "node:Person"): (BULK, False)}
    seq = main.snapshot().version
    _load(main, range(BULK), "overwrite")
    assert _touched(main, lineage, seq) == {_path(main, "node:Person"): (0, True)}


def test_a_type_keeps_its_ids_through_a_rename_and_not_through_a_drop(
    main: Branch, lineage: Lineage
) -> None:
    _load(main, range(3))
    first = _path(main, "node:Person")
    main.apply_schema(SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {'))
    main.load([{"type": "Human", "data": {"name": "ada"}}], mode="append")
    assert _touched(main, lineage, 0) == {first: (4, False)}
    main.apply_schema("node City { name: String @key }\n")
    main.apply_schema(SCHEMA.replace("Person", "Human"))
    main.load([{"type": "Human", "data": {"name": "ada"}}], mode="append")
    second = _path(main, "node:Human")
    assert _touched(main, lineage, 0) == {first: (4, False), second: (1, False)}


def test_types_whose_tables_are_the_same_are_not_looked_at(main: Branch, lineage: Lineage) -> None:
    start = main.snapshot().view
    assert list(find_candidates(start, main.snapshot().view, lineage)) == []
    _load(main, range(3))
    ((pair, ids),) = find_candidates(start, main.snapshot().view, lineage)
    assert (pair.type_key, ids.to_pylist()) == (PERSON, ["p000000", "p000001", "p000002"])


def test_candidates_across_branches_are_those_of_both(
    graph: Graph, main: Branch, lineage: Lineage
) -> None:
    _load(main, range(3))
    review = graph.create_branch("review")
    _load(main, range(2, 4), "merge", age=2)
    _load(review, range(2), "merge", age=3)
    ((_, ids),) = find_candidates(main.snapshot().view, review.snapshot().view, lineage)
    assert sorted(ids.to_pylist()) == ["p000000", "p000001", "p000002", "p000003"]


def test_row_ids_prove_something_only_along_a_line_without_merges(
    graph: Graph, main: Branch, lineage: Lineage
) -> None:
    _load(main, range(3))
    start = main.snapshot().view
    review = graph.create_branch("review")
    # Both branches give the same row ids to different people.
    _load(main, range(10, 12))
    _load(review, range(20, 22))
    ours, theirs = main.snapshot().view, review.snapshot().view
    rows = [
        fetch_rows(view, PERSON, pa.array([f"p0000{n}"]), with_row_ids=True)["_rowid"].to_pylist()
        for view, n in ((ours, 10), (theirs, 20))
    ]
    assert rows[0] == rows[1]
    assert are_copies_shared(start, ours, lineage)
    assert are_copies_shared(theirs, start, lineage)
    assert not are_copies_shared(ours, theirs, lineage)
    main.merge(review)
    assert not are_copies_shared(start, main.snapshot().view, lineage)


def test_everybody_may_be_a_candidate_and_only_changes_are_told(
    main: Branch, lineage: Lineage
) -> None:
    _load(main, range(6))
    start = main.snapshot().view
    _load(main, range(4, 8), "merge", age=2)
    main.mutate('query q() { delete Person where name = "p000001" }')
    now = main.snapshot().view
    (pair,) = [each for each in pair_types(start, now, lineage) if each.type_key == PERSON]
    ids = pa.array([f"p{n:06}" for n in range(9)])
    for shares_copies in (False, True):
        found = compute_difference(start, now, pair, ids, shares_copies=shares_copies)
        assert [id_[-1] for id_ in found.ids.to_pylist()] == list("14567")
        assert found.ops.tolist() == [Op.DELETE, Op.UPDATE, Op.UPDATE, Op.INSERT, Op.INSERT]
        assert found.before.num_rows == 3
        assert found.after.num_rows == 4
        part = found.slice(1, 2)
        assert part.before["__id"].to_pylist() == part.after["__id"].to_pylist()
        assert found.filter_ops(frozenset({Op.DELETE})).after.num_rows == 0
    # Nobody asked for is nobody told of.
    assert len(compute_difference(start, now, pair, ids.slice(2, 2))) == 0


def test_rows_come_in_the_order_of_ids_without_those_who_are_not_there(main: Branch) -> None:
    _load(main, range(5))
    view = main.snapshot().view
    ids = pa.array(["p000003", "nobody", "p000001", "p000003"])
    rows = fetch_rows(view, PERSON, ids, columns=[])
    assert rows.column_names == ["__id"]
    assert rows["__id"].to_pylist() == ["p000001", "p000003"]
    assert fetch_rows(view, PERSON, ids).column_names == view.get_shape(PERSON).schema.names


def test_a_column_that_is_new_differs_where_it_holds_a_value() -> None:
    old = pa.table({"a": [1, 2, 3]})
    new = pa.table({"a": [1, 2, 4], "b": ["", None, None]})
    pairs = [ColumnPair("a", "a"), ColumnPair(None, "b")]
    assert compare_rows(old, new, pairs).tolist() == [True, False, True]
    assert not np.any(compare_rows(old, new, []))
