"""Conflicts that are decided one by one: with lines, or by a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import (
    EntityConflict,
    InvalidArgumentError,
    MergeConflictError,
    ResolutionStaleError,
)
from unit.writers.merge.merge_world import change, new_graph, problems

SCHEMA = """
node P { k: String @key  t: String?  n: I32?  e: String? @unique  @range(n, 0..100) }
edge K: P -> P @card(0..1) { note: String? }
"""


def node(key: str, **values: object) -> dict[str, object]:
    return {"type": "P", "data": {"k": key, **values}}


def update(key: str, values: str) -> str:
    return f'update P set {{ {values} }} where k = "{key}"'


def take(id_: str, taken: object, **named: str) -> dict[str, object]:
    return {"type": "P", "id": id_, **named, "take": taken}


def shown(graph: Graph) -> dict[str, tuple[Any, ...]]:
    found = graph.branch().query(
        "query q() { match { $p: P } return { $p.k as k, $p.t as t, $p.n as n, $p.e as e } }"
    )
    return {row["k"]: (row["t"], row["n"], row["e"]) for row in found.to_pylist()}


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph whose branch `review` conflicts with main in every way that is decided."""
    with new_graph(*(node(key, t="0", n=1) for key in "abcde"), schema=SCHEMA) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        for branch, side in ((main, "ours"), (review, "theirs")):
            change(branch, update("a", f't: "{side}", n: {len(side)}'))
            change(branch, update("b", f't: "{side}"'))
            change(branch, f'insert P {{ k: "new-{side}", e: "same" }}')
        change(main, 'delete P where k = "c"')
        change(review, update("c", "n: 9"))
        change(review, 'delete P where k = "d"')
        change(main, update("d", "n: 9"))
        change(review, update("b", "n: 5"))
        yield graph


DECISIONS = [
    take("a", "theirs", property="t"),
    take("a", {"value": 77}, property="n"),
    take("b", "base", property="t"),
    take("c", "theirs"),
    take("d", "base"),
    take("new-theirs", {"value": "other"}, property="e"),
]


def test_each_conflict_is_decided_on_its_own(graph: Graph) -> None:
    main = graph.branch()
    plan = main.plan_merge("review")
    lines = list(plan.iter_decision_lines())
    assert [(line.get("id"), line.get("property")) for line in lines[1:]] == [
        ("a", "n"),
        ("a", "t"),
        ("b", "t"),
        ("c", None),
        ("d", None),
        ("new-theirs", None),
    ]
    assert (lines[1]["base"], lines[1]["ours"], lines[1]["theirs"], lines[1]["take"]) == (
        1,
        4,
        6,
        None,
    )
    result = main.merge("review", resolve=[lines[0], *DECISIONS])
    assert shown(graph) == {
        "a": ("theirs", 77, None),
        # What only one side changed is kept beside a decision.
        "b": ("0", 5, None),
        "c": ("0", 9, None),
        "d": ("0", 1, None),
        "e": ("0", 1, None),
        "new-ours": (None, None, "same"),
        "new-theirs": (None, None, "other"),
    }
    assert result.summary["node:P"].total == 5
    kept = main.head.decisions
    assert [(each.entity_id, each.property, each.kind, each.take) for each in kept][:2] == [
        ("a", "t", "divergent_update", "theirs"),
        ("a", "n", "divergent_update", "value"),
    ]
    assert len(kept) == len(DECISIONS)
    assert problems(graph) == []
    assert main.merge("review").outcome == "already_up_to_date"


def test_decisions_are_shown_with_the_entity(graph: Graph) -> None:
    main = graph.branch()
    main.merge("review", resolve=DECISIONS)
    [newest, *_] = main.history("P", "a")
    assert [(each.property, each.take) for each in newest.commit.decisions] == [
        ("t", "theirs"),
        ("n", "value"),
    ]
    blamed = main.blame("P", "a")["n"]
    assert blamed is not None
    assert blamed.id == main.head.id
    assert blamed.to_json()["decisions"][1]["take"] == "value"


