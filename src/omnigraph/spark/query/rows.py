"""Rows of a data frame as expressions see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.exact import Values
from omnigraph.execution.expressions import Params, evaluate
from omnigraph.query.typed import Expr, SystemName
from omnigraph.spark.query.layout import Layout
from omnigraph.spark.query.wire import from_wire


@dataclass(frozen=True)
class FrameRows:
    """Rows in memory whose columns are those of a layout."""

    rows: pa.Table
    layout: Layout

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        count: int = self.rows.num_rows
        return count

    def get_property(self, variable: str, name: str) -> pa.Array:
        """The values of a property."""
        found = self.layout.variables[variable].properties.get(name)
        # A selection that fits no edge has no rows, and no properties.
        return pa.nulls(0) if found is None else from_wire(self.rows[found.column], found.kind)

    def get_system_field(self, variable: str, name: SystemName) -> pa.Array:
        """The values of a system field."""
        field = self.layout.variables[variable].system[name]
        return from_wire(self.rows[field.column], field.kind)


def evaluate_rows(expr: Expr, rows: FrameRows, params: Params) -> Values:
    """A value for each row."""
    found = evaluate(expr, rows, params)
    if not isinstance(found, pa.Scalar):
        return found
    # Arrow repeats a vector once or more, but not zero times.
    return pa.repeat(found, max(rows.num_rows, 1)).slice(0, rows.num_rows)


def filter_satisfying(rows: FrameRows, conditions: Iterable[Expr], params: Params) -> pa.Table:
    """The rows that satisfy all conditions."""
    found = rows
    for condition in conditions:
        mask = pc.fill_null(evaluate_rows(condition, found, params), False)
        found = FrameRows(found.rows.filter(mask), found.layout)
    return found.rows
