"""Rows of one type that satisfy conditions, read from its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.execution.search import find_text_candidates
from omnigraph.execution.search.field_index import RowIds
from omnigraph.query import typed_tree
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import Expr, SystemName
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.evaluator import Params, evaluate_constant
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.rows.pushdown import SYSTEM_COLUMNS, push_down
from omnigraph.rows.row_filter import compute_mask
from omnigraph.rows.row_order import RowIndices
from omnigraph.rows.text_predicates import require_valid_options
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.sorted_search import are_among
from omnigraph.storage.tables.row_ids import FEW_IDS, ROW_ADDRESS, ROW_ID, ROWS_PER_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN

_SYSTEM = (ID_COLUMN, SOURCE_COLUMN, TARGET_COLUMN)


@dataclass(frozen=True)
class TypeRows:
    """Rows of one type in memory, as expressions see them; every variable stands for the row."""

    rows: pa.Table
    shape: TableShape

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        count: int = self.rows.num_rows
        return count

    def get_property(self, _variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        return self.rows[self.shape.columns[name]]

    def get_system_field(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        if name is SystemName.TYPE:
            return pa.chunked_array([pa.repeat(self.shape.type_key.name, self.num_rows)])
        return self.rows[SYSTEM_COLUMNS[name]]

    def evaluate_directly(self, _condition: Expr, _params: Params) -> None:
        """Conditions are about values."""
        return

    def take(self, places: RowIndices) -> TypeRows:
        """Some of the rows."""
        return TypeRows(self.rows.take(pa.array(places)), self.shape)


def scan_matching(
    view: View,
    type_key: TypeKey,
    conditions: Sequence[Expr],
    params: Params,
    *,
    columns: Sequence[str] | None = None,
    with_row_ids: bool = False,
) -> pa.Table:
    """The rows of a type that satisfy all conditions, as physical columns.

    `columns` None means all; `__id` and the ends of edges are always there, `_rowid` if asked for.
    """
    shape = view.get_shape(type_key)
    names = list_physical_columns(shape, columns) + ([ROW_ID] if with_row_ids else [])
    found = scan_matching_batches(view, type_key, conditions, params, names=names)
    return pa.Table.from_batches(found, schema=build_rows_schema(shape, names))


def scan_matching_batches(
    view: View, type_key: TypeKey, conditions: Sequence[Expr], params: Params, *, names: list[str]
) -> Iterator[pa.RecordBatch]:
    """The same rows a batch at a time, with exactly these physical columns."""
    shape, table = view.get_shape(type_key), view.open_table(type_key)
    require_valid_options(conditions, lambda expr: evaluate_constant(expr, params))
    ids = find_candidate_ids(conditions, shape, params)
    if ids is not None:
        needed = _list_needed_columns(names, conditions, shape)
        found = table.find(ID_COLUMN, ids, columns=needed) if len(ids) else None
        batches, rest = iter(found.to_batches() if found else ()), tuple(conditions)
    else:
        row_ids, left = find_text_candidates(view, type_key.name, conditions, params)
        if row_ids is not None and len(row_ids) <= max(FEW_IDS, table.count() // ROWS_PER_ID):
            needed, rest = _list_needed_columns(names, left, shape), tuple(left)
            batches = iter(table.fetch_rows(pa.array(row_ids), columns=needed).to_batches())
        else:
            pushed = push_down(left, shape, params)
            needed, rest = _list_needed_columns(names, pushed.rest, shape), pushed.rest
            batches = _scan_table(table, needed, pushed.filter, row_ids)
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if rest:
            rows = rows.filter(_compute_mask(rows, shape, rest, params))
        yield from rows.select(names).cast(build_rows_schema(shape, names)).to_batches()


def _scan_table(
    table: Table, names: list[str], filter_: str | None, row_ids: RowIds | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table that pass a filter and are among some, which are in order, or all."""
    if row_ids is None:
        return table.scan_batches(columns=names, filter=filter_)
    return (
        batch.filter(pa.array(are_among(batch.column(ROW_ID).to_numpy(), row_ids)))
        for batch in table.scan_batches(
            columns=list(dict.fromkeys([*names, ROW_ID])), filter=filter_
        )
    )


def list_physical_columns(shape: TableShape, columns: Sequence[str] | None) -> list[str]:
    """The columns to read for some columns, or for all: those of ids and ends come first."""
    all_names = shape.schema.names
    system = [name for name in _SYSTEM if name in all_names]
    return list(dict.fromkeys([*system, *(all_names if columns is None else columns)]))


def evaluate_conditions(
    rows: pa.Table, shape: TableShape, conditions: Sequence[Expr], params: Params
) -> pa.Array:
    """Which rows satisfy all conditions, as a mask without nulls."""
    require_valid_options(conditions, lambda expr: evaluate_constant(expr, params))
    parts = [
        _compute_mask(pa.Table.from_batches([batch]), shape, conditions, params)
        for batch in rows.to_batches()
    ]
    return pa.chunked_array(parts, pa.bool_()).combine_chunks()


def find_type_candidate_ids(
    view: View, type_key: TypeKey, conditions: Sequence[Expr], params: Params
) -> pa.Array | None:
    """The ids that conditions restrict the answer to; None when they leave it open."""
    return find_candidate_ids(conditions, view.get_shape(type_key), params)


def _compute_mask(
    rows: pa.Table, shape: TableShape, conditions: Sequence[Expr], params: Params
) -> pa.Array:
    return pa.array(compute_mask(conditions, TypeRows(rows, shape), params))


def _list_needed_columns(
    names: Sequence[str], conditions: Sequence[Expr], shape: TableShape
) -> list[str]:
    needed = dict.fromkeys(names)
    for condition in conditions:
        for part in iter_subexpressions(condition):
            match part:
                case typed_tree.PropertyValue() | typed_tree.TextMatch():
                    needed[shape.columns[part.property]] = None
                case typed_tree.SystemValue(name=name) if name is not SystemName.TYPE:
                    needed[SYSTEM_COLUMNS[name]] = None
                case _:
                    pass
    return list(needed)


def build_rows_schema(shape: TableShape, names: Sequence[str]) -> pa.Schema:
    """The schema of rows with exactly these columns: `_rowid` and `_rowaddr` may be among them."""
    hidden = {name: pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS)}
    return pa.schema([hidden.get(name) or shape.schema.field(name) for name in names])
