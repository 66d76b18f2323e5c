"""Mutations: the statements of one query as one change of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from omnigraph.errors import WriteRefused
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.expressions import Params
from omnigraph.execution.pinned import asked_value
from omnigraph.execution.view import View
from omnigraph.ids import new_ulid
from omnigraph.query import typed
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.schema.values import canonical_text, composite_id
from omnigraph.storage.blobs import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import WHOLE, Footprint, Reads, union
from omnigraph.versioning.idset import IdSet
from omnigraph.writers.change import GraphChange
from omnigraph.writers.committed import Committed
from omnigraph.writers.keys import Keys
from omnigraph.writers.mutations.assigned import Cell, ExternalBlob, assigned, end, inserted
from omnigraph.writers.mutations.budget import Budget
from omnigraph.writers.mutations.deletions import Deletions
from omnigraph.writers.mutations.looking import SharedRows, looked_at, matched, with_blobs
from omnigraph.writers.mutations.pending import PendingRows


@dataclass(frozen=True, slots=True)
class Mutated:
    """What a mutation does, how many entities its statements touched, and what they read.

    An empty change needs no commit. Only a mutation of inserts may be prepared again by itself.
    """

    change: GraphChange
    nodes: int
    edges: int
    reads: Footprint
    is_insert_only: bool


def mutation_change(
    mutation: typed.Mutation,
    params: Mapping[str, typed.Value],
    *,
    now: int,
    view: View,
    keys: Keys,
) -> Mutated:
    """Run the statements of a mutation in order on a view; nothing is validated or written yet."""
    if mutation.is_mixed:
        raise WriteRefused(
            "inserts/updates and deletes cannot be mixed: split the mutation",
            hint="run the deletes as a mutation of their own",
        )
    bound = {**params, typed.NOW_NAME: now}
    run = _Run(mutation.statements, view, bound, Committed(view, keys, {}))
    for statement in mutation.statements:
        run.execute(statement)
    return run.mutated(mutation)


class _Run:
    """The state of a mutation between its statements."""

    def __init__(
        self,
        statements: Sequence[typed.Statement],
        view: View,
        params: Params,
        committed: Committed,
    ) -> None:
        self._statements = statements
        self._view = view
        self._params = params
        self._committed = committed
        self._pending: dict[TypeKey, PendingRows] = {}
        self._budget = Budget()
        self._deletions = Deletions(view, self._budget)
        self._reads: list[Footprint] = []
        self._written = {TypeKind.NODE: 0, TypeKind.EDGE: 0}

    def execute(self, statement: typed.Statement) -> None:
        """Run one statement on what the ones before it left."""
        match statement:
            case typed.InsertNode(name, assignments):
                node = self._view.catalog.nodes[name]
                self._insert(TypeKind.NODE, node, inserted(node, assignments, self._params), {})
            case typed.InsertEdge(name, _, _, assignments):
                edge = self._view.catalog.edges[name]
                cells = inserted(edge, assignments, self._params)
                self._insert(TypeKind.EDGE, edge, cells, self._ends(statement))
            case typed.UpdateNodes():
                self._update(statement)
            case typed.DeleteNodes(name, conditions):
                self._deletions.delete(TypeKey(TypeKind.NODE, name), conditions, self._params)
            case typed.DeleteEdges(name, conditions):
                self._deletions.delete(TypeKey(TypeKind.EDGE, name), conditions, self._params)
            case _:
                assert_never(statement)

    def mutated(self, mutation: typed.Mutation) -> Mutated:
        """What all statements did together."""
        self._deletions.finish(self._committed)
        deleted = self._deletions.changes()
        change = dict(deleted)
        for type_key, rows in self._pending.items():
            if (written := rows.change(self._committed)) is not None:
                change[type_key] = written
        for type_key, deletion in deleted.items():
            self._written[type_key.kind] += len(deletion.deleted)
        inserts = (typed.InsertNode, typed.InsertEdge)
        return Mutated(
            change=change,
            nodes=self._written[TypeKind.NODE],
            edges=self._written[TypeKind.EDGE],
            reads=union([*self._reads, *self._shared_reads(), self._deletions.reads]),
            is_insert_only=all(isinstance(each, inserts) for each in mutation.statements),
        )

    def _ends(self, statement: typed.InsertEdge) -> dict[str, str]:
        name, params = statement.type_name, self._params
        return {
            SOURCE: end(name, "from", statement.source, params),
            TARGET: end(name, "to", statement.target, params),
        }

    def _insert(
        self,
        kind: TypeKind,
        type_: NodeType | EdgeType,
        cells: Mapping[str, Cell],
        ends: Mapping[str, str],
    ) -> None:
        type_key = TypeKey(kind, type_.name)
        shape = self._view.shape(type_key)
        row = {shape.columns[name]: cell for name, cell in cells.items()}
        if ends:
            row |= {SOURCE_COLUMN: ends[SOURCE], TARGET_COLUMN: ends[TARGET]}
        self._rows(type_key).insert(_entity_id(shape, type_, {**cells, **ends}), row)
        self._written[kind] += 1

    def _update(self, update: typed.UpdateNodes) -> None:
        view, params, conditions = self._view, self._params, update.conditions
        type_key = TypeKey(TypeKind.NODE, update.type_name)
        shape = view.shape(type_key)
        try:
            values = assigned(view.catalog.nodes[update.type_name], update.assignments, params)
        except ExternalBlob:
            if self._update_matching(update, shape, {}):
                raise
            return
        cells = {shape.columns[name]: cell for name, cell in values.items()}
        rows, asked = self._rows(type_key), asked_value(conditions, shape, params)
        shared = None if asked is None else self._shared[type_key, asked[0]]
        if asked is None or shared is None or not shared.is_worthwhile:
            count = self._update_matching(update, shape, cells)
        elif asked[0] == ID_COLUMN and rows.are_single:
            count = rows.assign(str(asked[1]), cells, shared)
        else:
            blobs = [f.name for f in shape.schema if is_blob(f) and f.name not in cells]
            found = rows.unwritten(shared.rows([asked[1]]))
            committed = with_blobs(found, view.table(type_key), blobs, budget=self._budget)
            count = rows.update(committed, conditions, cells, params)
        self._written[TypeKind.NODE] += count

    def _update_matching(
        self, update: typed.UpdateNodes, shape: TableShape, cells: Mapping[str, Cell]
    ) -> int:
        """Assign cells to all rows that satisfy conditions, whatever these are."""
        view, params, conditions = self._view, self._params, update.conditions
        type_key = shape.type_key
        kept = [field for field in shape.schema if field.name not in cells]
        plain = [field.name for field in kept if not is_blob(field)]
        blobs = [field.name for field in kept if is_blob(field)]
        rows, budget = self._rows(type_key), self._budget
        found = matched(view, type_key, conditions, params, columns=plain, budget=budget)
        committed = with_blobs(rows.unwritten(found), view.table(type_key), blobs, budget=budget)
        self._reads.append({str(type_key): looked_at(view, type_key, conditions, params)})
        return rows.update(committed, conditions, cells, params)

    def _rows(self, type_key: TypeKey) -> PendingRows:
        if type_key not in self._pending:
            self._pending[type_key] = PendingRows(self._view.shape(type_key))
        return self._pending[type_key]

    @cached_property
    def _shared(self) -> Mapping[tuple[TypeKey, str], SharedRows]:
        """What the updates ask for by a value of a column."""
        view, found = self._view, dict[tuple[TypeKey, str], SharedRows]()
        for statement in self._statements:
            if not isinstance(statement, typed.UpdateNodes):
                continue
            type_key = TypeKey(TypeKind.NODE, statement.type_name)
            asked = asked_value(statement.conditions, view.shape(type_key), self._params)
            if asked is not None:
                place = type_key, asked[0]
                if place not in found:
                    found[place] = SharedRows(view, type_key, asked[0], self._budget)
                found[place].ask(asked[1])
        return found

    def _shared_reads(self) -> Iterator[Footprint]:
        for (type_key, column), shared in self._shared.items():
            if shared.is_worthwhile:
                is_id = column == ID_COLUMN
                yield {str(type_key): Reads(ids=IdSet(map(str, shared.values))) if is_id else WHOLE}


def _entity_id(shape: TableShape, type_: NodeType | EdgeType, cells: Mapping[str, Cell]) -> str:
    """The id that follows from the key, or a fresh one."""
    if not shape.key:
        return new_ulid()
    texts = [_member_text(type_, name, cells[name]) for name in shape.key]
    return texts[0] if len(texts) == 1 else composite_id(texts)


def _member_text(type_: NodeType | EdgeType, name: str, cell: Cell) -> str:
    assert isinstance(cell, bool | int | float | str), "a key member is a scalar, and not null"
    if name in (SOURCE, TARGET):
        return str(cell)
    return canonical_text(cell, type_.properties[name].type)
