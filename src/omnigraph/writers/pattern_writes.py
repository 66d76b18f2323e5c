"""What the actions of a statement write for the rows of its source, a column at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import AmbiguousUpdateError, UnusableKeyError, WriteRefusedError
from omnigraph.query import typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import STRING, SystemName
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.entity_ids import compute_entity_ids, generate_ids
from omnigraph.rows.evaluator import Params, RowColumns, is_constant
from omnigraph.rows.json_encoding import encode_json_values
from omnigraph.rows.result_types import to_result_values
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.writers.assignments import evaluate_assignments
from omnigraph.writers.computed_values import ValueSubject, compute_column, repeat_cell
from omnigraph.writers.existing_rows import build_key_conflict
from omnigraph.writers.graph_change import combine_column
from omnigraph.writers.pattern_rows import RowsWithOld, SourceRows

_Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Column: TypeAlias = pa.Array | pa.ChunkedArray
_VALUE_SHOWN_MAX: Final = 60
_END_NAMES: Final = {SOURCE_COLUMN: "from", TARGET_COLUMN: "to"}


@dataclass(frozen=True, slots=True)
class EntityValues:
    """Entities of one type, each once, and the columns that are given for them."""

    type_key: TypeKey
    ids: pa.Array
    columns: Mapping[str, _Column]


def collect_updates(
    action: typed_tree.UpdateBound, rows: SourceRows, view: View, params: Params
) -> Iterator[EntityValues]:
    """What an update assigns to the entities that its variable is bound to, by their type."""
    for type_key, own in _split_by_type(action, rows):
        ids = combine_column(own.get_system_field(action.variable, SystemName.ID))
        values = {
            assign.property: _compute_values(assign, type_key, own, (view, params, ids))
            for assign in action.assignments
        }
        shape = view.get_shape(type_key)
        yield _make_distinct(type_key, ids, values, shape)


def collect_named_updates(
    action: typed_tree.UpdateEach, ids: pa.Array, rows: RowsWithOld, view: View, params: Params
) -> EntityValues:
    """What an update assigns to the entities that rows name by their ids, each once."""
    type_key = TypeKey(TypeKind.EDGE if action.is_edge else TypeKind.NODE, action.type_name)
    values = {
        assign.property: _compute_values(assign, type_key, rows, (view, params, ids))
        for assign in action.assignments
    }
    return _make_distinct(type_key, ids, values, view.get_shape(type_key))


def collect_bound_ids(
    action: typed_tree.DeleteBound, rows: SourceRows
) -> Iterator[tuple[TypeKey, pa.Array]]:
    """The entities that a variable is bound to, by their type, each once."""
    for type_key, own in _split_by_type(action, rows):
        yield type_key, own.get_system_field(action.variable, SystemName.ID).unique()


def list_old_properties(
    action: typed_tree.WriteEach | typed_tree.UpdateEach,
) -> frozenset[str] | None:
    """The properties that values read of the entities they are for; None if they read nothing."""
    parts = [part for each in action.assignments for part in iter_subexpressions(each.value)]
    read = [
        part
        for part in parts
        if isinstance(part, typed_tree.PropertyValue | typed_tree.SystemValue)
        and part.variable == typed_tree.ROW
    ]
    if not read:
        return None
    return frozenset(each.property for each in read if isinstance(each, typed_tree.PropertyValue))


def compute_written_ids(
    action: typed_tree.WriteEach, rows: SourceRows, view: View, params: Params
) -> pa.Array:
    """The entities that a verb with a key writes, one for each row."""
    kind = TypeKind.NODE if action.ends is None else TypeKind.EDGE
    type_key = TypeKey(kind, action.type_name)
    shape = view.get_shape(type_key)
    keys = _compute_keys(action, type_key, rows, (view, params))
    columns = {shape.columns[name]: column for name, column in keys.items()}
    return _derive_ids(shape, columns | _compute_both_ends(action, type_key, rows, params))


def collect_writes(
    action: typed_tree.WriteEach, rows: SourceRows | RowsWithOld, view: View, params: Params
) -> EntityValues:
    """What a verb writes for each row; rows that write one entity must give it equal values."""
    kind = TypeKind.NODE if action.ends is None else TypeKind.EDGE
    type_key = TypeKey(kind, action.type_name)
    shape = view.get_shape(type_key)
    values = _compute_keys(action, type_key, rows, (view, params))
    ends = _compute_both_ends(action, type_key, rows, params)
    columns = {shape.columns[name]: column for name, column in values.items()} | ends
    # The key is first: errors about other values name the entity.
    ids = _derive_ids(shape, columns) if shape.key else None
    for each in action.assignments:
        if each.property not in values:
            found = _compute_values(each, type_key, rows, (view, params, ids))
            values[each.property] = columns[shape.columns[each.property]] = found
    if ids is None:
        return EntityValues(type_key, generate_ids(rows.num_rows), columns)
    values |= {_END_NAMES[column]: nodes for column, nodes in ends.items()}
    found = _make_distinct(type_key, ids, values, shape)
    if action.verb is WriteVerb.CREATE and len(found.ids) < len(ids):
        counted = ids.value_counts()
        is_repeated = pc.greater(counted.field("counts"), 1)
        repeated = counted.field("values").filter(is_repeated)
        raise build_key_conflict(type_key, repeated.to_pylist())
    return found


def _compute_keys(
    action: typed_tree.WriteEach, type_key: TypeKey, rows: RowColumns, place: tuple[View, Params]
) -> dict[str, _Column]:
    """The values of the key, by property."""
    key = place[0].get_shape(type_key).key
    return {
        each.property: _compute_values(each, type_key, rows, (*place, None))
        for each in action.assignments
        if each.property in key
    }


def _compute_both_ends(
    action: typed_tree.WriteEach, type_key: TypeKey, rows: RowColumns, params: Params
) -> dict[str, pa.Array]:
    return {
        column: _compute_ends(expr, type_key, name, (rows, params))
        for (column, name), expr in zip(_END_NAMES.items(), action.ends or (), strict=False)
    }


def _split_by_type(
    action: typed_tree.UpdateBound | typed_tree.DeleteBound, rows: SourceRows
) -> Iterator[tuple[TypeKey, SourceRows]]:
    """The rows with an entity of each type; a row may lack what an optional block binds."""
    kind = TypeKind.EDGE if action.is_edge else TypeKind.NODE
    ids = rows.get_system_field(action.variable, SystemName.ID)
    if ids.null_count:
        rows = SourceRows(rows.table.filter(ids.is_valid()))
    if len(action.types) == 1:
        yield TypeKey(kind, action.types[0]), rows
        return
    for name in action.types:
        is_own = pc.equal(rows.get_system_field(action.variable, SystemName.TYPE), name)
        yield TypeKey(kind, name), SourceRows(rows.table.filter(is_own))


def _compute_values(
    assign: typed_tree.Assign,
    type_key: TypeKey,
    rows: RowColumns,
    place: tuple[View, Params, pa.Array | None],
) -> _Column:
    view, params, ids = place
    type_, shape = view.types[type_key].properties[assign.property].type, view.get_shape(type_key)
    field = shape.schema.field(shape.columns[assign.property])
    if not rows.num_rows:
        # A value matters only where there is an entity to have it.
        return pa.array([], field.type)
    if is_constant(assign.value):
        cells = evaluate_assignments(view.types[type_key], [assign], params)
        return repeat_cell(cells[assign.property], field.type, rows.num_rows)
    subject = ValueSubject(type_key.name, assign.property, type_, ids)
    return compute_column(assign.value, subject, rows, params)


def _compute_ends(
    expr: typed_tree.Expr, type_key: TypeKey, name: str, place: tuple[RowColumns, Params]
) -> pa.Array:
    """The ids of the nodes at one end of edges, `from` or `to`."""
    subject = ValueSubject(type_key.name, name, STRING.as_nullable(), None)
    ids = compute_column(expr, subject, *place)
    if ids.null_count:
        message = f"cannot assign null to an end of {type_key.name}"
        raise subject.build_refusal("required", message, int(np.argmax(ids.is_null())))
    return ids


def _derive_ids(shape: TableShape, columns: Mapping[str, _Column]) -> pa.Array:
    keys = pa.table({column: columns[column] for column in shape.key.values()})
    try:
        return combine_column(compute_entity_ids(keys, shape))
    except UnusableKeyError as failure:
        name = shape.type_key.name
        message = f"{name}.{failure.member}: {failure.value} cannot identify an entity"
        raise WriteRefusedError(message, hint="give every key property a value") from failure


def _make_distinct(
    type_key: TypeKey, ids: pa.Array, values: Mapping[str, _Column], shape: TableShape
) -> EntityValues:
    """Each entity once; its rows must agree on all values."""
    ends = {name: column for column, name in _END_NAMES.items()}
    columns = {shape.columns.get(name) or ends[name]: each for name, each in values.items()}
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) == len(ids):
        return EntityValues(type_key, ids, columns)
    codes = np.asarray(encoded.indices.to_numpy(), np.int64)
    _, firsts = np.unique(codes, return_index=True)
    kept, distinct = pa.array(np.sort(firsts)), {}
    for (name, column), physical in zip(values.items(), columns, strict=True):
        if is_blob(shape.schema.field(physical)):
            # It is the same for all rows, and too large to be copied for each.
            distinct[physical] = column.slice(0, len(kept))
        else:
            _require_equal(type_key, name, (ids, column, firsts[codes]))
            distinct[physical] = column.take(kept)
    return EntityValues(type_key, ids.take(kept), distinct)


def _require_equal(
    type_key: TypeKey, name: str, rows: tuple[pa.Array, pa.Array, _Positions]
) -> None:
    """Refuse different values for one entity; `firsts` is the first row of the same entity."""
    ids, column, firsts = rows
    if not len(column):
        return
    codes = compute_order_codes(column)
    differs = codes != codes[firsts]
    nulls = np.asarray(column.is_null())
    differs = (differs & ~(nulls & nulls[firsts])) | (nulls != nulls[firsts])
    if differs.any():
        row = int(np.argmax(differs))
        shown = _show_value(column, int(firsts[row])), _show_value(column, row)
        raise AmbiguousUpdateError(type_key.name, ids[row].as_py(), name, values=shown)


def _show_value(column: pa.Array, row: int) -> str:
    [value] = encode_json_values(to_result_values(column.slice(row, 1)))
    text = "null" if value is None else repr(value)
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[:_VALUE_SHOWN_MAX]}…"
