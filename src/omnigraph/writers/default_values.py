"""Defaults: the values that new entities get of properties of which they are given none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.type_scan import TypeRows
from omnigraph.query import typed_tree
from omnigraph.query.entity_conditions import compile_default
from omnigraph.query.typed_tree import NOW_NAME, Value
from omnigraph.rows.columns import TableShape
from omnigraph.rows.evaluator import Params
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell
from omnigraph.writers.computed_values import (
    RowAssignments,
    ValueSubject,
    bind_assignments,
    compute_column,
    find_unfit_rows,
    repeat_cell,
)
from omnigraph.writers.graph_change import AbsentRows, combine_column

_Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
_Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
# Takes the rows for which a default has no value, and the property.
RejectRows: TypeAlias = Callable[[_Mask, str], None]


def has_defaults(type_: NodeType | EdgeType) -> bool:
    """Whether some property of a type has a default."""
    return any(each.default is not None for each in type_.properties.values())


def format_unfit_default(type_name: str, name: str) -> str:
    """What is wrong with a record for which a default has no value."""
    return f"the default of {type_name}.{name} has no value that the property can hold"


def list_default_columns(type_: NodeType | EdgeType, shape: TableShape) -> frozenset[str]:
    """The physical columns of properties with a default."""
    return frozenset(
        shape.columns[name] for name, each in type_.properties.items() if each.default is not None
    )


@dataclass(frozen=True, slots=True)
class DefaultValues:
    """The defaults of a type at one time, each after those that it reads."""

    type_: NodeType | EdgeType
    shape: TableShape
    # By physical column: the same for all rows, and what reads a row.
    cells: Mapping[str, Cell]
    computed: Mapping[str, typed_tree.Assign]
    params: Params

    @classmethod
    def from_type(cls, type_: NodeType | EdgeType, shape: TableShape, now: Value) -> DefaultValues:
        """The defaults of a type, when it is `now` in milliseconds."""
        names = list[str]()
        for name in type_.properties:
            _add_in_order(type_, name, names)
        assigns = [compile_default(name, type_) for name in names]
        found = bind_assignments(type_, shape, assigns, {NOW_NAME: now})
        return cls(type_, shape, found.cells, found.computed, found.params)

    @property
    def columns(self) -> frozenset[str]:
        """The physical columns that have a default."""
        return frozenset({*self.cells, *self.computed})

    def list_steps(self, given: Collection[str]) -> list[RowAssignments]:
        """What a new entity is assigned that has a value in some columns, in this order."""
        cells = {column: cell for column, cell in self.cells.items() if column not in given}
        parts: list[tuple[Mapping[str, Cell], Mapping[str, typed_tree.Assign]]] = [(cells, {})]
        parts += [
            ({}, {column: each}) for column, each in self.computed.items() if column not in given
        ]
        return [
            RowAssignments(self.type_, self.shape, *part, self.params)
            for part in parts
            if any(part)
        ]

    def fill_rows(
        self, rows: pa.Table, absent: AbsentRows, *, reject: RejectRows | None = None
    ) -> pa.Table:
        """Rows with the defaults of the columns that they lack.

        A default without a value for a row is an error, unless the rows are to be rejected: then
        they keep null.
        """
        for column in (*self.cells, *self.computed):
            if column in absent and absent[column].any():
                places = np.flatnonzero(absent[column])
                if reject is not None and column in self.computed:
                    places = self._reject_unfit(rows, places, self.computed[column], reject)
                rows = self._fill_column(rows, column, places)
        return rows

    def _reject_unfit(
        self, rows: pa.Table, places: _Positions, assign: typed_tree.Assign, reject: RejectRows
    ) -> _Positions:
        """The rows for which a default has a value; others are rejected."""
        some = rows.take(pa.array(places))
        subject, seen = self._subject_of(assign, some), TypeRows(some, self.shape)
        unfit = find_unfit_rows(assign.value, subject, seen, self.params)
        if unfit.any():
            mask = np.zeros(rows.num_rows, np.bool_)
            mask[places[unfit]] = True
            reject(mask, assign.property)
        return places[~unfit]

    def _fill_column(self, rows: pa.Table, column: str, places: _Positions) -> pa.Table:
        is_whole = len(places) == rows.num_rows
        values = self._compute(rows if is_whole else rows.take(pa.array(places)), column)
        index = rows.schema.get_field_index(column)
        if not is_whole:
            every = pa.chunked_array([*rows[column].chunks, *values.chunks], values.type)
            order = np.arange(rows.num_rows)
            order[places] = rows.num_rows + np.arange(len(places))
            values = every.take(pa.array(order))
        return rows.set_column(index, rows.schema.field(index), values)

    def _compute(self, rows: pa.Table, column: str) -> pa.ChunkedArray:
        kind = rows.schema.field(column).type
        if column in self.cells:
            return repeat_cell(self.cells[column], kind, rows.num_rows)
        assign, seen = self.computed[column], TypeRows(rows, self.shape)
        subject = self._subject_of(assign, rows)
        return pa.chunked_array([compute_column(assign.value, subject, seen, self.params)], kind)

    def _subject_of(self, assign: typed_tree.Assign, rows: pa.Table) -> ValueSubject:
        type_ = self.type_.properties[assign.property].type
        ids = combine_column(rows[ID_COLUMN]) if ID_COLUMN in rows.column_names else None
        return ValueSubject(self.type_.name, assign.property, type_, ids)


def _add_in_order(type_: NodeType | EdgeType, name: str, names: list[str]) -> None:
    """Add a property with a default after those that it reads; the checker refuses cycles."""
    default = type_.properties[name].default
    if default is None or name in names:
        return
    for each in default.members:
        _add_in_order(type_, each, names)
    names.append(name)


def mask_everywhere(columns: Collection[str], count: int) -> Mapping[str, _Mask]:
    """Columns that none of some rows has."""
    return dict.fromkeys(sorted(columns), np.ones(count, np.bool_))
