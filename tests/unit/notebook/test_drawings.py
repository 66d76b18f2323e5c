"""What is drawn of results, diffs and neighbourhoods, and what views say of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import EntityNotFoundError, InvalidArgumentError
from omnigraph.html_views import render_document
from omnigraph.notebook import drawings
from omnigraph.notebook.drawings import build_drawing

SCHEMA = "node P { name: String @key  note: String? }\nedge K: P -> P { w: F64?  @key(@src, @dst) }"
ALL = "query q() { match { $a: P  $a k $b } return { $a, $b, $a.name as n } order { n } }"


@pytest.fixture
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with omnigraph.create(f"memory://{request.node.name}", schema=SCHEMA) as made:
        people = [{"name": name} for name in ("a", "b", "c", "d")]
        ends = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "a")]
        knows = [{"from": source, "to": target} for source, target in ends]
        made.branch().load({"P": people, "K": knows}, mode="append")
        yield made


def test_a_neighbourhood_grows_with_its_steps(graph: Graph) -> None:
    found = [build_drawing(graph.branch(), "P", "a", steps=steps) for steps in range(4)]
    assert [len(each.nodes) for each in found] == [1, 2, 3, 4]
    assert [len(each.edges) for each in found] == [0, 2, 3, 4]
    assert found[1].note == "2 nodes, 2 edges"


def test_what_is_beyond_a_bound_is_said(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawings, "NODES_MAX", 2)
    found = build_drawing(graph.branch().query(ALL))
    assert found.note == "2 nodes, 2 edges, and more that are not drawn"
    monkeypatch.setattr(drawings, "EDGES_MAX", 1)
    assert build_drawing(graph.branch().query(ALL)).note.endswith("of the first 1 of 4 rows")
    monkeypatch.setattr(drawings, "NODES_MAX", 9)
    found = build_drawing(graph.branch(), "P", "a")
    assert found.note == "2 nodes, 1 edges, and more that are not drawn"


def test_what_cannot_be_drawn_is_refused(graph: Graph) -> None:
    main = graph.branch()
    for thing in (main.query("query q() { return { 1 as n } }"), "text"):
        with pytest.raises(InvalidArgumentError):
            build_drawing(thing)
    with pytest.raises(EntityNotFoundError, match="there is no P 'z'"):
        build_drawing(main, "P", "z")
    with pytest.raises(InvalidArgumentError, match="9 is not between"):
        build_drawing(main, "P", "a", steps=9)


def test_a_diff_has_what_was_deleted(graph: Graph) -> None:
    graph.create_branch("draft").mutate('query d() { delete P where name = "d" }')
    found = build_drawing(graph.diff("main", "draft"))
    assert {(node["id"], node["op"]) for node in found.nodes} == {("P:d", "delete"), ("P:c", "")}
    assert [(edge["source"], edge["op"]) for edge in found.edges] == [("P:c", "delete")]


def test_views_escape_what_they_show_and_count_what_they_leave_out(
    graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    main = graph.branch()
    main.mutate('query u() { update P set { note: "<script>alert(1)</script>" } where name = "a" }')
    result = main.query("query q() { match { $a: P } return { $a.note as note } order { note } }")
    html = result._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert '<td class="null">null</td>' in html
    result.show(1)
    assert capsys.readouterr().out.endswith("(4 rows, 3 more not shown)\n")
    with pytest.raises(InvalidArgumentError, match="-1 is not a number of rows"):
        result.show(-1)
    long = render_document("<b>", {"n": 1, "rows": [{"x": each} for each in range(60)]})
    assert "&lt;b&gt;" in long
    assert "60 rows, of which the first 50 are shown" in long


def test_every_noun_has_a_view(graph: Graph) -> None:
    main = graph.branch()
    made = main.mutate('query c() { create P { name: "e" } }')
    nouns: list[Any] = [
        *(graph, main, main.snapshot(), main.head, made, graph.tag("v1"), main.optimize()),
        *(main.plan_schema(SCHEMA), graph.diff("v1", "main"), graph.check(), graph.repair()),
        *(
            graph.create_branch("b").plan_merge("main"),
            main.tables()[0],
            next(main.history("P", "e")),
        ),
        main.explain(ALL),
    ]
    for noun in nouns:
        assert "<table" in noun._repr_html_() or "omnigraph-diff" in noun._repr_html_()
    graph.close()
    assert "is closed" in graph._repr_html_()
    assert "is closed" in main._repr_html_()


def test_a_neighbourhood_has_edges_that_are_called_as_words_of_the_language() -> None:
    schema = "node P { name: String @key }\nedge Not: P -> P"
    with omnigraph.create("memory://reserved", schema=schema) as made:
        main = made.branch()
        nodes, edges = [{"name": "a"}, {"name": "b"}], [{"from": "a", "to": "b"}]
        main.load({"P": nodes, "Not": edges}, mode="append")
        assert build_drawing(main, "P", "a").note == "2 nodes, 1 edges"