def test_what_is_left_open_is_for_prefer_or_stays_a_conflict(graph: Graph) -> None:
    main = graph.branch()
    mended = take("new-ours", "delete")
    with pytest.raises(MergeConflictError) as caught:
        main.merge("review", resolve=[mended, take("a", None), take("c", "delete")])
    assert [each.entity_id for each in caught.value.conflicts] == ["a", "b", "d"]
    main.merge("review", resolve=[mended, take("b", "theirs")], prefer="ours")
    assert shown(graph) == {
        "a": ("ours", 4, None),
        "b": ("theirs", 5, None),
        "d": ("0", 9, None),
        "e": ("0", 1, None),
        "new-theirs": (None, None, "same"),
    }


def test_a_function_decides_too(graph: Graph) -> None:
    asked: list[str] = []

    def decide(conflict: EntityConflict) -> object:
        asked.append(f"{conflict.entity_id} {conflict.kind}")
        if conflict.kind == "unique_violation":
            return {"value": {"e": None}}
        return {"t": "ours", "n": "base"} if conflict.entity_id == "a" else "theirs"

    graph.branch().merge("review", resolve=decide)
    assert len(asked) == 5
    assert shown(graph) == {
        "a": ("ours", 1, None),
        "b": ("theirs", 5, None),
        "c": ("0", 9, None),
        "e": ("0", 1, None),
        "new-ours": (None, None, "same"),
        "new-theirs": (None, None, None),
    }


def test_a_decision_is_checked_like_a_write(graph: Graph) -> None:
    main = graph.branch()
    others = [each for each in DECISIONS if each.get("property") != "n"]
    with pytest.raises(MergeConflictError) as caught:
        main.merge("review", resolve=[*others, take("a", {"value": 101}, property="n")])
    assert [each.kind for each in caught.value.conflicts] == ["value_constraint_violation"]
    with pytest.raises(InvalidArgumentError, match=r"P\.n of 'a': n: expects Int32, got 'x'"):
        main.merge("review", resolve=[*others, take("a", {"value": "x"}, property="n")])
    with pytest.raises(InvalidArgumentError, match="'k' is part of the key"):
        main.merge("review", resolve=[take("new-theirs", {"value": "z"}, property="k")])


def test_decisions_about_other_conflicts_are_stale(graph: Graph) -> None:
    main = graph.branch()
    [header, *_] = main.plan_merge("review").iter_decision_lines()
    change(main, update("e", "n: 2"))
    # Another commit, but the same conflicts.
    assert not main.plan_merge("review", resolve=[header, *DECISIONS]).conflicts
    change(main, update("b", 't: "again"'))
    with pytest.raises(ResolutionStaleError, match="are other ones by now"):
        main.merge("review", resolve=[header, *DECISIONS])


WRONG: list[tuple[Any, str]] = [
    ([take("e", "ours")], "P of 'e' is not in a conflict that 'ours' decides"),
    ([take("a", "ours", property="e")], "P.e of 'a' is not in a conflict"),
    ([take("new-theirs", "theirs")], "not in a conflict that 'theirs' decides"),
    ([take("a", "ours"), take("a", "theirs")], "line 2: P of 'a' is decided twice"),
    (
        [take("a", "ours", property="t"), take("a", "theirs")],
        "P.t of 'a' has a line beside that of its entity",
    ),
    ([take("a", "mine")], "line 1: `take` is 'ours', 'theirs', 'base', 'delete'"),
    ([take("a", {"value": 1})], "without `property`, a value is an object"),
    ([take("a", "delete", property="n")], "'delete' is about an entity"),
    ([{"type": "P", "id": "a"}], "`take` is missing"),
    ([{"id": "a", "take": "ours"}], "by either `type` or `edge`"),
    ([{**take("a", "ours"), "tak": 1}], "a decision has no member 'tak'"),
    (["ours"], "line 1: it is not an object"),
    ("ours", "it is neither lines of decisions nor a function"),
]


def test_a_wrong_line_is_refused(graph: Graph) -> None:
    main, head = graph.branch(), graph.branch().head.id
    for lines, message in WRONG:
        with pytest.raises(InvalidArgumentError, match="resolve: ") as caught:
            main.merge("review", resolve=lines)
        assert message in caught.value.message
    assert main.head.id == head


