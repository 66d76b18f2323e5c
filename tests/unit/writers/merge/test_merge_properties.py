"""Merges property by property: what both sides changed of one entity."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgumentError, MergeConflictError
from places import fresh_uri
from unit.writers.merge.merge_world import (
    change,
    edge,
    new_graph,
    person,
    problems,
    put,
    set_age,
)

PHOTO = "base64:" + base64.b64encode(b"abc").decode()
ADA = {"age": 1, "tags": ["a"], "vec": [1.0, 2.0, 3.0, 4.0], "photo": PHOTO, "first": "Ada"}


@pytest.fixture
def graph() -> Iterator[Graph]:
    with new_graph(
        person("ada", **ADA),
        person("bob", age=2),
        {**edge("Knows", "ada", "bob"), "id": "k1"},
    ) as graph:
        graph.create_branch("review")
        yield graph


def test_changes_of_different_properties_are_both_kept(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    set_age(main, "ada", 7)
    other = "base64:" + base64.b64encode(b"another").decode()
    put(review, person("ada", **{**ADA, "vec": [0, 0, 0, 1], "photo": other, "tags": ["a", "b"]}))
    put(review, person("bob", age=2, email="b@x"))
    change(main, 'update Person set { first: "Bob" } where name = "bob"')
    assert [str(each) for each in main.plan_merge(review).done.mixed] == [
        "Person 'ada' (age: ours, photo: theirs, tags: theirs, vec: theirs)",
        "Person 'bob' (email: theirs, first: ours)",
    ]
    result = main.merge(review)
    assert (result.outcome, result.summary["node:Person"].updated) == ("merged", 2)
    assert result.to_json()["mixed_count"] == 2
    line = next(each for each in b"".join(main.export()).splitlines() if b'"name":"ada"' in each)
    for kept in (b'"age":7', b"[0.0,0.0,0.0,1.0]", other.encode(), b'["a","b"]', b'"Ada"'):
        assert kept in line.replace(b" ", b""), (kept, line)
    text = 'query b() { match { $p: Person { name: "bob" } } return { $p.email, $p.first } }'
    assert main.query(text).to_pylist() == [{"p.email": "b@x", "p.first": "Bob"}]
    assert problems(graph) == []
    assert main.merge(review).outcome == "already_up_to_date"


def test_a_conflict_lists_only_what_both_sides_changed(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    put(main, person("ada", **{**ADA, "age": 7, "first": "A"}))
    put(review, person("ada", **{**ADA, "age": 8, "last": "L"}))
    with pytest.raises(
        MergeConflictError, match=r"'ada' was changed on both sides: age$"
    ) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert conflict.to_json()["properties"] == ["age"]
    assert (conflict.base, conflict.ours, conflict.theirs) == ({"age": 1}, {"age": 7}, {"age": 8})
    main.merge(review, prefer="theirs")
    text = 'query a() { match { $p: Person { name: "ada" } } return { $p.age, $p.first, $p.last } }'
    assert main.query(text).to_pylist() == [{"p.age": 8, "p.first": "A", "p.last": "L"}]
    assert dict(main.head.preferred) == {"divergent_update": "theirs"}


def test_preferring_ours_keeps_what_only_theirs_changed(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    set_age(main, "ada", 7)
    put(review, person("ada", **{**ADA, "age": 8, "last": "L"}))
    main.merge(review, prefer="ours")
    text = 'query a() { match { $p: Person { name: "ada" } } return { $p.age, $p.last } }'
    assert main.query(text).to_pylist() == [{"p.age": 7, "p.last": "L"}]


def test_two_inserts_of_one_key_are_joined_unless_a_property_differs(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    put(main, person("eve", age=3), person("fay", age=3))
    put(review, person("eve", age=3, last="E", vec=[1, 1, 1, 1]), person("fay", age=4, last="F"))
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    assert [(each.kind, each.entity_id, each.properties) for each in caught.value.conflicts] == [
        ("divergent_insert", "fay", ("age",))
    ]


def test_whole_entities_are_compared_when_the_caller_wants_it(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    set_age(main, "ada", 7)
    change(review, 'update Person set { last: "L" } where name = "ada"')
    for by in ("entity", "property"):
        plan = main.plan_merge(review, by=by)
        assert plan.conflict_count == (by == "entity")
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review, by="entity")
    [conflict] = caught.value.conflicts
    assert conflict.properties == ()
    assert conflict.message.endswith("changed on both sides: age, last")
    assert (conflict.ours, conflict.theirs) == ({"age": 7}, {"age": 1, "last": "L"})
    with pytest.raises(InvalidArgumentError, match="by: 'row' is neither"):
        main.merge(review, by="row")
    graph.execute("set merge_by = property; branch merge review")
    assert main.head.parents[1] == review.head.id


def test_the_ends_of_an_edge_are_one_value(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    put(main, {**edge("Knows", "ada", "ada"), "id": "k1"})
    put(review, {**edge("Knows", "bob", "bob", note="x"), "id": "k1"})
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    assert caught.value.conflicts[0].properties == ("@dst", "@src")
    main.merge(review, prefer="ours")
    text = "query k() { match { $a: Person $a $k:knows $b } return { $a.name, $b.name, $k.note } }"
    assert main.query(text).to_pylist() == [{"a.name": "ada", "b.name": "ada", "k.note": "x"}]


def test_the_merged_entity_is_validated_as_a_whole(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    put(main, person("eve", first="E", last="F"))
    put(review, person("eve", first="E"), person("ada", **{**ADA, "last": "F"}))
    change(main, 'update Person set { first: "E" } where name = "ada"')
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    assert {each.kind for each in caught.value.conflicts} == {"unique_violation"}
    assert problems(graph) == []


def test_a_property_that_only_one_side_knows_stays_beside_a_change_of_the_other(
    graph: Graph,
) -> None:
    main, review = graph.branch(), graph.branch("review")
    main.apply_schema(main.schema.replace("age: I32?", "age: I32?\n  nick: String?"))
    change(main, 'update Person set { nick: "A" } where name = "ada"')
    set_age(review, "ada", 9)
    main.merge(review)
    text = 'query a() { match { $p: Person { name: "ada" } } return { $p.age, $p.nick } }'
    assert main.query(text).to_pylist() == [{"p.age": 9, "p.nick": "A"}]


def test_a_text_and_the_vector_made_of_it_are_one_value() -> None:
    schema = """node Doc {
      name: String @key
      text: String?
      note: String?
      vec: Vector(2)? @embed(text)
    }"""

    def doc(**values: object) -> dict[str, object]:
        return {"type": "Doc", "data": {"name": "d", **values}}

    with new_graph(doc(text="a", vec=[1, 0]), schema=schema) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        put(main, doc(text="b", vec=[1, 0], note="n"))
        put(review, doc(text="a", vec=[0, 1]))
        with pytest.raises(MergeConflictError) as caught:
            main.merge(review)
        assert caught.value.conflicts[0].properties == ("text", "vec")
        main.merge(review, prefer="theirs")
        text = "query d() { match { $d: Doc } return { $d.text, $d.note } }"
        assert main.query(text).to_pylist() == [{"d.text": "a", "d.note": "n"}]


def test_a_plan_says_which_properties_a_rule_joins() -> None:
    schema = "node P { k: String @key  n: I64? merge counter  t: String? }"
    with omnigraph.create(fresh_uri(), schema=schema) as graph:
        main = graph.branch()
        main.load([{"type": "P", "data": {"k": "a", "n": 1}}], mode="append")
        review = graph.create_branch("review")
        review.mutate('query q() { update P set { n: 5 } where k = "a" }')
        main.mutate('query q() { update P set { n: 3, t: "x" } where k = "a" }')
        assert [each.kind for each in main.plan_merge(review, by="entity").conflicts] == [
            "divergent_update"
        ]
        plan = main.plan_merge(review)
        assert list(map(str, plan.done.mixed)) == ["P 'a' (n: both, t: ours)"]
        main.merge(review)
        found = main.query("query q() { match { $p: P } return { $p.n, $p.t } }")
        assert found.to_pylist() == [{"p.n": 7, "p.t": "x"}]
