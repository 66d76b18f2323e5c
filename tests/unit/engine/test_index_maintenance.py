"""Indexes and fragments of a graph: what they change is how fast an answer comes, never which."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.engine import IndexStatus
from omnigraph.errors import BranchGoneError, BranchNotFoundError, InvalidArgumentError
from omnigraph.execution.sources.index.index_source import IndexSource
from places import fresh_uri

SCHEMA = """
node Doc {
  slug: String @key
  title: String? @index
  number: I64? @index
  kind: enum(news, blog)? @index
  seen: DateTime? @index
  vec: Vector(4)? @index
  tags: [String]?
  file: Blob?
}
node Author { name: String @key  @index(name) }
edge Wrote: Author -> Doc { year: I32? @index }
"""
CHANGES = """
query renumber($slug: String, $number: I64) {
  update Doc set { number: $number } where slug = $slug
}
query remove($slug: String) { delete Doc where slug = $slug }
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.create(fresh_uri(), schema=SCHEMA, durable=False) as made:
        yield made


def test_a_graph_without_entities_has_nothing_to_build(graph: Graph) -> None:
    result = graph.branch().ensure_indices()
    assert (result.built, result.commit) == ((), None)
    assert {index.reason for index in result.pending} == {"the type has no rows yet"}
    assert graph.branch().optimize().commit is None
    assert {status.state for status in graph.index_status()} == {"pending"}


def test_every_declared_index_is_built_in_one_commit(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=30, vectors=True)
    before = main.head.version
    result = main.ensure_indices()
    assert {(str(one.type_key), one.property) for one in result.built} == {
        ("node:Author", "@id"),
        ("node:Author", "name"),
        ("node:Doc", "@id"),
        ("node:Doc", "kind"),
        ("node:Doc", "number"),
        ("node:Doc", "seen"),
        ("node:Doc", "slug"),
        ("node:Doc", "title"),
        ("edge:Wrote", "@id"),
        ("edge:Wrote", "@src"),
        ("edge:Wrote", "@dst"),
        ("edge:Wrote", "year"),
    }
    assert result.pending == ()
    commit = result.commit
    assert commit is not None
    assert (commit.version, commit.is_maintenance, commit.actor) == (before + 1, True, None)
    assert {status.state for status in graph.index_status()} == {"fresh"}
    again = main.ensure_indices()
    assert (again.built, again.commit, main.head.version) == ((), None, before + 1)
    assert graph.check().problems == ()


def test_nothing_is_built_for_vectors_and_words_and_searches_find_all_rows(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=20, vectors=True)
    nearest = "nearest($d.vec, [0.1, 0.2, 0.3, 0.4])"
    queries = [
        f"query q() {{ match {{ $d: Doc }} return {{ $d.slug }} order {{ {order} }} limit 50 }}"
        for order in (nearest, 'bm25($d.title, "running dogs")')
    ]
    before = [main.query(text).to_json_rows() for text in queries]
    assert [len(rows) > 5 for rows in before] == [True, True]
    main.ensure_indices()
    assert "vec" not in {status.property for status in graph.index_status()}
    assert [main.query(text).to_json_rows() for text in queries] == before


def test_rows_written_since_are_counted_as_uncovered_until_an_optimization(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=10)
    main.ensure_indices()
    fill(main, docs=5, prefix="later")
    status = status_of(graph, "Doc", "number")
    assert (status.covered_rows, status.total_rows, status.state) == (10, 15, "stale")
    # Only what is missing is built: nothing is.
    assert main.ensure_indices().commit is None
    main.optimize()
    status = status_of(graph, "Doc", "number")
    assert (status.covered_rows, status.total_rows, status.state) == (15, 15, "fresh")


def test_an_optimization_joins_fragments_and_changes_no_entity(graph: Graph) -> None:
    main = graph.branch()
    for number in range(6):
        main.load(
            [doc(f"d{number}", file=["base64:", None, "base64:AAEC"][number % 3])], mode="append"
        )
    before = exported(main)
    result = main.optimize()
    docs = next(table for table in result.tables if table.type_key.name == "Doc")
    assert (docs.fragments_removed, docs.fragments_added) == (6, 1)
    assert docs.version is not None
    assert {one.property for one in docs.indexes} >= {"@id", "number", "title"}
    assert exported(main) == before
    assert graph.check().problems == ()
    again = main.optimize()
    assert (again.commit, {table.version for table in again.tables}) == (None, {None})
    main.mutate(CHANGES, name="renumber", params={"slug": "d3", "number": 77})
    assert graph.check().problems == ()


@pytest.mark.slow
def test_many_cycles_of_writing_and_optimizing_settle(graph: Graph) -> None:
    main = graph.branch()
    for cycle in range(7):
        fill(main, docs=6, prefix=f"c{cycle}-")
        main.mutate(CHANGES, name="remove", params={"slug": f"c{cycle}-1"})
        main.mutate(CHANGES, name="renumber", params={"slug": f"c{cycle}-2", "number": -cycle})
        assert main.optimize().commit is not None
        assert main.optimize().commit is None, "the second run has nothing to do"
        assert {status.state for status in graph.index_status()} <= {"fresh", "pending"}
        assert_answers(main)
    assert graph.check().problems == ()


def test_answers_are_the_same_with_indexes_absent_fresh_and_stale(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=40, vectors=True)
    assert_answers(main)
    main.ensure_indices()
    assert_answers(main)
    fill(main, docs=20, prefix="later")
    main.mutate(CHANGES, name="renumber", params={"slug": "d7", "number": 3})
    main.mutate(CHANGES, name="remove", params={"slug": "d8"})
    assert_answers(main)
    main.optimize()
    assert_answers(main)


