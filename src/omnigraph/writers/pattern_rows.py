"""The rows that the pattern of a statement has on the image at its start, and what they read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import pyarrow as pa

from omnigraph.execution.type_scan import TypeRows
from omnigraph.query import typed_reads, typed_tree
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_descriptor import list_used_types
from omnigraph.query.typed_tree import SystemName, column_name_of, value_column_of
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.evaluator import Params
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.property_types import PropertyType
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.versioning.footprint import WHOLE, Footprint, ReadSet
from omnigraph.versioning.id_sets import IdSet
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, TypeChange, combine_column
from omnigraph.writers.validate import validate_ends

_BLOCKS = (
    typed_reads.ExistsBlock,
    typed_reads.AggregateBlock,
    typed_reads.LateralBlock,
    typed_reads.BlockColumn,
)


class PatternReader(Protocol):
    """Runs the read of a statement; `is_committed` is false of a view that no commit has."""

    def __call__(self, plan: ReadPlan, view: View, *, is_committed: bool) -> pa.Table:
        """Its rows."""


@dataclass(frozen=True, slots=True)
class PatternReads:
    """The reads of the patterns of a mutation, in the order of its statements; `read` runs them."""

    plans: Sequence[ReadPlan]
    read: PatternReader


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of the source of a statement, as the expressions of its actions see them."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        count: int = self.table.num_rows
        return count

    def get_property(self, variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        return self.table[column_name_of(variable, name)]

    def get_system_field(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        return self.table[column_name_of(variable, name)]

    def get_column(self, name: str) -> pa.ChunkedArray:
        """The values of a variable that is bound to values."""
        return self.table[value_column_of(name)]


@dataclass(frozen=True, slots=True)
class RowsWithOld:
    """Rows of a source, and beside each one the entity that it writes, as it is."""

    source: SourceRows
    old: TypeRows

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.source.num_rows

    def get_property(self, variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        owner = self.old if variable == typed_tree.ROW else self.source
        return owner.get_property(variable, name)

    def get_system_field(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        owner = self.old if variable == typed_tree.ROW else self.source
        return owner.get_system_field(variable, name)


def list_read_types(source: typed_reads.Read, view: View) -> list[TypeKey]:
    """The types that a pattern reads."""
    return [
        TypeKey(TypeKind.EDGE if use.is_edge else TypeKind.NODE, use.type_name)
        for use in list_used_types(source, view.catalog)
    ]


def read_pattern(
    plan: ReadPlan, view: View, read: PatternReader, *, is_committed: bool
) -> SourceRows:
    """The rows of a pattern, with values as tables keep them."""
    found = read(plan, view, is_committed=is_committed)
    columns = [_to_stored_values(found[column.name], column.type) for column in plan.columns]
    return SourceRows(pa.table(columns, [column.name for column in plan.columns]))


def _to_stored_values(values: pa.ChunkedArray, type_: typed_tree.ResultType) -> pa.ChunkedArray:
    assert isinstance(type_, PropertyType)
    kind = arrow_type_of(type_)
    if values.type == kind:
        return values
    # Results have timestamps where tables have dates: both are the same integers.
    numbers = pa.list_(pa.int64()) if pa.types.is_list(kind) else pa.int64()
    return values.cast(numbers).cast(kind)


def build_pattern_reads(source: typed_reads.Read, view: View, params: Params) -> Footprint:
    """What could change the rows of a pattern: entities that it names by id, or whole types."""
    reads: dict[str, ReadSet] = {str(type_key): WHOLE for type_key in list_read_types(source, view)}
    for name, several in _group_conditions(source).items():
        type_key = TypeKey(TypeKind.NODE, name)
        found = [find_candidate_ids(each, view.get_shape(type_key), params) for each in several]
        known = [ids for ids in found if ids is not None]
        if len(known) == len(found):
            ids = pa.chunked_array(known, pa.utf8()).unique()
            reads[str(type_key)] = ReadSet(ids=IdSet(ids))
    return reads


def _group_conditions(
    source: typed_reads.Read,
) -> Mapping[str, Sequence[Sequence[typed_tree.Expr]]]:
    """By node type the conditions on each variable of it, in all patterns and their blocks."""
    found: dict[str, list[Sequence[typed_tree.Expr]]] = {}
    reads = typed_reads.iter_reads(source)
    for inner in chain.from_iterable(_iter_patterns(each.pattern) for each in reads):
        conditions = {
            clause.variable: clause.conditions
            for clause in inner.clauses
            if isinstance(clause, typed_reads.Binding)
        }
        for variable, type_name in inner.nodes:
            found.setdefault(type_name, []).append(conditions.get(variable, ()))
    return found


def _iter_patterns(pattern: typed_reads.Pattern) -> Iterator[typed_reads.Pattern]:
    yield pattern
    for clause in pattern.clauses:
        if isinstance(clause, _BLOCKS):
            yield from _iter_patterns(clause.pattern)


@contextmanager
def open_image_view(
    change: GraphChange, committed: CommittedState, types: Collection[TypeKey]
) -> Iterator[View]:
    """The view with versions of its tables that no commit has: the image after a change.

    The files of its rows are removed at the end: the commit writes the rows as they are then.

    Edges of the types that a pattern reads need their nodes by now: it walks from one to the other.
    Other rules hold for what the whole mutation leaves.
    """
    view = committed.view
    validate_ends(change, CommittedState(view, committed.keys, change), types)
    pins = dict(view.snapshot.pins)
    with ExitStack() as written:
        for type_key, each in change.items():
            pin = pins[str(type_key)]
            staged = [view.tables.write(pin, each.rows)] if each.rows.num_rows else []
            for files in staged:
                written.callback(view.tables.discard, files)
            copies = _find_copies(type_key, each, committed)
            dead, addresses = (combine_column(copies[name]) for name in (ROW_ID, ROW_ADDRESS))
            pins[str(type_key)] = view.tables.replace(
                pin, dead=dead, staged=staged, addresses=addresses
            )
        yield replace(view, snapshot=replace(view.snapshot, pins=pins))


def _find_copies(type_key: TypeKey, change: TypeChange, committed: CommittedState) -> pa.Table:
    if change.known_copies is not None:
        return change.known_copies
    return committed.find_copies(type_key, change.written)
