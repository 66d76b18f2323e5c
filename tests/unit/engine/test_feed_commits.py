"""What one commit changed: images, order, pages, filters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Commit, Graph, errors
from omnigraph.engine.entity_changes import EntityChange
from places import fresh_uri
from unit.engine.company import CHANGES, SCHEMA, company, person


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company(actor="ada") as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def changes(graph: Graph, commit: Commit | None, **options: object) -> list[EntityChange]:
    """All changes of a commit, however many pages they take."""
    assert commit is not None
    found: list[EntityChange] = []
    token: str | None = None
    while True:
        page = graph.commit_changes(commit, page_token=token, **options)  # type: ignore[arg-type]
        found += page.changes
        token = page.next_page_token
        if token is None:
            return found


def test_an_update_has_both_images_and_an_insert_and_a_deletion_one(
    graph: Graph, main: Branch
) -> None:
    hired = main.mutate(CHANGES, name="hire", params={"name": "Cleo", "age": 20}).commit
    [inserted] = changes(graph, hired)
    assert inserted.to_json() == {
        "kind": "node",
        "type": {"id": inserted.type_id, "name": "Person"},
        "id": "Cleo",
        "op": "insert",
        "after": {"properties": {"age": 20, "badge": None, "name": "Cleo"}},
    }
    aged = main.mutate(CHANGES, name="birthday", params={"who": "Cleo", "age": 21}).commit
    [updated] = changes(graph, aged)
    assert (updated.op, updated.type_id) == ("update", inserted.type_id)
    assert updated.before == inserted.after
    assert updated.after == {"properties": {"age": 21, "badge": None, "name": "Cleo"}}
    [deleted] = changes(graph, main.mutate(CHANGES, name="leave", params={"who": "Cleo"}).commit)
    assert (deleted.op, deleted.before, deleted.after) == ("delete", updated.after, None)


def test_the_cause_names_the_commit_its_parent_and_its_author(graph: Graph, main: Branch) -> None:
    before = main.head
    commit = main.load([person("Cleo")], mode="append").commit
    assert graph.commit_changes(commit.id).cause.to_json() == {
        "graph_commit_id": commit.id,
        "parent_commit_id": before.id,
        "authored_branch": "main",
        "actor_id": "ada",
        "authored_at": commit.to_json()["created_at"],
    }


def test_a_deleted_node_takes_its_edges_along_and_nodes_come_first(
    graph: Graph, main: Branch
) -> None:
    commit = main.mutate(CHANGES, name="leave", params={"who": "Ada"}).commit
    node, edge = changes(graph, commit)
    assert (node.kind, node.id, node.op) == ("node", "Ada", "delete")
    assert (edge.kind, edge.op) == ("edge", "delete")
    assert edge.before == {
        "properties": {"since": "1840-01-02"},
        "endpoints": {"from": "Ada", "to": "Engines"},
    }


def test_an_edge_that_is_moved_shows_both_pairs_of_ends(graph: Graph, main: Branch) -> None:
    [edge] = changes(graph, main.head, kinds=["edge"])
    moved = {"edge": "MemberOf", "id": edge.id, "from": "Bob", "to": "Engines", "data": {}}
    [change] = changes(graph, main.load([moved], mode="merge").commit)
    assert change.op == "update"
    assert change.before is not None
    assert change.after is not None
    assert change.before["endpoints"] == {"from": "Ada", "to": "Engines"}
    assert change.after["endpoints"] == {"from": "Bob", "to": "Engines"}


def test_values_are_spelled_as_in_an_export(graph: Graph, main: Branch) -> None:
    records = [
        {"type": "Person", "data": {"name": 'a "b"\n', "badge": "base64:AAEC"}},
        {"type": "Person", "data": {"name": "", "age": -1, "badge": "base64:"}},
    ]
    commit = main.load(records, mode="append").commit
    exported = [json.loads(line) for line in b"".join(main.export(types=["Person"])).splitlines()]
    data = {each["id"]: each["data"] for each in exported}
    for change in changes(graph, commit):
        assert change.after == {"properties": {"age": None, **data[change.id]}}


def test_an_image_has_every_property_also_those_that_are_null(tmp_path: Path) -> None:
    schema = "node Person { name: String @key  body: String?  tags: [String]?  spot: Vector(2)? }\n"
    schema += "edge Knows: Person -> Person { since: Date? }\n"
    with omnigraph.create(fresh_uri(tmp_path / "g"), schema=schema) as graph:
        main = graph.branch()
        start = main.head
        main.mutate('query q() { insert Person { name: "a" } }')
        main.load([{"edge": "Knows", "from": "a", "to": "a"}], mode="append")
        person = {"name": "a", "body": None, "tags": None, "spot": None}
        images = [{"properties": person}]
        images += [{"properties": {"since": None}, "endpoints": {"from": "a", "to": "a"}}]
        blocks = main.changes(start="beginning").blocks
        assert [change.after for block in blocks for change in block.changes] == images
        told = [
            change
            for commit in reversed(list(main.commits())[:2])
            for change in changes(graph, commit)
        ]
        assert [change.after for change in told] == images
        assert [change.after for change in graph.diff(start, main)] == images
        texts = graph.diff(start, main).to_arrow()["after"].to_pylist()
        assert [json.loads(text) for text in texts] == images
        assert main.snapshot().entity("Person", "a") == images[0]
        assert [each.after for each in main.history("Person", "a")] == images[:1]
        baseline = {record.get("type") or record["edge"]: record for record in main.baseline()}
        assert baseline["Person"]["data"] == person
        assert baseline["Knows"]["data"] == {"since": None}


def test_what_is_written_again_as_it_was_is_no_change(graph: Graph, main: Branch) -> None:
    commit = main.load([person("Ada", 36), person("Bob", 42)], mode="merge").commit
    assert [change.id for change in changes(graph, commit)] == ["Bob"]
    same = main.load([person("Ada", 36)], mode="merge").commit
    assert changes(graph, same, limit=1) == []


def test_maintenance_is_an_empty_block(graph: Graph, main: Branch) -> None:
    main.load([person(f"p{number}") for number in range(10)], mode="append")
    result = main.ensure_indices()
    assert result.commit is not None
    assert graph.commit_changes(result.commit).to_json()["changes"] == []


def test_the_first_commit_has_nothing_to_be_compared_with(graph: Graph, main: Branch) -> None:
    first = list(main.commits())[-1]
    with pytest.raises(errors.CommitHasNoParentError) as refused:
        graph.commit_changes(first)
    assert refused.value.commit == first.id
    with pytest.raises(errors.CommitNotFoundError):
        graph.commit_changes("01M7H2K9ZZA63CWQ5FJFV5YAC2")


def test_pages_of_any_size_tell_the_same_once_and_in_order(graph: Graph, main: Branch) -> None:
    people = [person(f"p{number:02}", number) for number in range(20)]
    teams = [{"type": "Team", "data": {"name": f"t{number}"}} for number in range(5)]
    edges = [{"edge": "Knows", "from": f"p{n:02}", "to": "Ada"} for n in range(7)]
    commit = main.load([*people, *teams, *edges], mode="append").commit
    whole = changes(graph, commit)
    order = [(each.kind == "edge", each.type_id, each.id) for each in whole]
    assert order == sorted(order)
    assert len(set(order)) == 32
    for limit in (1, 2, 7, 31, 32, 33):
        assert changes(graph, commit, limit=limit) == whole
    assert graph.commit_changes(commit, limit=32).next_page_token is None
    assert graph.commit_changes(commit, limit=31).next_page_token is not None


def test_filters_apply_to_kinds_types_and_operations(graph: Graph, main: Branch) -> None:
    commit = main.mutate(CHANGES, name="leave", params={"who": "Ada"}).commit
    first = main.head.parents[0]
    assert [each.kind for each in changes(graph, commit, kinds=["edge"])] == ["edge"]
    assert [each.type_name for each in changes(graph, commit, types=["Person"])] == ["Person"]
    assert changes(graph, commit, ops=["insert", "update"]) == []
    assert len(changes(graph, commit, ops=["delete"])) == 2
    loaded = graph.commit_changes(first, types=["Team", "Person"], kinds=["node"])
    assert {each.type_name for each in loaded.changes} == {"Team", "Person"}
    with pytest.raises(errors.TypeNotFoundError):
        graph.commit_changes(first, types=["Persn"])
    for wrong in ({"kinds": ["thing"]}, {"ops": ["upsert"]}, {"limit": 0}, {"types": "Person"}):
        with pytest.raises(errors.InvalidArgumentError):
            graph.commit_changes(first, **wrong)
    with pytest.raises(errors.ResourceLimitError, match="commit_changes_page_changes"):
        graph.commit_changes(first, limit=8193)


def test_a_page_token_belongs_to_its_commit_and_its_filters(graph: Graph, main: Branch) -> None:
    first = main.head
    other = main.load([person("Cleo"), person("Dan")], mode="append").commit
    token = graph.commit_changes(first, limit=1).next_page_token
    assert token is not None
    for commit, options in (
        (other, {}),
        (first, {"kinds": ["node"]}),
        (first, {"ops": ["insert"]}),
    ):
        with pytest.raises(errors.ChangeCursorRejectedError):
            graph.commit_changes(commit, page_token=token, **options)  # type: ignore[arg-type]
    with pytest.raises(errors.ChangeCursorRejectedError):
        main.changes(page_token=token)
    with pytest.raises(errors.ChangeCursorRejectedError):
        main.changes(cursor=token)
    with (
        company() as elsewhere,
        pytest.raises(errors.ChangeCursorRejectedError, match="another graph"),
    ):
        elsewhere.commit_changes(elsewhere.branch().head, page_token=token)


def test_filters_in_another_order_are_the_same_filters(graph: Graph, main: Branch) -> None:
    page = graph.commit_changes(main.head, limit=1, types=["Team", "Person"], ops=["insert"])
    graph.commit_changes(
        main.head, page_token=page.next_page_token, types=["Person", "Team"], ops=["insert"]
    )


def test_ids_of_ten_kilobytes_that_begin_alike_are_found_again(graph: Graph, main: Branch) -> None:
    ids = sorted("x" * 10_000 + str(number) for number in range(4))
    commit = main.load([person(each) for each in ids], mode="append").commit
    assert [each.id for each in changes(graph, commit, limit=1)] == ids
    page = graph.commit_changes(commit, limit=1)
    assert len(page.next_page_token or "") <= 4096


@pytest.mark.slow
def test_a_bulk_load_is_told_by_the_rows_of_its_files() -> None:
    with omnigraph.create(fresh_uri(), schema="node P {\n  n: I64 @key\n}") as graph:
        main = graph.branch()
        main.load(pa.table({"n": pa.array(range(100_500))}), type="P", mode="append")
        extra = pa.table({"n": pa.array(range(100_400, 201_000))})
        commit = main.load(extra, type="P", mode="merge").commit
        page = graph.commit_changes(commit, limit=8000)
        # Those that were there already are the same as before.
        assert [change.id for change in page.changes[:2]] == ["100500", "100501"]
        assert {change.op for change in page.changes} == {"insert"}
        count, token = len(page.changes), page.next_page_token
        while token is not None:
            page = graph.commit_changes(commit, limit=8192, page_token=token)
            count, token = count + len(page.changes), page.next_page_token
        assert count == 100_500


def test_an_overwriting_load_deletes_updates_and_inserts(graph: Graph, main: Branch) -> None:
    people = [{"type": "Person", "data": {"name": "Bob", "age": 5}}, person("Cleo")]
    commit = main.load(
        [*people, {"type": "Person", "data": {"name": "Ada", "age": 36}}], mode="overwrite"
    ).commit
    told = {each.id: each.op for each in changes(graph, commit, types=["Person"])}
    assert told == {"Bob": "update", "Cleo": "insert"}
    commit = main.load([person("Ada", 36)], mode="overwrite").commit
    told = {each.id: each.op for each in changes(graph, commit, types=["Person"])}
    assert told == {"Bob": "delete", "Cleo": "delete"}


def test_a_merge_is_told_relative_to_its_first_parent(graph: Graph, main: Branch) -> None:
    review = graph.create_branch("review")
    review.load([person("Cleo"), person("Ada", 1)], mode="merge")
    main.load([person("Bob", 2)], mode="merge")
    theirs = review.head
    commit = main.merge(review).commit
    assert commit is not None
    page = graph.commit_changes(commit)
    assert [(each.id, each.op) for each in page.changes] == [("Ada", "update"), ("Cleo", "insert")]
    assert page.cause.to_json()["merged_parent_commit_id"] == theirs.id


def test_a_type_has_one_id_for_life_whatever_it_is_called(graph: Graph, main: Branch) -> None:
    [before] = changes(
        graph, main.load([{"type": "Note", "data": {"text": "a"}}], mode="append").commit
    )
    renamed = SCHEMA.replace("node Note {", 'node Memo @rename_from("Note") {')
    migration = main.apply_schema(renamed).commit
    assert changes(graph, migration) == []
    [after] = changes(
        graph, main.load([{"type": "Memo", "data": {"text": "b"}}], mode="append").commit
    )
    assert (after.type_name, after.type_id) == ("Memo", before.type_id)


def test_a_commit_that_adds_a_property_changes_no_entity(graph: Graph, main: Branch) -> None:
    migration = main.apply_schema(SCHEMA.replace("  age: I32?", "  age: I32?\n  city: String?"))
    assert changes(graph, migration.commit) == []
    moved = {"type": "Person", "data": {"name": "Ada", "age": 36, "city": "Bath"}}
    [change] = changes(graph, main.load([moved], mode="merge").commit)
    ada = {"age": 36, "badge": None, "name": "Ada"}
    assert change.before == {"properties": {**ada, "city": None}}
    assert change.after == {"properties": {**ada, "city": "Bath"}}


def test_a_type_that_is_dropped_with_its_entities_is_a_boundary(graph: Graph, main: Branch) -> None:
    without = SCHEMA.replace("edge MemberOf: Person -> Team {\n  since: Date?\n}\n", "")
    migration = main.apply_schema(without).commit
    assert migration is not None
    with pytest.raises(errors.ChangeSchemaBoundaryError) as refused:
        graph.commit_changes(migration)
    assert (refused.value.commit, refused.value.type_name) == (migration.id, "MemberOf")
    assert graph.commit_changes(migration, kinds=["node"]).changes == ()
    empty = without.replace("edge Knows: Person -> Person\n", "")
    assert changes(graph, main.apply_schema(empty).commit) == []
