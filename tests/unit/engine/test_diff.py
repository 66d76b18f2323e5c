"""Diffs of branches, commits and times, with images, filters and summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
import places
from omnigraph import Branch, Graph, LoadModeName, errors
from omnigraph.execution.query_budget import Cancellation
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import MAIN
from unit.engine.company import CHANGES, SCHEMA, company, person
from unit.engine.exported import expected, told


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company(actor="ada") as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def _graph(schema: str) -> Graph:
    return omnigraph.create(places.fresh_uri(), schema=schema)


def test_every_change_is_told_with_its_images(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Cyd", 29)], mode="append")
    main.mutate(CHANGES, name="birthday", params={"who": "Bob", "age": 42})
    main.mutate(CHANGES, name="leave", params={"who": "Ada"})
    diff = graph.diff(start, main)
    edge = next(change for change in diff if change.kind == "edge")
    assert told(diff) == expected(start, main.snapshot())
    assert told(diff) == {
        ("node", "Person", "Ada"): ("delete", {"properties": {"name": "Ada", "age": 36}}, None),
        ("node", "Person", "Bob"): (
            "update",
            {"properties": {"name": "Bob", "age": 41}},
            {"properties": {"name": "Bob", "age": 42}},
        ),
        ("node", "Person", "Cyd"): ("insert", None, {"properties": {"name": "Cyd", "age": 29}}),
        ("edge", "MemberOf", edge.id): (
            "delete",
            {
                "properties": {"since": "1840-01-02"},
                "endpoints": {"from": "Ada", "to": "Engines"},
            },
            None,
        ),
    }
    assert [(each.kind, each.type_name, each.counts.to_json()) for each in diff.summary] == [
        ("node", "Person", {"inserted": 1, "updated": 1, "deleted": 1}),
        ("edge", "MemberOf", {"inserted": 0, "updated": 0, "deleted": 1}),
    ]
    assert (diff.old, diff.new) == (start.commit, main.head)


def test_a_diff_the_other_way_round_undoes_it(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Cyd"), person("Bob", 1)], mode="merge")
    main.mutate(CHANGES, name="leave", params={"who": "Ada"})
    back = told(graph.diff(main, start))
    opposite = {"insert": "delete", "delete": "insert", "update": "update"}
    assert back == {
        entity: (opposite[op], after, before)
        for entity, (op, before, after) in told(start.diff(main)).items()
    }


def test_a_state_is_named_in_many_ways(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    time = datetime.now(UTC)
    main.load([person("Cyd")], mode="append")
    wanted = told(start.diff(main.snapshot()))
    assert len(wanted) == 1
    for old in (start, start.commit, start.commit.id, start.version, time, time.isoformat()):
        for new in (main, "main", main.head, main.head.id):
            assert told(graph.diff(old, new)) == wanted


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("nobody", errors.CommitNotFoundError, "'nobody' is not a branch, a tag or a commit"),
        (b"main", errors.InvalidArgumentError, "a bytes is not a state of a graph"),
        (True, errors.InvalidArgumentError, "a bool is not a state"),
        (7, errors.CommitNotFoundError, "branch 'main' has no version 7"),
        (datetime(2020, 1, 1, tzinfo=UTC), errors.CommitNotFoundError, "no commit as old"),
        (datetime(2020, 1, 1), errors.InvalidArgumentError, "no time zone"),
    ],
)
def test_what_names_no_state_is_refused(
    graph: Graph, place: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        graph.diff("main", place)  # type: ignore[arg-type]


def test_a_state_of_another_graph_is_refused(main: Branch) -> None:
    with company() as other:
        for state in (other.branch(), other.branch().snapshot()):
            with pytest.raises(errors.InvalidArgumentError, match="is of the graph at"):
                main.diff(state)


def test_a_review_tells_only_what_the_other_branch_did(graph: Graph, main: Branch) -> None:
    review = graph.create_branch("review")
    review.load([person("Cyd")], mode="append")
    main.load([person("Dan")], mode="append")
    base = review.commits().__next__().parents[0]
    diff = main.diff(review)
    assert diff.old.id == base
    assert set(told(diff)) == {("node", "Person", "Cyd")}
    assert set(told(main.diff("review"))) == {("node", "Person", "Cyd")}
    assert {key[2]: op for key, (op, *_) in told(graph.diff(main, review)).items()} == {
        "Cyd": "insert",
        "Dan": "delete",
    }
    assert not main.diff(main)


def test_a_diff_is_stopped_by_its_time_and_from_outside(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Cyd", 29)], mode="append")
    for compare in (partial(graph.diff, start, main), partial(main.diff, start)):
        with pytest.raises(errors.QueryTimeoutError):
            compare(timeout=0)
        cancel = Cancellation()
        cancel.cancel()
        with pytest.raises(errors.QueryCancelledError):
            compare(cancel=cancel)


def test_filters_hold_along_a_line_and_across_branches(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    review = graph.create_branch("review")
    review.load([person("Cyd"), person("Bob", 1)], mode="merge")
    review.mutate(CHANGES, name="join", params={"who": "Bob", "team": "Engines"})
    main.load([{"type": "Team", "data": {"name": "Looms"}}], mode="append")
    for old in (start, main):
        everything = told(graph.diff(old, review))
        wanted = {"kinds": ["edge"], "types": ["Person"], "ops": ["insert", "delete"]}
        for name, words in wanted.items():
            names: Any = {name: words}
            place = {"kinds": lambda e: e[0], "types": lambda e: e[1]}.get(name)
            kept = {
                entity: change
                for entity, change in everything.items()
                if (place(entity) if place else change[0]) in words
            }
            assert told(graph.diff(old, review, **names)) == kept
            assert 0 < len(kept) < len(everything)
    assert not graph.diff(start, review, types=["Team"], kinds=["edge"])
    with pytest.raises(errors.TypeNotFoundError, match="Persn"):
        graph.diff(start, review, types=["Persn"])
    with pytest.raises(errors.InvalidArgumentError, match="'vertex' is not one of 'node', 'edge'"):
        graph.diff(start, review, kinds=["vertex"])


def test_equal_values_written_again_and_maintenance_are_no_changes(main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Ada", 36)], mode="merge")
    main.load([person("Bob", 41), person("Ada", 36)], mode="overwrite")
    main.ensure_indices()
    main.optimize()
    diff = start.diff(main)
    assert not diff
    assert (len(diff), list(diff), diff.summary, diff.counts.total) == (0, [], (), 0)
    assert str(diff).endswith("\nno changes")


def test_who_came_and_went_again_is_no_change(main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Cyd")], mode="append")
    main.mutate(CHANGES, name="birthday", params={"who": "Bob", "age": 42})
    main.mutate(CHANGES, name="leave", params={"who": "Cyd"})
    main.mutate(CHANGES, name="birthday", params={"who": "Bob", "age": 41})
    assert not start.diff(main)


def test_an_edge_that_moved_tells_both_its_ends(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    edge = start.to_arrow("MemberOf")["@id"][0].as_py()
    main.load([{"type": "Team", "data": {"name": "Looms"}}], mode="append")
    record = {"edge": "MemberOf", "id": edge, "from": "Bob", "to": "Looms", "data": {}}
    main.load([record], mode="merge")
    (change,) = graph.diff(start, main, kinds=["edge"])
    assert change.op == "update"
    assert change.before is not None
    assert change.before["endpoints"] == {"from": "Ada", "to": "Engines"}
    assert change.after == {
        "properties": {"since": None},
        "endpoints": {"from": "Bob", "to": "Looms"},
    }
    assert '    @src: "Ada" -> "Bob"' in str(graph.diff(start, main, kinds=["edge"]))


# ---- values ----


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"text": ""}, {}),
        ({"list": []}, {}),
        ({"list": ["a, b"]}, {"list": ["a", "b"]}),
        ({"list": ["a", "b"]}, {"list": ["b", "a"]}),
        ({"text": "a\u001fb"}, {"text": "a", "row_id": "b"}),
        ({"row_id": "1"}, {"row_id": "2"}),
        ({"number": 0.0}, {"number": -0.0}),
        ({"number": 1.0}, {"number": 1.0000000000000002}),
        ({"vector": [1.0, 2.0]}, {"vector": [2.0, 1.0]}),
        ({"vector": [1.0, 2.0]}, {}),
        ({"blob": "base64:AAE="}, {"blob": "base64:AAI="}),
        ({"blob": "base64:"}, {}),
    ],
)
def test_values_are_compared_as_what_they_are(
    old: dict[str, object], new: dict[str, object]
) -> None:
    schema = """node Thing {
      name: String @key
      text: String?
      list: [String]?
      number: F64?
      vector: Vector(2)?
      blob: Blob?
      row_id: String?
    }"""
    with _graph(schema) as graph:
        main = graph.branch()
        others = [{"type": "Thing", "data": {"name": f"t{n}", **old}} for n in range(3)]
        main.load(others, mode="append")
        start = main.snapshot()
        for data in (old, new):
            main.load([{"type": "Thing", "data": {"name": "t1", **data}}], mode="merge")
            diff = start.diff(main)
            assert told(diff) == expected(start, main.snapshot())
            assert len(diff) == (data is new)


def test_vectors_and_blobs_are_read_only_where_nothing_else_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = "node Doc { slug: String @key  title: String  face: Vector(2)?  scan: Blob? }"
    with _graph(schema) as graph:
        main = graph.branch()
        docs = {
            slug: {"slug": slug, "title": "t", "face": [1, 2], "scan": "base64:AAE="}
            for slug in "abcd"
        }
        main.load([{"type": "Doc", "data": doc} for doc in docs.values()], mode="append")
        start = main.snapshot()
        docs["a"]["title"] = "other"
        docs["b"]["face"] = [3, 4]
        docs["c"]["scan"] = "base64:AAI="
        main.load([{"type": "Doc", "data": docs[slug]} for slug in "abc"], mode="merge")
        heavy = {
            start.view.get_shape(key).columns[name]
            for key in start.view.types
            for name in ("face", "scan")
        }
        read: list[tuple[str, int]] = []
        take = Table.take

        def noted(table: Table, row_ids: object, *, columns: list[str]) -> object:
            read.extend((name, len(row_ids)) for name in columns if name in heavy)  # type: ignore[arg-type]
            return take(table, row_ids, columns=columns)

        monkeypatch.setattr(Table, "take", noted)
        diff = start.diff(main)
        assert diff.counts.updated == 3
        # The vectors of the two that are equal so far, then the blob of the one that still is.
        assert sorted({count for _, count in read}) == [1, 2]
        assert len(read) == 4
        assert told(diff) == expected(start, main.snapshot())


# ---- schemas ----


def test_an_added_property_changes_only_who_has_a_value(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    main.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?"))
    diff = start.diff(main)
    assert len(diff) == 0
    assert diff
    assert "+  nick: String?" in diff.schema_changes
    record = person("Ada", 36)
    record["data"]["nick"] = "Countess"
    main.load([record, person("Bob", 41)], mode="merge")
    assert set(told(start.diff(main))) == {("node", "Person", "Ada")}
    # What the older one has not is not said to be lost by everybody.
    assert not told(graph.diff(main, start))


def test_renames_are_no_changes_of_entities(main: Branch) -> None:
    start = main.snapshot()
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    renamed = renamed.replace("Person ->", "Human ->").replace("-> Person", "-> Human")
    renamed = renamed.replace("age: I32?", 'years: I32? @rename_from("age")')
    main.apply_schema(renamed)
    assert len(start.diff(main)) == 0
    main.load([{"type": "Human", "data": {"name": "Ada", "years": 37}}], mode="merge")
    (change,) = start.diff(main)
    assert (change.type_name, change.op) == ("Human", "update")
    assert change.before == {"properties": {"name": "Ada", "age": 36, "badge": None}}
    assert change.after == {"properties": {"name": "Ada", "years": 37, "badge": None}}
    for name in ("Person", "Human"):
        assert len(start.diff(main, types=[name])) == 1


def test_a_type_that_is_dropped_and_added_again_is_another_one(main: Branch) -> None:
    start = main.snapshot()
    main.apply_schema(SCHEMA.replace("node Note {\n  text: String\n}", ""))
    main.apply_schema(SCHEMA)
    assert len(start.diff(main)) == 0
    main.apply_schema(SCHEMA.replace("edge MemberOf: Person -> Team {\n  since: Date?\n}", ""))
    gone = start.diff(main)
    assert [(each.type_name, each.counts.deleted) for each in gone.summary] == [("MemberOf", 1)]
    main.apply_schema(SCHEMA)
    edge = start.to_arrow("MemberOf")["@id"][0].as_py()
    record = {"edge": "MemberOf", "id": edge, "from": "Ada", "to": "Engines"}
    main.load([{**record, "data": {"since": "1840-01-02"}}], mode="append")
    both = sorted((change.op, change.type_id) for change in start.diff(main))
    assert [op for op, _ in both] == ["delete", "insert"]
    assert both[0][1] != both[1][1]


def test_what_two_branches_added_under_one_name_is_compared_by_name(
    graph: Graph, main: Branch
) -> None:
    review = graph.create_branch("review")
    wider = SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")
    wider += "node Tool { name: String @key }\n"
    for branch, nick, tools in ((main, "Countess", "ab"), (review, "Lady", "bc")):
        branch.apply_schema(wider)
        record = person("Ada", 36)
        record["data"]["nick"] = nick
        named = [{"type": "Tool", "data": {"name": tool}} for tool in tools]
        branch.load([record, person("Bob", 41), *named], mode="merge")
    diff = graph.diff(main, review)
    assert told(diff) == expected(main.snapshot(), review.snapshot())
    assert {entity[2]: op for entity, (op, *_) in told(diff).items()} == {
        "Ada": "update",
        "a": "delete",
        "c": "insert",
    }


# ---- history ----


def test_a_tag_names_a_state(graph: Graph, main: Branch) -> None:
    start = main.snapshot()
    graph.tag("audit", start)
    main.load([person("Cyd")], mode="append")
    assert told(graph.diff("audit", "main")) == told(start.diff(main)) != {}


def test_two_states_can_be_compared_when_the_records_between_them_are_gone(
    tmp_path: Path,
) -> None:
    with company(str(tmp_path / "g")) as graph:
        main = graph.branch()
        old = main.head
        main.load([person("Cyd"), person("Ada", 36)], mode="merge")
        main.mutate(CHANGES, name="leave", params={"who": "Bob"})
        main.load([person("Dan")], mode="append")
        wanted = told(graph.diff(old, main))
        assert len(wanted) == 3
        paths = [layout.build_record_path(MAIN.id, old.version + 2)]
        graph._session.resources.storage.objects.delete(paths)
    with omnigraph.open(str(tmp_path / "g")) as graph:
        assert told(graph.diff(old, "main")) == wanted


# ---- many ----


def test_a_bulk_load_and_an_overwrite_are_told_by_their_files() -> None:
    with _graph("node Item { name: String @key  size: I64 }") as graph:
        main = graph.branch()

        def load(numbers: range, size: int, mode: LoadModeName) -> None:
            names = pa.array([f"i{number:06}" for number in numbers])
            sizes = pa.repeat(pa.scalar(size), len(numbers))
            main.load(pa.table({"name": names, "size": sizes}), mode=mode, type="Item")

        load(range(10), 1, "append")
        start = main.snapshot()
        load(range(10, 100_010), 1, "append")
        middle = main.snapshot()
        assert graph.diff(start, middle).counts.to_json() == {
            "inserted": 100_000,
            "updated": 0,
            "deleted": 0,
        }
        load(range(5, 100_005), 1, "overwrite")
        assert graph.diff(middle, main).counts.to_json() == {
            "inserted": 0,
            "updated": 0,
            "deleted": 10,
        }
        load(range(5, 100_006), 2, "overwrite")
        found = graph.diff(start, main)
        assert found.counts.to_json() == {"inserted": 99_996, "updated": 5, "deleted": 5}
        rows = found.to_arrow()
        assert rows.num_rows == 100_006
        assert rows["id"].to_pylist() == sorted(rows["id"].to_pylist())
        assert rows.slice(5, 1).to_pylist() == [
            {
                "kind": "node",
                "type_id": found.summary[0].type_id,
                "type_name": "Item",
                "id": "i000005",
                "op": "update",
                "before": '{"properties":{"name":"i000005","size":1}}',
                "after": '{"properties":{"name":"i000005","size":2}}',
            }
        ]


# ---- views ----


def test_the_document_of_a_diff(main: Branch) -> None:
    start = main.snapshot()
    main.mutate(CHANGES, name="birthday", params={"who": "Bob", "age": 42})
    diff = start.diff(main)
    document = json.loads(json.dumps(diff.to_json()))
    type_ = {"id": diff.summary[0].type_id, "name": "Person"}
    assert document == {
        "old": start.commit.to_json(),
        "new": main.head.to_json(),
        "summary": [{"kind": "node", "type": type_, "inserted": 0, "updated": 1, "deleted": 0}],
        "schema_changes": [],
        "changes": [
            {
                "kind": "node",
                "type": type_,
                "id": "Bob",
                "op": "update",
                "before": {"properties": {"age": 41, "badge": None, "name": "Bob"}},
                "after": {"properties": {"age": 42, "badge": None, "name": "Bob"}},
            }
        ],
    }


def test_people_see_counts_and_the_properties_that_changed(main: Branch) -> None:
    start = main.snapshot()
    main.load([person("Cyd\n", 29), person("Bob", 42)], mode="merge")
    shown = str(start.diff(main)).splitlines()
    assert shown == [
        f"main version 1 ({start.commit.id}) -> main version 2 ({main.head.id})",
        "",
        "node Person      +1      ~1      -0",
        "",
        "~ node Person Bob",
        "    age: 41 -> 42",
        "+ node Person Cyd\\n",
        "    age: 29",
        '    name: "Cyd\\n"',
    ]
    main.load([person(f"p{number}") for number in range(40)], mode="append")
    many = start.diff(main)
    assert str(many).splitlines()[-1] == "… and 22 more"
    assert len([line for line in many.to_lines() if line.startswith(("+", "~"))]) == 42
    assert list(many.to_lines(changes_max=0))[-1].startswith("node Person")


def test_a_notebook_shows_texts_and_never_runs_them(main: Branch) -> None:
    start = main.snapshot()
    main.load([person("<script>alert(1)</script>", 1), person("Bob", 42)], mode="merge")
    shown = start.diff(main)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<td>age</td><td>41</td><td>42</td>" in shown
    main.load([person(f"p{number}") for number in range(200)], mode="append")
    many = start.diff(main)
    assert "… and 102 more" in many._repr_html_()
    assert many.to_html().count(">insert</td>") == 201