def test_a_branch_that_changed_nothing_keeps_the_tables_of_its_source(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=5)
    main.ensure_indices()
    child = graph.create_branch("child")
    assert child.ensure_indices().commit is None
    assert child.optimize().commit is None
    assert child.head.id == main.head.id
    fill(child, docs=5, prefix="child")
    child.optimize()
    assert {status.state for status in graph.index_status("child")} <= {"fresh", "pending"}
    assert status_of(graph, "Doc", "number").total_rows == 5


def test_indexes_outlive_renames_and_come_back_after_an_overwrite(graph: Graph) -> None:
    main = graph.branch()
    fill(main, docs=5)
    main.ensure_indices()
    renamed = SCHEMA.replace("number: I64? @index", 'count: I64? @index @rename_from("number")')
    renamed = renamed.replace("node Author {", 'node Writer @rename_from("Author") {')
    main.apply_schema(renamed.replace("Author ->", "Writer ->"))
    assert status_of(graph, "Doc", "count").state == "fresh"
    assert status_of(graph, "Writer", "@id").state == "fresh"
    main.load([doc("only"), {"edge": "Wrote", "from": "da0", "to": "only"}], mode="overwrite")
    assert status_of(graph, "Doc", "count").state == "absent"
    main.ensure_indices()
    assert status_of(graph, "Doc", "count").covered_rows == 1


def test_an_old_snapshot_reads_on_while_its_branch_is_optimized(graph: Graph) -> None:
    main = graph.branch()
    for number in range(5):
        fill(main, docs=2, prefix=f"{number}-")
    old = main.snapshot()
    before = b"".join(old.export())
    main.optimize()
    main.load([doc("new"), {"edge": "Wrote", "from": "0-a0", "to": "new"}], mode="overwrite")
    assert b"".join(old.export()) == before


def test_a_branch_that_is_gone_or_was_never_there_is_refused(graph: Graph) -> None:
    with pytest.raises(BranchNotFoundError):
        graph.index_status("nowhere")
    with pytest.raises(InvalidArgumentError):
        graph.index_status(7)  # type: ignore[arg-type] # what is refused
    child = graph.create_branch("child")
    graph.delete_branch("child")
    with pytest.raises(BranchGoneError):
        child.ensure_indices()
    with pytest.raises(BranchGoneError):
        child.optimize()


def doc(slug: str, **values: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, **values}}


def fill(branch: Branch, *, docs: int, prefix: str = "d", vectors: bool = False) -> None:
    """Documents with random values, and the authors who wrote them."""
    random = Random(prefix)
    authors = [f"{prefix}a{number}" for number in range(3)]
    records: list[dict[str, Any]] = [{"type": "Author", "data": {"name": one}} for one in authors]
    for number in range(docs):
        slug = f"{prefix}{number}"
        values: dict[str, Any] = {
            "title": random.choice([None, "The running cat", "it's a dog", "Ünïcode"]),
            "number": random.choice([None, 3, number]),
            "kind": random.choice([None, "news", "blog"]),
            "seen": random.choice([None, "2024-05-06T07:08:09Z"]),
        }
        if vectors:
            values["vec"] = [random.random() for _ in range(4)]
        author = authors[number % 3]
        records += [
            doc(slug, **values),
            {"edge": "Wrote", "from": author, "to": slug, "data": {"year": number}},
        ]
    branch.load(records, mode="merge")


def exported(branch: Branch) -> list[bytes]:
    return sorted(b"".join(branch.export()).splitlines())


def status_of(graph: Graph, type_name: str, property_: str) -> IndexStatus:
    return next(
        status
        for status in graph.index_status()
        if status.type_key.name == type_name and status.property == property_
    )


def assert_answers(branch: Branch) -> None:
    """Look-ups find what a scan of everything finds."""
    view = branch.snapshot().view
    key = next(key for key in view.types if key.name == "Doc")
    table, columns = view.open_table(key), view.get_shape(key).columns
    rows = table.scan(columns=["__id", columns["number"], columns["kind"], columns["title"]])
    by_number = table.scan(columns=["__id"], filter=f"`{columns['number']}` = 3")
    expected = [row["__id"] for row in rows.to_pylist() if row[columns["number"]] == 3]
    assert sorted(by_number["__id"].to_pylist()) == sorted(expected)
    by_title = table.scan(columns=["__id"], filter=f"`{columns['title']}` = 'Ünïcode'")
    expected = [row["__id"] for row in rows.to_pylist() if row[columns["title"]] == "Ünïcode"]
    assert sorted(by_title["__id"].to_pylist()) == sorted(expected)
    source = IndexSource(view)
    nodes, edges = source.get_nodes("Doc"), source.get_edges("Wrote")
    ids = rows["__id"].combine_chunks()
    numbers = nodes.find(pa.concat_arrays([ids, pa.array(["no such one"])]))
    assert numbers[-1] == -1
    at = numbers[:-1]
    assert nodes.fetch_values("number", at).to_pylist() == rows[columns["number"]].to_pylist()
    links = view.open_table(next(key for key in view.types if key.name == "Wrote"))
    ends = links.scan(columns=["__src", "__dst"]).to_pylist()
    authors = source.get_nodes("Author")
    some = authors.find(pa.array(sorted({end["__src"] for end in ends})[:2]))
    reached = edges.expand_neighbours(some, is_reversed=False)
    found = set(
        zip(
            authors.fetch_ids(some[reached.start_indices]).to_pylist(),
            nodes.fetch_ids(reached.ends).to_pylist(),
            strict=True,
        )
    )
    wanted = set(authors.fetch_ids(some).to_pylist())
    assert found == {(end["__src"], end["__dst"]) for end in ends if end["__src"] in wanted}
    assert np.array_equal(nodes.find_by_row_ids(nodes.fetch_row_ids(at)), at)
