"""Random patterns on random graphs: a plan finds the matches that trying everything finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

import pytest

from model import ModelGraph
from model.expressions import At, Entity, Row, aggregate, compare
from model.reading import Reader
from omnigraph.query import logical_plan, typed_reads, typed_tree
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_lowering import lower_query
from unit.query.random_queries import (
    CATALOG,
    PARAMETERS,
    VALUES,
    WORK_MAX,
    QueryWriter,
    random_graph,
)

_BLOCKS = (typed_reads.ExistsBlock, typed_reads.AggregateBlock)


class Tries:
    """Tries every assignment of a pattern's variables against every clause."""

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph

    def matches(self, pattern: typed_reads.Pattern, outer: Row) -> Iterator[Row]:
        """The rows that satisfy a pattern within an outer row."""
        names = [name for name, _ in (*pattern.nodes, *pattern.edges)]
        nodes = [self._graph.nodes[type_name].values() for _, type_name in pattern.nodes]
        edges = [
            [edge for name in type_names for edge in self._graph.edges[name].values()]
            for _, type_names in pattern.edges
        ]
        # Blocks last: they are the slowest to try.
        clauses = sorted(pattern.clauses, key=lambda clause: isinstance(clause, _BLOCKS))
        for entities in product(*nodes, *edges):
            row = outer | dict(zip(names, entities, strict=True))
            if all(self._holds(clause, row) for clause in clauses):
                yield row

    def _holds(self, clause: typed_reads.Clause, row: Row) -> bool:
        match clause:
            case typed_reads.Binding():
                return all(At(row, VALUES)(each) is True for each in clause.conditions)
            case typed_reads.Condition():
                return At(row, VALUES)(clause.value) is True
            case typed_reads.Traversal():
                return self._is_step(clause, row)
            case typed_reads.ExistsBlock():
                return any(True for _ in self.matches(clause.pattern, row)) != clause.is_negated
            case typed_reads.AggregateBlock():
                argument = clause.argument or typed_tree.Constant(True, typed_tree.BOOL)
                matches = self.matches(clause.pattern, row)
                found = aggregate(
                    clause.function, [At(inner, VALUES)(argument) for inner in matches]
                )
                return compare(clause.op, found, At(row, VALUES)(clause.value)) is True
            case _:
                raise AssertionError(f"{type(clause).__name__} is not written here")

    def _is_step(self, step: typed_reads.Traversal, row: Row) -> bool:
        ends = (row[step.source]["@id"], row[step.target]["@id"])
        if step.edge_variable is not None:
            return ends in self._pairs(step, [row[step.edge_variable]])
        edges = [edge for each in step.steps for edge in self._graph.edges[each.edge_type].values()]
        return step.minimum <= self._distance(ends, self._pairs(step, edges)) <= step.maximum

    def _pairs(self, step: typed_reads.Traversal, edges: list[Entity]) -> set[tuple[str, str]]:
        reversed_types = {each.edge_type for each in step.steps if each.is_reversed}
        pairs = set()
        for edge in edges:
            if step.is_undirected or edge["@type"] not in reversed_types:
                pairs.add((edge["@src"], edge["@dst"]))
            if step.is_undirected or edge["@type"] in reversed_types:
                pairs.add((edge["@dst"], edge["@src"]))
        return pairs

    def _distance(self, ends: tuple[str, str], pairs: set[tuple[str, str]]) -> float:
        start, goal = ends
        if start == goal:
            return 1 if ends in pairs else float("inf")
        reached, distance = {start}, 0
        while goal not in reached:
            further = reached | {target for source, target in pairs if source in reached}
            if further == reached:
                return float("inf")
            reached, distance = further, distance + 1
        return distance


@pytest.mark.parametrize("seed", range(300))
def test_a_plan_finds_every_match_and_no_other(seed: int) -> None:
    random = Random(seed)
    graph, clauses = random_graph(random, people=3), QueryWriter(random).clauses()
    text = f"query q({PARAMETERS}) {{ match {{ {clauses} }} return {{ $p0.name }} }}"
    checked = compile_query(text, CATALOG).checked
    assert isinstance(checked, typed_reads.Read)
    lowered = lower_query(checked)
    assert isinstance(lowered, logical_plan.ReadPlan)
    assert isinstance(lowered.root, logical_plan.Project)
    found = Reader(graph, VALUES, embed=None, work_limit=WORK_MAX).rows(lowered.root.input, {})
    tried = Tries(graph).matches(checked.pattern, {})
    assert counted(found) == counted(tried), text


def counted(rows: Iterable[Row]) -> Counter[str]:
    return Counter(
        " ".join(f"{name}={row[name]['@type']}/{row[name]['@id']}" for name in sorted(row))
        for row in rows
    )
