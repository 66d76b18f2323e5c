"""Reading tables in tasks: some fragments of a pinned version at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.splits import group_fragments
from omnigraph.execution.type_scan import evaluate_conditions
from omnigraph.query import logical_plan as plans
from omnigraph.query.tree_walk import iter_subexpressions, variables_of
from omnigraph.query.typed_tree import Expr, PropertyValue, SystemValue, TextMatch
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.evaluator import Params
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.rows.pushdown import SYSTEM_COLUMNS, push_down
from omnigraph.spark.spark_types import to_wire
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.store_address import StoreAddress
from omnigraph.versioning.effects import ID_COLUMN

# Rows that are compared with a set of values at once.
COMBINED_ROWS: Final = 500_000

# So few named ids are looked up by one task.
IDS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class ScanOutput:
    """What a row of a table becomes: columns of it, and others that are the same everywhere."""

    columns: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, str], ...] = ()
    excludes_loops: bool = False

    def project_rows(self, rows: pa.Table) -> pa.Table:
        """The rows with these columns, as they are carried."""
        if self.excludes_loops:
            rows = rows.filter(pc.not_equal(rows[SOURCE_COLUMN], rows[TARGET_COLUMN]))
        found = {name: to_wire(rows[physical]) for name, physical in self.columns}
        for name, value in self.constants:
            found[name] = pa.repeat(pa.scalar(value, pa.utf8()), rows.num_rows)
        return pa.table(found)


@dataclass(frozen=True)
class TableScan:
    """Rows of one table that satisfy conditions; each becomes a row of each output."""

    pin: Pin
    shape: TableShape
    conditions: tuple[Expr, ...]
    outputs: tuple[ScanOutput, ...]
    # Only rows whose value of a column is among these, if there is such a column.
    value_filter: tuple[str, pa.Array] | None = None

    def read_tables(
        self, place: StoreAddress, params: Params, fragments: Sequence[int] | None
    ) -> Iterator[pa.Table]:
        """The rows in some fragments, or in all of them."""
        ids = find_candidate_ids(self.conditions, self.shape, params)
        rest = self.conditions
        table = place.tables.open(self.pin)
        if ids is not None and len(ids) <= IDS_MAX:
            # Named rows are looked up by the task that reads the first fragments.
            if fragments is not None and fragments[0] != table.fragment_ids[0]:
                return
            found = table.find(ID_COLUMN, ids, columns=self._list_columns(rest))
            batches = iter(found.to_batches())
        else:
            pushed = push_down(self.conditions, self.shape, params)
            rest = pushed.rest
            batches = table.scan_batches(
                columns=self._list_columns(rest), filter=pushed.filter, fragments=fragments
            )
        for found in self._filter_values(pa.Table.from_batches([batch]) for batch in batches):
            yield from self._project_outputs(found, rest, params)

    def _filter_values(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows with one of the wanted values, if only some are wanted."""
        if self.value_filter is None:
            yield from tables
            return
        column, values = self.value_filter
        for rows in _combine_tables(tables):
            yield rows.filter(pc.is_in(rows[column], value_set=values))

    def _project_outputs(
        self, rows: pa.Table, conditions: Sequence[Expr], params: Params
    ) -> Iterator[pa.Table]:
        if conditions:
            rows = rows.filter(evaluate_conditions(rows, self.shape, conditions, params))
        for output in self.outputs:
            yield output.project_rows(rows)

    def _list_columns(self, conditions: Sequence[Expr]) -> list[str]:
        needed = {physical for output in self.outputs for _, physical in output.columns}
        if any(output.excludes_loops for output in self.outputs):
            needed |= {SOURCE_COLUMN, TARGET_COLUMN}
        if self.value_filter is not None:
            needed.add(self.value_filter[0])
        for condition in conditions:
            for part in iter_subexpressions(condition):
                match part:
                    case PropertyValue() | TextMatch():
                        needed.add(self.shape.columns[part.property])
                    case SystemValue(name=name) if name in SYSTEM_COLUMNS:
                        needed.add(SYSTEM_COLUMNS[name])
                    case _:
                        pass
        return sorted(needed) or [ID_COLUMN]


@dataclass(frozen=True, slots=True)
class ScanPiece:
    """Some fragments of one of several scans; None is all of them."""

    scan: int
    fragments: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ScanSplits:
    """Scans of tables, cut into units that one task reads at a time."""

    address: StoreAddress
    params: Params
    scans: tuple[TableScan, ...]
    splits: tuple[tuple[ScanPiece, ...], ...]
    # Whether equal rows are one; only if there is but one unit.
    is_distinct: bool = False

    def read_tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows of the units whose numbers are in batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read_split(number)

    def read_split(self, number: int) -> Iterator[pa.Table]:
        """The rows of one unit."""
        found = self._read_pieces(number)
        return _deduplicate_rows(list(found)) if self.is_distinct else found

    def _read_pieces(self, number: int) -> Iterator[pa.Table]:
        for piece in self.splits[number]:
            yield from self.scans[piece.scan].read_tables(
                self.address, self.params, piece.fragments
            )


def _combine_tables(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer tables: values to look for are hashed anew for each."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= COMBINED_ROWS:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _deduplicate_rows(tables: list[pa.Table]) -> Iterator[pa.Table]:
    if tables:
        rows = pa.concat_tables(tables)
        yield rows.group_by(rows.column_names).aggregate([]).select(rows.column_names)


def plan_splits(
    place: StoreAddress, scans: Sequence[TableScan], small_rows: int
) -> tuple[tuple[ScanPiece, ...], ...]:
    """The units of scans: one for all of them if they are small."""
    if sum(scan.pin.rows for scan in scans) <= small_rows:
        return (tuple(map(ScanPiece, range(len(scans)))),)
    return tuple(
        (ScanPiece(number, fragments),)
        for number, scan in enumerate(scans)
        for fragments in group_fragments(place.tables.open(scan.pin))
    )


def split_conditions(
    conditions: Iterable[Expr], name: str
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The conditions about a variable alone, and those that read others."""
    own: list[Expr] = []
    others: list[Expr] = []
    for each in conditions:
        (own if variables_of(each) <= {name} else others).append(each)
    return tuple(own), tuple(others)


def split_edge_conditions(
    operators: Sequence[plans.Operator],
) -> tuple[list[plans.Operator], dict[str, list[Expr]]]:
    """The operators without the filters on edges alone, and those filters."""
    edges = {
        each.edge_variable
        for each in operators
        if isinstance(each, plans.Expand) and each.edge_variable is not None
    }
    kept: list[plans.Operator] = []
    conditions: dict[str, list[Expr]] = defaultdict(list)
    for operator in operators:
        if isinstance(operator, plans.Filter):
            names = variables_of(operator.condition)
            if len(names) == 1 and names <= edges:
                conditions[min(names)].append(operator.condition)
                continue
        kept.append(operator)
    return kept, conditions