def test_a_value_of_an_entity_leaves_the_rest_to_the_property_rules() -> None:
    schema = "node P { k: String @key  t: String?  n: I32?  m: I32?  c: I32? merge counter }"
    with new_graph(node("a", t="0", n=0, m=0, c=1), schema=schema) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        change(main, update("a", 't: "ours", n: 1, c: 11'))
        change(review, update("a", 't: "theirs", n: 2, m: 2, c: 21'))
        lines = [take("a", {"value": {"t": "new"}})]
        [conflict] = main.plan_merge(review, resolve=lines).conflicts
        assert conflict.properties == ("n",)
        main.merge(review, resolve=lines, prefer="theirs")
        text = "query q() { match { $p: P } return { $p.t, $p.n, $p.m, $p.c } }"
        assert main.query(text).to_pylist() == [{"p.t": "new", "p.n": 2, "p.m": 2, "p.c": 31}]


TOGETHER = "node P { k: String @key  x: I32?  y: I32?  z: I32?  @together(k, x, y) }"
DIVIDED: list[tuple[list[dict[str, object]], str]] = [
    (
        [take("a", "ours", property="x"), take("a", "theirs", property="y")],
        "P.x of 'a' and P.y of 'a' are one value: 'ours' or 'theirs' is for both",
    ),
    (
        [take("a", "theirs", property="y"), take("a", "base", property="x")],
        "P.y of 'a' and P.x of 'a' are one value: 'theirs' or 'base' is for both",
    ),
    (
        [take("a", {"value": 9}, property="x"), take("a", "theirs", property="y")],
        "P.x of 'a' and P.y of 'a' are one value: 'value' or 'theirs' is for both",
    ),
    (
        [take("a", {"value": 9}, property="x")],
        "P.x of 'a' is one value with y: a value is for all of them",
    ),
    (
        [take("a", {"value": {"y": 9}})],
        "P.y of 'a' is one value with x: a value is for all of them",
    ),
]


def test_properties_that_are_one_value_are_decided_as_one() -> None:
    with new_graph(node("a", x=0, y=0, z=0), schema=TOGETHER) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        change(main, update("a", "x: 1, y: 1"))
        change(review, update("a", "y: 2, z: 2"))
        [conflict] = main.plan_merge(review).conflicts
        assert conflict.properties == ("k", "x", "y")
        for lines, message in DIVIDED:
            with pytest.raises(InvalidArgumentError) as caught:
                main.merge(review, resolve=lines)
            assert message in caught.value.message
        for name, lines, expected in (
            ("side", [take("a", "theirs", property="x")], (0, 2, 2)),
            ("base", [take("a", "base", property="x")], (0, 0, 2)),
            ("value", [take("a", {"value": {"x": 7, "y": 8}})], (7, 8, 2)),
        ):
            copy = graph.create_branch(name, source="main")
            copy.merge(review, resolve=lines)
            text = "query q() { match { $p: P } return { $p.x, $p.y, $p.z } }"
            assert tuple(copy.query(text).to_pylist()[0].values()) == expected


def test_edges_are_decided_and_ended() -> None:
    edge: dict[str, object] = {
        "edge": "K",
        "from": "a",
        "to": "b",
        "id": "k1",
        "data": {"note": "0"},
    }
    with new_graph(*map(node, "abc"), edge, schema=SCHEMA) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        for branch, end in ((main, "b"), (review, "c")):
            branch.load([{**edge, "to": end, "data": {"note": end}}], mode="merge")
        change(main, 'delete P where k = "c"')
        [conflict] = main.plan_merge(review, prefer="theirs").conflicts
        assert (conflict.kind, conflict.entity_id) == ("orphan_edge", "k1")
        lines: list[dict[str, object]] = [
            {"edge": "K", "id": "k1", "property": "note", "take": "theirs"},
            {"edge": "K", "id": "k1", "property": "@dst", "take": {"value": "a"}},
        ]
        main.merge(review, resolve=lines)
        text = "query q() { match { $a: P $a $k:k $b } return { $b.k, $k.note } }"
        assert main.query(text).to_pylist() == [{"b.k": "a", "k.note": "c"}]
        assert problems(graph) == []
