"""Finds the committed rows that a statement matches, and what that result depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimitError
from omnigraph.execution.type_scan import (
    build_rows_schema,
    find_type_candidate_ids,
    list_physical_columns,
    scan_matching_batches,
)
from omnigraph.query import typed_tree
from omnigraph.rows.columns import TableShape
from omnigraph.rows.comparison import Poll, skip_poll
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import WHOLE, ReadSet
from omnigraph.versioning.id_sets import IdSet
from omnigraph.writers.committed_values import read_values

_Positions = np.ndarray[Any, np.dtype[np.int64]]

# What a mutation reads is held until it is committed, and is there about twice while it is written.
MUTATION_BYTES_MAX: Final = 1024 * 1024 * 1024
# Where the copy of a row is, which its replacement needs.
_PLACE: Final = (ROW_ID, ROW_ADDRESS)


def build_condition_reads(
    view: View, type_key: TypeKey, conditions: Sequence[typed_tree.Expr], params: Params
) -> ReadSet:
    """The entities that could change the answer of conditions, whether or not they exist."""
    ids = find_type_candidate_ids(view, type_key, conditions, params)
    return WHOLE if ids is None else ReadSet(ids=IdSet(ids))


def find_matching_rows(
    view: View,
    type_key: TypeKey,
    conditions: Sequence[typed_tree.Expr],
    params: Params,
    *,
    columns: Sequence[str],
    budget: MutationBudget,
) -> pa.Table:
    """The committed rows that satisfy conditions: ids, ends, some columns, and where they are."""
    shape = view.get_shape(type_key)
    names = [*list_physical_columns(shape, columns), *_PLACE]
    batches = []
    for batch in scan_matching_batches(view, type_key, conditions, params, names=names):
        budget.spend_bytes(batch.nbytes)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=build_rows_schema(shape, names))


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """The committed rows of one type, as statements look them up by id."""

    view: View
    shape: TableShape
    budget: MutationBudget

    def find_rows(self, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows of some ids: ids, ends, some columns, and where they are."""
        fields = [self.shape.schema.field(name) for name in columns]
        plain = [field.name for field in fields if not is_blob(field)]
        blobs = [field.name for field in fields if is_blob(field)]
        table = self.view.open_table(self.shape.type_key)
        names = list_physical_columns(self.shape, plain)
        rows = table.find(ID_COLUMN, ids, columns=[*names, *_PLACE])
        self.budget.spend_bytes(rows.nbytes)
        return read_with_blobs(rows, table, blobs, budget=self.budget)


def fill_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of a schema; those that they lack are null."""
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class SharedRows:
    """Committed rows that several statements ask for by values of one column, read together."""

    def __init__(self, view: View, type_key: TypeKey, column: str, budget: MutationBudget) -> None:
        self._view = view
        self._shape = view.get_shape(type_key)
        self._column = column
        self._budget = budget
        # The values by the order in which they are asked for.
        self.values: dict[str | int, int] = {}

    @property
    def is_worthwhile(self) -> bool:
        """Whether there is anything to share."""
        return len(self.values) > 1

    def add_value(self, value: str | int) -> None:
        """Note a value that a statement will want the rows of."""
        self.values.setdefault(value, len(self.values))

    def __contains__(self, value: str | int) -> bool:
        return self._are_found[self.values[value]]

    def select_rows(self, values: Iterable[str | int], *, blobs: Sequence[str] = ()) -> pa.Table:
        """The rows of some values in that order: all columns, of blobs only these."""
        numbers = [self.values[value] for value in values]
        borders, order = self._borders, self._order
        places = np.concatenate([order[borders[at] : borders[at + 1]] for at in numbers])
        table = self._view.open_table(self._shape.type_key)
        return read_with_blobs(self._rows.take(pa.array(places)), table, blobs, budget=self._budget)

    @cached_property
    def _rows(self) -> pa.Table:
        plain = [field.name for field in self._shape.schema if not is_blob(field)]
        table = self._view.open_table(self._shape.type_key)
        rows = table.find(self._column, self._wanted, columns=[*plain, *_PLACE])
        self._budget.spend_bytes(rows.nbytes)
        return rows.combine_chunks()

    @property
    def _wanted(self) -> pa.Array:
        return pa.array(self.values, self._shape.schema.field(self._column).type)

    @cached_property
    def _value_numbers(self) -> _Positions:
        """The number of the value of every row."""
        numbers = pc.index_in(self._rows[self._column], value_set=self._wanted)
        return np.asarray(numbers.to_numpy(), np.int64)

    @cached_property
    def _order(self) -> _Positions:
        return np.argsort(self._value_numbers, kind="stable")

    @cached_property
    def _are_found(self) -> list[bool]:
        """Whether there is a row of each value."""
        found: list[bool] = (np.diff(self._borders) > 0).tolist()
        return found

    @cached_property
    def _borders(self) -> _Positions:
        """Where the rows of each value begin in that order, and where those of the last one end."""
        numbers = self._value_numbers[self._order]
        return np.searchsorted(numbers, np.arange(len(self.values) + 1))


def read_with_blobs(
    rows: pa.Table, table: Table, columns: Sequence[str], *, budget: MutationBudget
) -> pa.Table:
    """Committed rows with columns of blobs, which are read for these rows alone."""
    if not columns:
        return rows
    row_ids = rows[ROW_ID].combine_chunks()
    parts = list(read_values(table, row_ids, columns, spend=budget.spend_bytes))
    fields = [table.schema.field(name) for name in columns]
    blobs = pa.concat_tables([pa.schema(fields).empty_table(), *parts])
    for field in fields:
        rows = rows.append_column(field, blobs[field.name])
    return rows


class MutationBudget:
    """The bytes that the statements of one mutation have read so far."""

    def __init__(self, poll: Poll = skip_poll) -> None:
        self._spent = 0
        self._poll = poll

    def spend_bytes(self, size: int) -> None:
        """Count more bytes; too many in all are refused. One whose time is over stops here."""
        self._poll()
        self._spent += size
        if self._spent > MUTATION_BYTES_MAX:
            raise ResourceLimitError(
                "the number of bytes that one mutation reads",
                limit=MUTATION_BYTES_MAX,
                actual=self._spent,
                hint="narrow its conditions, and run it in several parts",
            )
