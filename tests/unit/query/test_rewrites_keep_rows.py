"""Random queries on random graphs: every plan of a query gives the rows of its first plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest

from model import ModelGraph
from model.expressions import Entity, Row
from model.reading import Reader
from omnigraph.query.logical_plan import Expand, ReadPlan, Scan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.rewrites import RULES
from unit.query.random_queries import CATALOG, VALUES, WORK_MAX, QueryWriter, random_graph


class FrugalReader(Reader):
    """Reads like the model, but a bound entity has only the properties its operator provides."""

    def scan(self, op: Scan, rows: Iterable[Row]) -> Iterator[Row]:
        for row in super().scan(op, rows):
            yield row | {op.variable: _only(row[op.variable], op.properties)}

    def expand(self, op: Expand, rows: Iterable[Row]) -> Iterator[Row]:
        for row in super().expand(op, rows):
            found = dict(row)
            if not op.target_is_bound:
                found[op.target] = _only(row[op.target], op.properties)
            if op.edge_variable:
                found[op.edge_variable] = _only(row[op.edge_variable], op.edge_properties)
            yield found


def _only(entity: Entity, properties: tuple[str, ...] | None) -> Entity:
    assert properties is not None
    return {name: entity[name] for name in entity if name[0] == "@" or name in properties}


@pytest.mark.parametrize("seed", range(300))
def test_every_rule_keeps_the_rows(seed: int) -> None:
    random = Random(seed)
    graph, text = random_graph(random), QueryWriter(random).query()
    plan = lower_query(compile_query(text, CATALOG).checked)
    assert isinstance(plan, ReadPlan)
    expected = rows(graph, plan)
    for rule in RULES:
        plan = rule(plan, CATALOG)
        assert rows(graph, plan) == expected, f"{rule.__name__}: {text}"
    assert rows(graph, plan, reader=FrugalReader) == expected, text


def rows(graph: ModelGraph, plan: ReadPlan, *, reader: type[Reader] = Reader) -> list[str]:
    read = reader(graph, VALUES, embed=None, work_limit=WORK_MAX)
    found = [repr(row) for row in read.rows(plan.root, {})]
    return found if plan.is_ordered else sorted(found)
