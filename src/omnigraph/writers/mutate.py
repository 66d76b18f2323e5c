"""Mutations: the statements of one query as one change of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.type_scan import TypeRows
from omnigraph.ids import generate_ulid
from omnigraph.query import typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.typed_tree import NOW_NAME, column_name_of
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.evaluator import RequestParams
from omnigraph.rows.id_predicates import find_equality_value
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.property_values import encode_composite_id, format_canonical
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import WHOLE, Footprint, ReadSet, unite_footprints
from omnigraph.versioning.id_sets import IdSet
from omnigraph.writers.assignments import (
    Cell,
    ExternalBlobError,
    evaluate_end,
    require_complete,
)
from omnigraph.writers.computed_values import RowAssignments, bind_assignments
from omnigraph.writers.deletions import Deletions
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.matching_rows import (
    CommittedRows,
    MutationBudget,
    SharedRows,
    build_condition_reads,
    find_matching_rows,
    read_with_blobs,
)
from omnigraph.writers.pattern_rows import (
    PatternReads,
    RowsWithOld,
    SourceRows,
    build_pattern_reads,
    list_read_types,
    open_image_view,
    read_pattern,
)
from omnigraph.writers.pattern_writes import (
    collect_bound_ids,
    collect_named_updates,
    collect_updates,
    collect_writes,
    compute_written_ids,
    list_old_properties,
)
from omnigraph.writers.pending_rows import PendingRows
from omnigraph.writers.record_writes import find_named_entities, type_key_of
from omnigraph.writers.validate import build_edge_reads

_KEY_CELLS = (bool, int, float, str)
_UPDATES = (typed_tree.UpdateNodes, typed_tree.UpdateEdges)
_Update: TypeAlias = typed_tree.UpdateNodes | typed_tree.UpdateEdges
_Write: TypeAlias = (
    typed_tree.InsertNode
    | typed_tree.InsertEdge
    | _Update
    | typed_tree.PatternWrite
    | typed_tree.RowsWrite
)


@dataclass(frozen=True, slots=True)
class MutationChange:
    """What a mutation does, how many entities its statements touched, and what they read.

    An empty change needs no commit. Only a mutation of inserts, of any verb, may be prepared
    again by itself.
    """

    change: GraphChange
    nodes: int
    edges: int
    reads: Footprint
    is_insert_only: bool


def run_mutation(  # noqa: PLR0913 — what a mutation is made of
    mutation: typed_tree.Mutation,
    params: RequestParams,
    *,
    view: View,
    keys: KeyCache,
    patterns: PatternReads,
    records: Mapping[str, pa.Table] = MappingProxyType({}),
    fills_vectors: bool = False,
) -> MutationChange:
    """Run the statements of a mutation in order on a view; nothing is committed yet.

    What the poll of the parameters raises, between pieces of the work, ends the mutation. `records`
    are the parameters that are lists of records, by name. With `fills_vectors`, an entity may lack
    vectors that come from texts.
    """
    committed = CommittedState(view, keys, {}, fills_vectors=fills_vectors)
    run = _MutationRun(mutation.statements, params, committed, (patterns, records))
    for statement in mutation.statements:
        params.poll()
        run.execute_statement(statement)
    return run.build_result(mutation)


@dataclass(frozen=True, slots=True)
class _UpdatedType:
    """A type, how its rows lie, and what statements did to them so far.

    And what all updates of it ask for by a value of a column.
    """

    type_: NodeType | EdgeType
    shape: TableShape
    rows: PendingRows
    shared: dict[str, SharedRows]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """What an update asks for: rows with a value in a column, or those of any condition."""

    updated: _UpdatedType
    column: str | None = None
    value: str | int = ""


class _MutationRun:
    """The state of a mutation between its statements."""

    def __init__(
        self,
        statements: Sequence[typed_tree.Statement],
        params: RequestParams,
        committed: CommittedState,
        sources: tuple[PatternReads, Mapping[str, pa.Table]],
    ) -> None:
        self._statements = statements
        self._view = committed.view
        patterns, self._records = sources
        self._read_pattern = patterns.read
        self._plans = iter(patterns.plans)
        self._params = params
        self._committed = committed
        self._pending: dict[TypeKey, PendingRows] = {}
        self._updated: dict[tuple[type[_Update], str], _UpdatedType] = {}
        self._budget = MutationBudget(params.poll)
        # The deletions since the last statement of another kind.
        self._deletions: Deletions | None = None
        self._reads: list[Footprint] = []
        self._written = {TypeKind.NODE: 0, TypeKind.EDGE: 0}

    def execute_statement(self, statement: typed_tree.Statement) -> None:
        """Run one statement on what the ones before it left."""
        match statement:
            case typed_tree.DeleteNodes(name, conditions):
                self._delete_matching(TypeKey(TypeKind.NODE, name), conditions)
            case typed_tree.DeleteEdges(name, conditions):
                self._delete_matching(TypeKey(TypeKind.EDGE, name), conditions)
            case _:
                self._finish_deletions()
                self._execute_write(statement)

    def _execute_write(self, statement: _Write) -> None:
        match statement:
            case typed_tree.InsertNode(name):
                self._write_entity(TypeKey(TypeKind.NODE, name), statement, {})
            case typed_tree.InsertEdge(name):
                ends = self._evaluate_ends(statement)
                self._write_entity(TypeKey(TypeKind.EDGE, name), statement, ends)
            case typed_tree.UpdateNodes() | typed_tree.UpdateEdges():
                self._update_entities(statement)
            case typed_tree.PatternWrite():
                self._write_matches(statement)
            case typed_tree.RowsWrite():
                self._write_records(statement)
            case _:
                assert_never(statement)

    def _write_matches(self, write: typed_tree.PatternWrite) -> None:
        """Do the actions on the rows that the pattern has before the first of them."""
        source, view, plan = write.source, self._view, next(self._plans)
        types = list_read_types(source, view)
        if any(each in self._pending for each in types):
            with open_image_view(self._build_change(), self._committed, types) as image:
                rows = read_pattern(plan, image, self._read_pattern, is_committed=False)
        else:
            rows = read_pattern(plan, view, self._read_pattern, is_committed=True)
        self._budget.spend_bytes(rows.table.nbytes)
        self._reads.append(build_pattern_reads(source, view, self._params))
        self._apply_actions(write.actions, rows)

    def _write_records(self, write: typed_tree.RowsWrite) -> None:
        """Do each verb for all records, and then the next one."""
        table = self._records[write.parameter]
        names = [column_name_of(write.variable, name) for name in table.column_names]
        self._budget.spend_bytes(table.nbytes)
        self._apply_actions(write.actions, SourceRows(table.rename_columns(names)))

    def _apply_actions(
        self, actions: Iterable[typed_tree.Action | typed_tree.RecordAction], rows: SourceRows
    ) -> None:
        """Do actions on the same rows, one after the other."""
        touched: dict[TypeKey, list[pa.Array]] = {}
        for action in actions:
            for type_key, ids in self._apply_action(action, rows):
                touched.setdefault(type_key, []).append(ids)
        for type_key, parts in touched.items():
            # An action touches an entity once; several may touch the same one.
            self._written[type_key.kind] += pc.count_distinct(pa.chunked_array(parts)).as_py()

    def _apply_action(
        self, action: typed_tree.Action | typed_tree.RecordAction, rows: SourceRows
    ) -> Iterator[tuple[TypeKey, pa.Array]]:
        """Do one action; the entities that it touches, by their type."""
        match action:
            case typed_tree.UpdateBound():
                for found in collect_updates(action, rows, self._view, self._params):
                    pending = self._get_pending(found.type_key)
                    yield found.type_key, pending.assign_columns(found.ids, found.columns)
            case typed_tree.DeleteBound():
                yield from self._delete_ids(collect_bound_ids(action, rows))
            case typed_tree.DeleteEach():
                ids, _ = find_named_entities(action, rows, self._view, self._params)
                yield from self._delete_ids([(type_key_of(action), ids.unique())])
            case typed_tree.UpdateEach():
                yield type_key_of(action), self._update_named(action, rows)
            case typed_tree.WriteEach(verb=verb):
                seen = self._join_old_rows(action, rows)
                found = collect_writes(action, seen, self._view, self._params)
                self._get_pending(found.type_key).write_columns(found.ids, found.columns, verb)
                yield found.type_key, found.ids
            case _:
                assert_never(action)

    def _join_old_rows(
        self, action: typed_tree.WriteEach, rows: SourceRows
    ) -> SourceRows | RowsWithOld:
        """The rows, and beside them the entities as they are, if values read those."""
        if list_old_properties(action) is None or not rows.num_rows:
            return rows
        ids = compute_written_ids(action, rows, self._view, self._params)
        return self._read_old_rows(action, ids, rows)[0]

    def _read_old_rows(
        self,
        action: typed_tree.WriteEach | typed_tree.UpdateEach,
        ids: pa.Array,
        rows: SourceRows,
    ) -> tuple[RowsWithOld, pa.Array]:
        """Rows beside the entities of their ids as they are, and which of these there are."""
        type_key = type_key_of(action)
        shape = self._view.get_shape(type_key)
        columns = [shape.columns[name] for name in list_old_properties(action) or ()]
        ends = (SOURCE_COLUMN, TARGET_COLUMN) if type_key.kind is TypeKind.EDGE else ()
        distinct = ids.dictionary_encode()
        pending = self._get_pending(type_key)
        old, is_there = pending.read_rows(distinct.dictionary, [*columns, *ends])
        joined = RowsWithOld(rows, TypeRows(old.take(distinct.indices), shape))
        return joined, pa.array(is_there).take(distinct.indices)

    def _update_named(self, action: typed_tree.UpdateEach, rows: SourceRows) -> pa.Array:
        """Assign to the entities that records name, as far as they exist; their ids."""
        type_key = type_key_of(action)
        ids, rows = find_named_entities(action, rows, self._view, self._params)
        self._reads.append({str(type_key): ReadSet(ids=IdSet(ids.unique()))})
        _, is_there = self._read_old_rows(action, ids, rows)
        ids, rows = ids.filter(is_there), SourceRows(rows.table.filter(is_there))
        seen, _ = self._read_old_rows(action, ids, rows)
        found = collect_named_updates(action, ids, seen, self._view, self._params)
        return self._get_pending(type_key).assign_columns(found.ids, found.columns)

    def _delete_ids(
        self, found: Iterable[tuple[TypeKey, pa.Array]]
    ) -> Iterator[tuple[TypeKey, pa.Array]]:
        self._deletions = Deletions(self._view, self._budget, dict(self._pending))
        for type_key, ids in found:
            self._deletions.delete_ids(type_key, ids)
        yield from self._delete_found()

    def _delete_matching(self, type_key: TypeKey, conditions: Sequence[typed_tree.Expr]) -> None:
        if self._deletions is None:
            self._deletions = Deletions(self._view, self._budget, dict(self._pending))
        self._deletions.delete_matching(type_key, conditions, self._params)

    def _finish_deletions(self) -> None:
        """Let later statements see what is deleted so far."""
        for type_key, ids in self._delete_found():
            self._written[type_key.kind] += len(ids)

    def _delete_found(self) -> Iterator[tuple[TypeKey, pa.Array]]:
        """Delete what deletions found; the entities that end, by their type."""
        deletions, self._deletions = self._deletions, None
        if deletions is None:
            return
        deletions.finish_deletes(self._committed)
        self._reads.append(deletions.reads)
        for type_key, ids, copies in deletions.iter_found():
            self._get_pending(type_key).delete_rows(ids, copies)
            yield type_key, ids

    def build_result(self, mutation: typed_tree.Mutation) -> MutationChange:
        """What all statements did together."""
        self._finish_deletions()
        return MutationChange(
            change=self._build_change(),
            nodes=self._written[TypeKind.NODE],
            edges=self._written[TypeKind.EDGE],
            reads=unite_footprints([*self._reads, *self._iter_shared_reads()]),
            is_insert_only=all(map(_is_insert, mutation.statements)),
        )

    def _build_change(self) -> GraphChange:
        changes = {type_key: rows.build_change() for type_key, rows in self._pending.items()}
        return {type_key: each for type_key, each in changes.items() if each is not None}

    def _evaluate_ends(self, statement: typed_tree.InsertEdge) -> dict[str, str]:
        name, params = statement.type_name, self._params
        return {
            SOURCE: evaluate_end(name, "from", statement.source, params),
            TARGET: evaluate_end(name, "to", statement.target, params),
        }

    def _write_entity(
        self,
        type_key: TypeKey,
        statement: typed_tree.InsertNode | typed_tree.InsertEdge,
        ends: Mapping[str, str],
    ) -> None:
        type_, shape = self._view.types[type_key], self._view.get_shape(type_key)
        assignments = bind_assignments(type_, shape, statement.assignments, self._params)
        is_whole = statement.verb is not WriteVerb.UPSERT
        if is_whole:
            given = {each.property for each in statement.assignments}
            require_complete(type_, given, fills_vectors=self._committed.fills_vectors)
        row = dict(assignments.cells)
        if ends:
            row |= {SOURCE_COLUMN: ends[SOURCE], TARGET_COLUMN: ends[TARGET]}
        entity_id = _derive_entity_id(shape, type_, row)
        rows = self._get_pending(type_key)
        if statement.verb is WriteVerb.CREATE:
            rows.create_row(entity_id, row)
        elif is_whole:
            rows.insert_row(entity_id, row)
        else:
            rows.assign_row(entity_id, row, assignments if assignments.computed else None)
        self._written[type_key.kind] += 1

    def _update_entities(self, update: _Update) -> None:
        lookup = self._lookups[id(update)]
        updated, column = lookup.updated, lookup.column
        type_, shape, rows = updated.type_, updated.shape, updated.rows
        try:
            values = bind_assignments(type_, shape, update.assignments, self._params)
        except ExternalBlobError:
            if self._update_matching(update, RowAssignments(type_, shape, {}, {}, self._params)):
                raise
            return
        shared = None if column is None else updated.shared[column]
        if shared is None or not shared.is_worthwhile:
            count = self._update_matching(update, values)
        elif column == ID_COLUMN and rows.are_single:
            count = rows.update_row(str(lookup.value), values, shared)
        else:
            blobs = [f.name for f in shape.schema if is_blob(f) and f.name not in values.columns]
            found = rows.filter_unwritten(shared.select_rows([lookup.value]))
            table = self._view.open_table(shape.type_key)
            committed = read_with_blobs(found, table, blobs, budget=self._budget)
            count = rows.update_matching(committed, update.conditions, values, self._params)
        self._written[shape.type_key.kind] += count

    def _update_matching(self, update: _Update, values: RowAssignments) -> int:
        """Assign values to all rows that satisfy conditions, whatever these are."""
        view, params, conditions = self._view, self._params, update.conditions
        shape, type_key = values.shape, values.shape.type_key
        read = [field for field in shape.schema if field.name not in values.overwritten]
        plain = [field.name for field in read if not is_blob(field)]
        blobs = [field.name for field in read if is_blob(field)]
        rows, budget = self._get_pending(type_key), self._budget
        found = find_matching_rows(view, type_key, conditions, params, columns=plain, budget=budget)
        committed = read_with_blobs(
            rows.filter_unwritten(found), view.open_table(type_key), blobs, budget=budget
        )
        self._reads.append(
            {str(type_key): build_condition_reads(view, type_key, conditions, params)}
        )
        return rows.update_matching(committed, conditions, values, params)

    def _get_pending(self, type_key: TypeKey) -> PendingRows:
        if type_key not in self._pending:
            view = self._view
            rows = CommittedRows(view, view.get_shape(type_key), self._budget)
            self._pending[type_key] = PendingRows(
                view.types[type_key], rows, self._committed, self._params.get(NOW_NAME)
            )
        return self._pending[type_key]

    def _get_updated(self, update: _Update) -> _UpdatedType:
        name = type(update), update.type_name
        if name not in self._updated:
            kind = TypeKind.NODE if isinstance(update, typed_tree.UpdateNodes) else TypeKind.EDGE
            type_key = TypeKey(kind, update.type_name)
            type_, shape = self._view.types[type_key], self._view.get_shape(type_key)
            self._updated[name] = _UpdatedType(type_, shape, self._get_pending(type_key), {})
        return self._updated[name]

    @cached_property
    def _lookups(self) -> Mapping[int, _Lookup]:
        """What each update asks for, by the identity of the statement."""
        found: dict[int, _Lookup] = {}
        for statement in self._statements:
            if not isinstance(statement, _UPDATES):
                continue
            updated = self._get_updated(statement)
            asked = find_equality_value(statement.conditions, updated.shape, self._params)
            found[id(statement)] = _Lookup(updated) if asked is None else _Lookup(updated, *asked)
            if asked is None:
                continue
            column, value = asked
            if column not in updated.shared:
                type_key = updated.shape.type_key
                updated.shared[column] = SharedRows(self._view, type_key, column, self._budget)
            updated.shared[column].add_value(value)
        return found

    def _iter_shared_reads(self) -> Iterator[Footprint]:
        for updated in self._updated.values():
            for column, shared in updated.shared.items():
                if shared.is_worthwhile:
                    yield {str(updated.shape.type_key): _build_shared_reads(column, shared)}


def _build_shared_reads(column: str, shared: SharedRows) -> ReadSet:
    if column == ID_COLUMN:
        return ReadSet(ids=IdSet(map(str, shared.values)))
    if column in (SOURCE_COLUMN, TARGET_COLUMN):
        return build_edge_reads(column, pa.array(map(str, shared.values), pa.utf8()))
    return WHOLE


def _is_insert(statement: typed_tree.Statement) -> bool:
    """Whether a statement only writes entities, by any verb."""
    if isinstance(statement, typed_tree.RowsWrite):
        return all(isinstance(each, typed_tree.WriteEach) for each in statement.actions)
    return isinstance(statement, typed_tree.InsertNode | typed_tree.InsertEdge)


def _derive_entity_id(
    shape: TableShape, type_: NodeType | EdgeType, cells: Mapping[str, Cell]
) -> str:
    """The id that follows from the key among the cells of a row, or a fresh one."""
    if not shape.key:
        return generate_ulid()
    texts = [_format_key_member(type_, name, cells[column]) for name, column in shape.key.items()]
    return texts[0] if len(texts) == 1 else encode_composite_id(texts)


def _format_key_member(type_: NodeType | EdgeType, name: str, cell: Cell) -> str:
    assert isinstance(cell, _KEY_CELLS), "a key member is a scalar, and not null"
    if name in (SOURCE, TARGET):
        return str(cell)
    return format_canonical(cell, type_.properties[name].type)
