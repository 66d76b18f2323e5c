"""Rows to the integers that they are grouped and sorted by.

What has a number already is compared by it; all other values are coded where they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.groups import group_codes
from omnigraph.execution.order import Codes, Places, value_codes
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Entities, Numbers
from omnigraph.execution.tail.values import row_values
from omnigraph.execution.topology.columns import TextColumn
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.query import typed
from omnigraph.query.typed import Expr, SystemName
from omnigraph.query.walk import variables_of


@dataclass(frozen=True, slots=True)
class RowKey:
    """An expression to sort rows by."""

    value: Expr
    batch: Batch
    reading: Reading
    is_descending: bool = False

    def codes(self, places: Places | None) -> list[Codes]:
        """Codes in the order of the values; those of ids are their ranks."""
        batch = self.batch if places is None else _narrowed(self.value, self.batch).take(places)
        match self.value:
            case typed.SystemValue(variable, SystemName.TYPE):
                bound = batch.edges[variable]
                return [_positions(bound.types).take(bound.members)]
            case _ if (known := _numbered(self.value, batch, self.reading)) is not None:
                entities, numbers = known
                return [entities.ranks(numbers)]
            case _ if (texts := _coded(self.value, batch, self.reading)) is not None:
                column, codes = texts
                return [column.ranks_of(codes)]
            case _:
                return value_codes(row_values(self.value, batch, self.reading))


def key_codes(key: Expr, batch: Batch, reading: Reading) -> Codes:
    """Integers from zero that are equal exactly for equal keys."""
    match key:
        case typed.SystemValue(variable, SystemName.TYPE):
            return batch.edges[variable].members
        case _ if (known := _numbered(key, batch, reading)) is not None:
            return known[1]
        case _ if (texts := _coded(key, batch, reading)) is not None:
            return texts[1] + 1
        case _:
            return group_codes(row_values(key, batch, reading))


def _numbered(expr: Expr, batch: Batch, reading: Reading) -> tuple[Entities, Numbers] | None:
    """The entities that an expression gives the ids of, if they are of one type."""
    source = reading.source
    match expr:
        case typed.NodeValue(variable):
            name = SystemName.ID
        case typed.SystemValue(variable, name):
            pass
        case _:
            return None
    if variable in batch.nodes:
        return source.nodes(reading.nodes_of[variable]), batch.nodes[variable]
    bound = batch.edges[variable]
    if len(bound.types) != 1:
        return None
    edges, type_ = source.edges(bound.types[0]), reading.view.catalog.edges[bound.types[0]]
    match name:
        case SystemName.ID:
            return edges, bound.numbers
        case SystemName.SRC:
            return source.nodes(type_.source), edges.sources(bound.numbers)
        case SystemName.DST:
            return source.nodes(type_.target), edges.targets(bound.numbers)
        case SystemName.TYPE:
            return None


def _coded(expr: Expr, batch: Batch, reading: Reading) -> tuple[TextColumn, Codes] | None:
    """The codes of texts, -1 for null, if the source keeps the texts of all entities so."""
    if not isinstance(expr, typed.PropertyValue):
        return None
    known = _numbered(typed.SystemValue(expr.variable, SystemName.ID), batch, reading)
    if known is None:
        return None
    entities, numbers = known
    column = entities.column(expr.property) if isinstance(entities, DenseEntities) else None
    return (column, column.codes_at(numbers)) if isinstance(column, TextColumn) else None


def _narrowed(expr: Expr, batch: Batch) -> Batch:
    """The rows with nothing but what an expression reads."""
    names = variables_of(expr)
    return Batch(
        batch.num_rows,
        {name: numbers for name, numbers in batch.nodes.items() if name in names},
        {name: bound for name, bound in batch.edges.items() if name in names},
        scores=batch.scores if isinstance(expr, typed.Score) else None,
    )


def _positions(names: tuple[str, ...]) -> Places:
    """The position of each name among the sorted ones."""
    positions = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([positions[name] for name in names], np.int64)
