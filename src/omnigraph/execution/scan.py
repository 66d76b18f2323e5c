"""Rows of one type that satisfy conditions, read from its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.expressions import Params, constant, evaluate
from omnigraph.execution.pinned import pinned
from omnigraph.execution.pushdown import SYSTEM_COLUMNS, push_down
from omnigraph.execution.search import text_candidates
from omnigraph.execution.search.field import is_among
from omnigraph.execution.search.segment_types import RowIds
from omnigraph.execution.text_predicates import check_options
from omnigraph.execution.view import View
from omnigraph.query import typed
from omnigraph.query.typed import Expr, SystemName
from omnigraph.query.walk import subexpressions
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import FEW_IDS, ROW_ID, ROWS_PER_ID
from omnigraph.storage.table import Table
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

    def property(self, _variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        return self.rows[self.shape.columns[name]]

    def system(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        if name is SystemName.TYPE:
            return pa.chunked_array([pa.repeat(self.shape.type_key.name, self.num_rows)])
        return self.rows[SYSTEM_COLUMNS[name]]


def matching(
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
    shape = view.shape(type_key)
    names = physical_names(shape, columns) + ([ROW_ID] if with_row_ids else [])
    found = matching_batches(view, type_key, conditions, params, names=names)
    return pa.Table.from_batches(found, schema=rows_schema(shape, names))


def matching_batches(
    view: View, type_key: TypeKey, conditions: Sequence[Expr], params: Params, *, names: list[str]
) -> Iterator[pa.RecordBatch]:
    """The same rows a batch at a time, with exactly these physical columns."""
    shape, table = view.shape(type_key), view.table(type_key)
    check_options(conditions, lambda expr: constant(expr, params))
    ids = pinned(conditions, shape, params)
    if ids is not None:
        needed = _needed(names, conditions, shape)
        found = table.find(ID_COLUMN, ids, columns=needed) if len(ids) else None
        batches, rest = iter(found.to_batches() if found else ()), tuple(conditions)
    else:
        row_ids, left = text_candidates(view, type_key.name, conditions, params)
        if row_ids is not None and len(row_ids) <= max(FEW_IDS, table.count() // ROWS_PER_ID):
            needed, rest = _needed(names, left, shape), tuple(left)
            batches = iter(table.rows(pa.array(row_ids), columns=needed).to_batches())
        else:
            pushed = push_down(left, shape, params)
            needed, rest = _needed(names, pushed.rest, shape), pushed.rest
            batches = _batches(table, needed, pushed.filter, row_ids)
    for batch in batches:
        kept = _filtered(pa.Table.from_batches([batch]), shape, rest, params).select(names)
        yield from kept.cast(rows_schema(shape, names)).to_batches()


def _batches(
    table: Table, names: list[str], filter_: str | None, row_ids: RowIds | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table that pass a filter and are among some, which are in order, or all."""
    if row_ids is None:
        return table.batches(columns=names, filter=filter_)
    return (
        batch.filter(pa.array(is_among(batch.column(ROW_ID).to_numpy(), row_ids)))
        for batch in table.batches(columns=list(dict.fromkeys([*names, ROW_ID])), filter=filter_)
    )


def physical_names(shape: TableShape, columns: Sequence[str] | None) -> list[str]:
    """The columns to read for some columns, or for all: those of ids and ends come first."""
    all_names = shape.schema.names
    system = [name for name in _SYSTEM if name in all_names]
    return list(dict.fromkeys([*system, *(all_names if columns is None else columns)]))


def satisfying(
    rows: pa.Table, shape: TableShape, conditions: Sequence[Expr], params: Params
) -> pa.Array:
    """Which rows satisfy all conditions, as a mask without nulls."""
    check_options(conditions, lambda expr: constant(expr, params))
    parts = [
        _mask(pa.Table.from_batches([batch]), shape, conditions, params)
        for batch in rows.to_batches()
    ]
    return pa.chunked_array(parts, pa.bool_()).combine_chunks()


def pinned_ids(
    view: View, type_key: TypeKey, conditions: Sequence[Expr], params: Params
) -> pa.Array | None:
    """The ids that conditions restrict the answer to; None when they leave it open."""
    return pinned(conditions, view.shape(type_key), params)


def _filtered(
    rows: pa.Table, shape: TableShape, conditions: Sequence[Expr], params: Params
) -> pa.Table:
    return rows.filter(_mask(rows, shape, conditions, params)) if conditions else rows


def _mask(
    rows: pa.Table, shape: TableShape, conditions: Sequence[Expr], params: Params
) -> pa.Array | pa.ChunkedArray:
    known = TypeRows(rows, shape)
    mask = pa.repeat(pa.scalar(True), rows.num_rows)
    for condition in conditions:
        found = evaluate(condition, known, params)
        if isinstance(found, pa.Scalar):
            found = pa.repeat(pa.scalar(found.as_py() is True), rows.num_rows)
        mask = pc.and_(mask, pc.fill_null(found, False))
    return mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask


def _needed(names: Sequence[str], conditions: Sequence[Expr], shape: TableShape) -> list[str]:
    needed = dict.fromkeys(names)
    for condition in conditions:
        for part in subexpressions(condition):
            match part:
                case typed.PropertyValue() | typed.TextMatch():
                    needed[shape.columns[part.property]] = None
                case typed.SystemValue(name=name) if name is not SystemName.TYPE:
                    needed[SYSTEM_COLUMNS[name]] = None
                case _:
                    pass
    return list(needed)


def rows_schema(shape: TableShape, names: Sequence[str]) -> pa.Schema:
    """The schema of rows with exactly these physical columns; `_rowid` may be among them."""
    hidden = pa.field(ROW_ID, pa.uint64())
    return pa.schema([hidden if name == ROW_ID else shape.schema.field(name) for name in names])
