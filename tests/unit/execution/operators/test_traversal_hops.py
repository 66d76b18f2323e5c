"""Traversals of random small graphs: what is reached is what the model reaches."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import ModelGraph
from model.reading import Reader
from omnigraph.errors import ResourceLimitError
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.query_budget import Budget
from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import Expand, Operator, Scan, Unit
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import STRING, Compare, Constant, PropertyValue
from unit.execution.model_views import add_edges, add_nodes, model_graph
from unit.execution.operators.model_source import in_order, model_rows, reading_of, shown

SCHEMA = """
node Person { name: String @key }
node Place { name: String @key }
edge Knows: Person -> Person
edge Likes: Person -> Person
edge LivesIn: Person -> Place
edge Rules: Place -> Person
"""
PEOPLE = [f"p{number}" for number in range(6)]
# Ids of places are also ids of people: they are never the same node.
PLACES = PEOPLE[:3]
WORK_MAX = 10**9

_people, _places = st.sampled_from(PEOPLE), st.sampled_from(PLACES)
_chained = st.lists(st.tuples(_people, _people), max_size=14)
_between = st.lists(st.tuples(_people, _places), max_size=8)
_chained_steps = st.lists(
    st.builds(EdgeStep, st.sampled_from(["Knows", "Likes"]), st.booleans()),
    max_size=2,
    unique_by=lambda step: step.edge_type,
)
_between_steps = st.lists(
    st.sampled_from([EdgeStep("LivesIn"), EdgeStep("Rules", is_reversed=True)]),
    max_size=2,
    unique=True,
)


@dataclass(frozen=True)
class Drawn:
    """A graph and a traversal of it."""

    graph: ModelGraph
    root: Operator


@st.composite
def traversals(draw: st.DrawFn) -> Drawn:
    """A traversal from all people, or between all pairs of bound nodes."""
    graph = model_graph(SCHEMA)
    add_nodes(graph, "Person", [{"name": name} for name in PEOPLE])
    add_nodes(graph, "Place", [{"name": name} for name in PLACES])
    for name in ("Knows", "Likes"):
        add_edges(graph, name, [{"@src": a, "@dst": b} for a, b in draw(_chained)])
    add_edges(graph, "LivesIn", [{"@src": a, "@dst": b} for a, b in draw(_between)])
    add_edges(graph, "Rules", [{"@src": b, "@dst": a} for a, b in draw(_between)])
    is_chained = draw(st.booleans())
    steps = tuple(draw(_chained_steps if is_chained else _between_steps))
    target_type = "Person" if is_chained else "Place"
    minimum = draw(st.integers(1, 3))
    is_bound = draw(st.booleans())
    edge = draw(st.sampled_from([None, "e"]))
    leaf: Operator = Scan(Unit(), "a", "Person")
    if is_bound:
        leaf = Scan(leaf, "b", target_type)
    return Drawn(
        graph,
        Expand(
            leaf,
            "a",
            "Person",
            steps,
            "b",
            target_type,
            is_undirected=is_chained and draw(st.booleans()),
            edge_variable=edge,
            is_selection=draw(st.booleans()),
            minimum=1 if edge else minimum,
            maximum=1 if edge else minimum + draw(st.integers(0, 2)),
            target_is_bound=is_bound,
        ),
    )


@given(traversals(), st.booleans())
def test_a_traversal_reaches_what_the_model_reaches(drawn: Drawn, is_counted: bool) -> None:
    reading = reading_of(drawn.graph, drawn.root, is_counted=is_counted)
    reader = Reader(drawn.graph, {}, None, WORK_MAX)
    expected = model_rows(iter(reader.rows(drawn.root, {})), None)
    found = shown(reading, run_pattern(drawn.root, reading))
    assert in_order(found) == in_order(expected)


@given(traversals(), st.booleans())
def test_the_work_of_a_selection_is_that_of_the_model(drawn: Drawn, is_counted: bool) -> None:
    for node in PLACES:
        # The model looks at edges by the id of their end, whatever its type.
        del drawn.graph.nodes["Place"][node]
    drawn.graph.edges["LivesIn"].clear()
    drawn.graph.edges["Rules"].clear()
    reader = Reader(drawn.graph, {}, None, WORK_MAX)
    list(reader.rows(drawn.root, {}))
    work = reader._work
    enough = Budget(work_limit=work)
    run_pattern(drawn.root, reading_of(drawn.graph, drawn.root, budget=enough))
    assert enough.work_left == 0
    if work:
        few = Budget(work_limit=work - 1)
        reading = reading_of(drawn.graph, drawn.root, budget=few, is_counted=is_counted)
        with pytest.raises(ResourceLimitError, match="traversal_work_limit"):
            run_pattern(drawn.root, reading)


@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.parametrize("edge", [None, "e"])
@pytest.mark.parametrize("kept", [frozenset[str](), frozenset({"a", "b"})])
def test_a_condition_on_the_target_may_read_the_source(
    is_bound: bool, edge: str | None, kept: frozenset[str]
) -> None:
    graph = model_graph(SCHEMA)
    add_nodes(graph, "Person", [{"name": name} for name in PEOPLE])
    known = [("p0", "p1"), ("p1", "p0"), ("p2", "p1"), ("p3", "p3"), ("p1", "p4"), ("p1", "p4")]
    add_edges(graph, "Knows", [{"@src": a, "@dst": b} for a, b in known])
    ends = [PropertyValue(variable, "name", STRING) for variable in ("a", "b")]
    conditions = (
        Compare(CompareOp.LT, ends[0], ends[1]),
        Compare(CompareOp.NE, ends[1], Constant("p2", STRING)),
    )
    leaf: Operator = Scan(Unit(), "a", "Person")
    root = Expand(
        Scan(leaf, "b", "Person") if is_bound else leaf,
        "a",
        "Person",
        (EdgeStep("Knows"),),
        "b",
        "Person",
        edge_variable=edge,
        target_is_bound=is_bound,
        conditions=conditions,
    )
    reading = reading_of(graph, root)
    expected = model_rows(iter(Reader(graph, {}, None, WORK_MAX).rows(root, {})), kept)
    found = run_pattern(root, reading, needed=kept)
    assert in_order(shown(reading, found)) == in_order(expected)
    assert found.num_rows == (3 if edge else 2)
