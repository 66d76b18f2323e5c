"""Which entities records name by a key, or by an id."""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.rows.comparison import compare_values, to_numpy
from omnigraph.rows.entity_ids import compute_entity_ids
from omnigraph.rows.evaluator import Params, evaluate
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import combine_column
from omnigraph.writers.pattern_rows import SourceRows

_ID_NAME: Final = "@id"
_Mask = npt.NDArray[np.bool_]


def type_key_of(action: typed_tree.RecordAction) -> TypeKey:
    """The type that an action is about."""
    match action:
        case typed_tree.WriteEach(type_name, ends):
            return TypeKey(TypeKind.NODE if ends is None else TypeKind.EDGE, type_name)
        case typed_tree.UpdateEach() | typed_tree.DeleteEach():
            kind = TypeKind.EDGE if action.is_edge else TypeKind.NODE
            return TypeKey(kind, action.type_name)


def find_named_entities(
    action: typed_tree.UpdateEach | typed_tree.DeleteEach,
    rows: SourceRows,
    view: View,
    params: Params,
) -> tuple[pa.Array, SourceRows]:
    """The id that each row names, and those rows; other rows name nothing that could exist."""
    shape = view.get_shape(type_key_of(action))
    columns = {_ID_NAME: ID_COLUMN} | dict(shape.key)
    members: dict[str, pa.Array] = {}
    masks: list[_Mask] = []
    for each in action.identity:
        column = columns[each.property]
        values = _evaluate_column(each.value, rows, params)
        members[column], is_possible = _fit_member(values, shape.schema.field(column).type)
        masks.append(is_possible)
    mask = pa.array(reduce(np.logical_and, masks))
    kept = pa.table(members).filter(mask)
    found = kept[ID_COLUMN] if ID_COLUMN in members else compute_entity_ids(kept, shape)
    return combine_column(found), SourceRows(rows.table.filter(mask))


def _evaluate_column(expr: typed_tree.Expr, rows: SourceRows, params: Params) -> pa.Array:
    found = evaluate(expr, rows, params)
    if isinstance(found, pa.Scalar):
        return pa.repeat(found, rows.num_rows)
    return combine_column(found) if isinstance(found, pa.ChunkedArray) else found


def _fit_member(values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, _Mask]:
    """Values as a column has them, and which of them it can have."""
    plain = values if values.type == kind else pc.cast(values, kind, safe=False)
    is_possible = to_numpy(plain.is_valid())
    if pa.types.is_floating(kind):
        is_possible &= np.isfinite(to_numpy(plain))
    if values.type != kind:
        is_equal = compare_values(CompareOp.EQ, plain, values)
        is_possible &= to_numpy(pc.fill_null(is_equal, False))
    return plain, is_possible
