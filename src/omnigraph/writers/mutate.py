"""Mutations: the statements of one query as one change of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import numpy as np
import pyarrow as pa

from omnigraph.errors import WriteRefusedError
from omnigraph.ids import generate_ulid
from omnigraph.query import typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.evaluator import Params
from omnigraph.rows.id_predicates import find_equality_value
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.property_values import encode_composite_id, format_canonical
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.row_ids import ROW_ID
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
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, TypeChange, WriteMode, copies_schema_of
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.matching_rows import (
    CommittedRows,
    MutationBudget,
    SharedRows,
    build_condition_reads,
    find_matching_rows,
    read_with_blobs,
)
from omnigraph.writers.pending_rows import PendingRows
from omnigraph.writers.validate import build_edge_reads
from omnigraph.writers.validate.reference_rule import ends_of

_KEY_CELLS = (bool, int, float, str)


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


def run_mutation(
    mutation: typed_tree.Mutation,
    params: Mapping[str, typed_tree.Value],
    *,
    now: int,
    view: View,
    keys: KeyCache,
) -> MutationChange:
    """Run the statements of a mutation in order on a view; nothing is validated or written yet."""
    if mutation.is_mixed:
        raise WriteRefusedError(
            "inserts/updates and deletes cannot be mixed: split the mutation",
            hint="run the deletes as a mutation of their own",
        )
    bound = {**params, typed_tree.NOW_NAME: now}
    run = _MutationRun(mutation.statements, view, bound, CommittedState(view, keys, {}))
    for statement in mutation.statements:
        run.execute_statement(statement)
    return run.build_result(mutation)


@dataclass(frozen=True, slots=True)
class _UpdatedType:
    """A node type, how its rows lie, and what statements did to them so far."""

    node: NodeType
    shape: TableShape
    rows: PendingRows


class _MutationRun:
    """The state of a mutation between its statements."""

    def __init__(
        self,
        statements: Sequence[typed_tree.Statement],
        view: View,
        params: Params,
        committed: CommittedState,
    ) -> None:
        self._statements = statements
        self._view = view
        self._params = params
        self._committed = committed
        self._pending: dict[TypeKey, PendingRows] = {}
        self._updated: dict[str, _UpdatedType] = {}
        self._budget = MutationBudget()
        self._deletions = Deletions(view, self._budget)
        self._reads: list[Footprint] = []
        self._written = {TypeKind.NODE: 0, TypeKind.EDGE: 0}

    def execute_statement(self, statement: typed_tree.Statement) -> None:
        """Run one statement on what the ones before it left."""
        match statement:
            case typed_tree.InsertNode(name):
                self._write_entity(TypeKey(TypeKind.NODE, name), statement, {})
            case typed_tree.InsertEdge(name):
                ends = self._evaluate_ends(statement)
                self._write_entity(TypeKey(TypeKind.EDGE, name), statement, ends)
            case typed_tree.UpdateNodes():
                self._update_nodes(statement)
            case typed_tree.DeleteNodes(name, conditions):
                self._deletions.delete_matching(
                    TypeKey(TypeKind.NODE, name), conditions, self._params
                )
            case typed_tree.DeleteEdges(name, conditions):
                self._deletions.delete_matching(
                    TypeKey(TypeKind.EDGE, name), conditions, self._params
                )
            case _:
                assert_never(statement)

    def build_result(self, mutation: typed_tree.Mutation) -> MutationChange:
        """What all statements did together."""
        self._deletions.finish_deletes(self._committed)
        deleted = self._deletions.build_changes()
        change = dict(deleted)
        for type_key, rows in self._pending.items():
            if (written := rows.build_change()) is not None:
                change[type_key] = written
        for type_key, deletion in deleted.items():
            self._written[type_key.kind] += len(deletion.deleted)
        inserts = (typed_tree.InsertNode, typed_tree.InsertEdge)
        return MutationChange(
            change=change,
            nodes=self._written[TypeKind.NODE],
            edges=self._written[TypeKind.EDGE],
            reads=unite_footprints(
                [*self._reads, *self._iter_shared_reads(), self._deletions.reads]
            ),
            is_insert_only=all(isinstance(each, inserts) for each in mutation.statements),
        )

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
            require_complete(type_, {each.property for each in statement.assignments})
        row = dict(assignments.cells)
        if ends:
            row |= {SOURCE_COLUMN: ends[SOURCE], TARGET_COLUMN: ends[TARGET]}
        entity_id = _derive_entity_id(shape, type_, row)
        rows = self._get_pending(type_key)
        if statement.verb is WriteVerb.CREATE:
            rows.create_row(entity_id, row)
        elif is_whole:
            rows.insert_row(entity_id, row)
        elif assignments.computed:
            rows.assign_computed(entity_id, row, assignments)
        else:
            rows.assign_row(entity_id, row)
        self._written[type_key.kind] += 1

    def _update_nodes(self, update: typed_tree.UpdateNodes) -> None:
        updated = self._get_updated(update.type_name)
        node, shape, rows = updated.node, updated.shape, updated.rows
        try:
            values = bind_assignments(node, shape, update.assignments, self._params)
        except ExternalBlobError:
            if self._update_matching(update, RowAssignments(node, shape, {}, {}, self._params)):
                raise
            return
        asked = self._asked_values[id(update)]
        shared = None if asked is None else self._shared[update.type_name, asked[0]]
        if asked is None or shared is None or not shared.is_worthwhile:
            count = self._update_matching(update, values)
        elif asked[0] == ID_COLUMN and rows.are_single and not values.computed:
            count = rows.assign_cells(str(asked[1]), values.cells, shared)
        else:
            blobs = [f.name for f in shape.schema if is_blob(f) and f.name not in values.columns]
            found = rows.filter_unwritten(shared.select_rows([asked[1]]))
            table = self._view.open_table(shape.type_key)
            committed = read_with_blobs(found, table, blobs, budget=self._budget)
            count = rows.update_matching(committed, update.conditions, values, self._params)
        self._written[TypeKind.NODE] += count

    def _update_matching(self, update: typed_tree.UpdateNodes, values: RowAssignments) -> int:
        """Assign values to all rows that satisfy conditions, whatever these are."""
        view, params, conditions = self._view, self._params, update.conditions
        shape, type_key = values.shape, values.shape.type_key
        kept = [field for field in shape.schema if field.name not in values.columns]
        plain = [f.name for f in shape.schema if f.name in values.computed or f in kept]
        plain = [name for name in plain if not is_blob(shape.schema.field(name))]
        blobs = [field.name for field in kept if is_blob(field)]
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
            self._pending[type_key] = PendingRows(view.types[type_key], rows, self._committed)
        return self._pending[type_key]

    def _get_updated(self, type_name: str) -> _UpdatedType:
        if type_name not in self._updated:
            type_key = TypeKey(TypeKind.NODE, type_name)
            node, shape = self._view.catalog.nodes[type_name], self._view.get_shape(type_key)
            self._updated[type_name] = _UpdatedType(node, shape, self._get_pending(type_key))
        return self._updated[type_name]

    @cached_property
    def _asked_values(self) -> Mapping[int, tuple[str, str | int] | None]:
        """The column and the value that each update asks for, by the identity of the statement."""
        return {
            id(statement): find_equality_value(
                statement.conditions, self._get_updated(statement.type_name).shape, self._params
            )
            for statement in self._statements
            if isinstance(statement, typed_tree.UpdateNodes)
        }

    @cached_property
    def _shared(self) -> Mapping[tuple[str, str], SharedRows]:
        """What the updates of a type ask for by a value of a column."""
        found: dict[tuple[str, str], SharedRows] = {}
        for statement in self._statements:
            asked = self._asked_values.get(id(statement))
            if asked is None:
                continue
            place = statement.type_name, asked[0]
            if place not in found:
                type_key = TypeKey(TypeKind.NODE, statement.type_name)
                found[place] = SharedRows(self._view, type_key, asked[0], self._budget)
            found[place].add_value(asked[1])
        return found

    def _iter_shared_reads(self) -> Iterator[Footprint]:
        for (type_name, column), shared in self._shared.items():
            if shared.is_worthwhile:
                is_id = column == ID_COLUMN
                reads = ReadSet(ids=IdSet(map(str, shared.values))) if is_id else WHOLE
                yield {str(TypeKey(TypeKind.NODE, type_name)): reads}


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


class Deletions:
    """What the statements of a mutation delete; a condition never sees what another one deleted."""

    def __init__(self, view: View, budget: MutationBudget) -> None:
        self._view = view
        self._budget = budget
        self._found: dict[TypeKey, list[pa.Table]] = {}
        # What single statements ask for by one column, to be looked up together.
        self._asked: dict[tuple[TypeKey, str], list[str]] = {}
        self._reads: list[Footprint] = []

    @property
    def reads(self) -> Footprint:
        """What the deletions depend on."""
        return unite_footprints(self._reads)

    def delete_matching(
        self, type_key: TypeKey, conditions: Sequence[typed_tree.Expr], params: Params
    ) -> None:
        """Delete every entity of a type that satisfies the conditions."""
        if (asked := self._find_lookup(type_key, conditions, params)) is not None:
            column, value = asked
            self._asked.setdefault((type_key, column), []).append(value)
            return
        budget = self._budget
        found = find_matching_rows(
            self._view, type_key, conditions, params, columns=(), budget=budget
        )
        self._add_found(type_key, found)
        self._reads.append(
            {str(type_key): build_condition_reads(self._view, type_key, conditions, params)}
        )

    def delete_ids(self, type_key: TypeKey, ids: pa.Array) -> None:
        """Delete the entities of a type that have one of some ids, as far as they exist."""
        columns = [*copies_schema_of(type_key).names]
        found = self._view.open_table(type_key).find(ID_COLUMN, ids, columns=columns)
        self._budget.spend_bytes(found.nbytes)
        self._add_found(type_key, found)
        self._reads.append({str(type_key): ReadSet(ids=IdSet(ids))})

    def finish_deletes(self, committed: CommittedState) -> None:
        """Look up what was asked for, and delete the edges of all deleted nodes."""
        for (type_key, column), values in self._asked.items():
            wanted = pa.array(dict.fromkeys(values), pa.utf8())
            found = self._view.open_table(type_key).find(
                column, wanted, columns=copies_schema_of(type_key).names
            )
            self._budget.spend_bytes(found.nbytes)
            self._add_found(type_key, found)
            is_id = column == ID_COLUMN
            reads = ReadSet(ids=IdSet(wanted)) if is_id else build_edge_reads(column, wanted)
            self._reads.append({str(type_key): reads})
        self._cascade_to_edges(committed)

    def _find_lookup(
        self, type_key: TypeKey, conditions: Sequence[typed_tree.Expr], params: Params
    ) -> tuple[str, str] | None:
        """The id, or the node at an end, that conditions ask for and nothing else."""
        match find_equality_value(conditions, self._view.get_shape(type_key), params):
            case (column, str(value)) if column in (ID_COLUMN, SOURCE_COLUMN, TARGET_COLUMN):
                return column, value
        return None

    def _cascade_to_edges(self, committed: CommittedState) -> None:
        if not self._found:
            return
        nodes = {
            type_key.name: _deduplicate_rows(found)[ID_COLUMN].combine_chunks()
            for type_key, found in self._found.items()
            if type_key.kind is TypeKind.NODE
        }
        reads = {
            (name, column): build_edge_reads(column, nodes[name])
            for name in nodes
            for column in (SOURCE_COLUMN, TARGET_COLUMN)
        }
        for edge_type in self._view.catalog.edges.values():
            type_key = TypeKey(TypeKind.EDGE, edge_type.name)
            for column, node_key in ends_of(edge_type).items():
                name = node_key.name
                if name not in nodes:
                    continue
                self._reads.append({str(type_key): reads[name, column]})
                if self._view.snapshot.pins[str(type_key)].rows:
                    edges = committed.find_edges_at(type_key, column, nodes[name])
                    self._budget.spend_bytes(edges.nbytes)
                    self._add_found(type_key, edges)

    def build_changes(self) -> dict[TypeKey, TypeChange]:
        """What is done to each type that loses an entity."""
        return {
            type_key: self._build_type_change(type_key, _deduplicate_rows(found))
            for type_key, found in self._found.items()
        }

    def _build_type_change(self, type_key: TypeKey, found: pa.Table) -> TypeChange:
        shape = self._view.get_shape(type_key)
        return TypeChange(
            shape=shape,
            mode=WriteMode.UPSERT,
            rows=shape.schema.empty_table(),
            deleted=found[ID_COLUMN].combine_chunks(),
            known_copies=found,
            is_cascade=type_key.kind is TypeKind.NODE,
        )

    def _add_found(self, type_key: TypeKey, found: pa.Table) -> None:
        if found.num_rows:
            schema = copies_schema_of(type_key)
            self._found.setdefault(type_key, []).append(found.select(schema.names).cast(schema))


def _deduplicate_rows(found: Sequence[pa.Table]) -> pa.Table:
    """Every row once, however often it was found."""
    if len(found) == 1:
        return found[0]
    together = pa.concat_tables(found)
    _, places = np.unique(together[ROW_ID].to_numpy(), return_index=True)
    return together.take(pa.array(places))
