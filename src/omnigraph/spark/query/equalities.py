"""Joins by equal values of two rows that no traversal connects.

The keys are only as exact as a join needs: rows with equal values have equal keys. The condition
itself is tested afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.columns import arrow_type_of
from omnigraph.execution.exact import (
    Values,
    comparable_type_of,
    flatten_chunks,
    to_comparable,
    to_numpy,
)
from omnigraph.execution.expressions import Params
from omnigraph.query import plan as plans
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import Compare, Expr
from omnigraph.schema.types import PropertyType
from omnigraph.spark.query.layout import Field, Layout
from omnigraph.spark.query.rows import FrameRows, evaluate_rows
from omnigraph.spark.query.wire import to_wire


@dataclass(frozen=True, slots=True)
class Equality:
    """Two expressions that must be equal, and the column of their values on both sides."""

    left: Expr
    right: Expr
    field: Field


@dataclass(frozen=True)
class JoinKeyStep:
    """Adds to rows what they are joined by."""

    layout: Layout
    params: Params
    keys: tuple[tuple[Field, Expr], ...]

    def run(self, table: pa.Table) -> pa.Table:
        """The rows with the keys."""
        rows = FrameRows(table, self.layout)
        for field, expr in self.keys:
            values = _compute_key_values(evaluate_rows(expr, rows, self.params), field.kind)
            table = table.append_column(field.column, to_wire(values))
        return table


def find_equalities(
    layout: Layout, later: Sequence[plans.Operator], bound: frozenset[str], name: str
) -> Iterator[Equality]:
    """What later filters say is equal of bound rows, by their columns, and of a variable."""
    own = layout.columns_of(name)
    for number, operator in enumerate(later):
        if not isinstance(operator, plans.Filter):
            continue
        match operator.condition:
            case Compare(op=CompareOp.EQ, left=left, right=right):
                pass
            case _:
                continue
        if layout.collect_read_columns(left) <= own:
            left, right = right, left
        kind = _find_key_type(left, right)
        sides = layout.collect_read_columns(left), layout.collect_read_columns(right)
        if kind is not None and all(sides) and sides[0] <= bound and sides[1] <= own:
            yield Equality(left, right, Field(f"j{number}", kind))


def _find_key_type(left: Expr, right: Expr) -> pa.DataType | None:
    """The type that values of both sides are joined at."""
    types = [each.type for each in (left, right) if isinstance(each.type, PropertyType)]
    if len(types) < 2:
        return None
    kinds = {comparable_type_of(arrow_type_of(each)) for each in types}
    if any(pa.types.is_nested(each) or pa.types.is_large_binary(each) for each in kinds):
        return None
    if len(kinds) == 1:
        return kinds.pop()
    is_number = all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in kinds)
    # Equal numbers are equal when rounded too.
    return pa.float64() if is_number else None


def _compute_key_values(values: Values, kind: pa.DataType) -> pa.Array:
    """Values to join by: neither null nor NaN equals anything, and there is one zero."""
    known = flatten_chunks(to_comparable(values))
    if known.type != kind:
        known = known.cast(kind, safe=False)
    if not pa.types.is_floating(kind):
        return known
    numbers = to_numpy(known) + kind.to_pandas_dtype()(0)
    return pa.array(numbers, kind, mask=np.isnan(numbers) | to_numpy(known.is_null()))
