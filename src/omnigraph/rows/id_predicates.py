"""Which entities conditions can be about at all: the ids that they name, directly or by key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.columns import TableShape
from omnigraph.rows.comparison import with_both_zeros
from omnigraph.rows.entity_ids import compute_entity_ids
from omnigraph.rows.evaluator import (
    Params,
    evaluate_constant,
    find_few_matchable,
    is_constant,
    poll_of,
)
from omnigraph.rows.pushdown import column_of, iter_conjuncts
from omnigraph.versioning.effects import ID_COLUMN

# Lists for several members of a key multiply; beyond this they pin nothing, nor do longer lists.
COMBINATIONS_MAX = 100_000

_NO_IDS = pa.array([], pa.utf8())
# The ids in the order they were named, without repetitions.
_Ids: TypeAlias = pa.Array
# The distinct values that the columns of an id may hold, where conditions say so.
_Allowed: TypeAlias = dict[str, pa.Array]


def find_candidate_ids(
    conditions: Iterable[Expr], shape: TableShape, params: Params
) -> pa.Array | None:
    """The ids outside of which no row satisfies the conditions; None when any row may."""
    return _collect_ids(tuple(conditions), shape, params)


def find_equality_value(
    conditions: Sequence[Expr], shape: TableShape, params: Params
) -> tuple[str, str | int] | None:
    """The column and the value that conditions ask for, if they are one test for equality.

    A key of one text or integer is the id. What a column cannot hold, or not exactly, is None.
    """
    match conditions:
        case (typed_tree.Compare(CompareOp.EQ, left, right),):
            left, right = (right, left) if is_constant(left) else (left, right)
        case _:
            return None
    column = column_of(left, shape)
    if column is None or not is_constant(right):
        return None
    value, kind = evaluate_constant(right, params), shape.schema.field(column).type
    if isinstance(value, str) and pa.types.is_string(kind):
        return (ID_COLUMN if column in shape.id_columns else column), value
    if type(value) is not int or not pa.types.is_integer(kind):
        return None
    if list(shape.key.values()) == [column]:
        return ID_COLUMN, str(value)
    return (column, value) if _fits(value, kind) else None


def _fits(value: int, kind: pa.DataType) -> bool:
    bounds = np.iinfo(kind.to_pandas_dtype())
    return bool(bounds.min <= value <= bounds.max)


def _collect_ids(conditions: Sequence[Expr], shape: TableShape, params: Params) -> _Ids | None:
    allowed: _Allowed = {}
    pins: list[_Ids] = []
    poll = poll_of(params)
    for condition in iter_conjuncts(conditions):
        poll()
        if is_constant(condition):
            if evaluate_constant(condition, params) is not True:
                return _NO_IDS
        elif isinstance(condition, typed_tree.AnyOf):
            pins += _collect_disjunction_ids(condition, shape, params)
        else:
            _restrict(allowed, condition, shape, params)
    if ID_COLUMN in allowed:
        pins.append(allowed[ID_COLUMN])
    pins += _build_key_ids(allowed, shape)
    return reduce(_intersect, pins) if pins else None


def _intersect(left: pa.Array, right: pa.Array) -> pa.Array:
    """The values of the first that are in the second too."""
    return left.filter(pc.is_in(left, value_set=right))


def _collect_disjunction_ids(
    condition: typed_tree.AnyOf, shape: TableShape, params: Params
) -> list[_Ids]:
    parts: list[_Ids] = []
    for operand in condition.operands:
        found = _collect_ids((operand,), shape, params)
        if found is None:
            return []
        parts.append(found)
    return [pa.concat_arrays(parts).unique()]


def _build_key_ids(allowed: _Allowed, shape: TableShape) -> list[_Ids]:
    columns = list(shape.key.values())
    if not columns or not allowed.keys() >= set(columns):
        return []
    if prod(len(allowed[column]) for column in columns) > COMBINATIONS_MAX:
        return []
    values = [_select_usable(allowed[column]) for column in columns]
    # Every combination of a value of each column.
    places = np.indices([len(each) for each in values]).reshape(len(values), -1)
    arrays = [
        each.take(pa.array(at)).cast(shape.schema.field(column).type)
        for column, each, at in zip(columns, values, places, strict=True)
    ]
    ids = compute_entity_ids(pa.table(arrays, names=columns), shape)
    return [ids.combine_chunks().unique()]


def _select_usable(values: pa.Array) -> pa.Array:
    """The values that an id can be made of."""
    return values.filter(pc.is_finite(values)) if pa.types.is_floating(values.type) else values


def _restrict(allowed: _Allowed, condition: Expr, shape: TableShape, params: Params) -> None:
    match condition:
        case typed_tree.Compare(CompareOp.EQ, left, right):
            if is_constant(left):
                left, right = right, left
        case typed_tree.Member(left, right):
            pass
        case _:
            return
    column = column_of(left, shape)
    is_part = column == ID_COLUMN or column in shape.key.values()
    if column is None or not is_part or not is_constant(right):
        return
    found = evaluate_constant(right, params)
    items = found if isinstance(condition, typed_tree.Member) else (found,)
    kind = shape.schema.field(column).type
    possible = find_few_matchable(items, kind, params, count_max=COMBINATIONS_MAX)
    if possible is None:
        return
    known = allowed.get(column)
    allowed[column] = possible if known is None else _intersect(known, with_both_zeros(possible))
