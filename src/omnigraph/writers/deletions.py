"""What consecutive deletions of a mutation end: entities, and the edges of deleted nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.query import typed_tree
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.evaluator import Params
from omnigraph.rows.id_predicates import find_equality_value
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import Footprint, ReadSet, unite_footprints
from omnigraph.versioning.id_sets import IdSet
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import TypeChange, WriteMode, copies_schema_of
from omnigraph.writers.matching_rows import (
    MutationBudget,
    build_condition_reads,
    find_matching_rows,
)
from omnigraph.writers.pending_rows import PendingRows
from omnigraph.writers.validate import build_edge_reads
from omnigraph.writers.validate.reference_rule import ends_of


class Deletions:
    """What deletions end; a condition never sees what another one of them deleted.

    `pending` is what the statements before them wrote.
    """

    def __init__(
        self,
        view: View,
        budget: MutationBudget,
        pending: Mapping[TypeKey, PendingRows] | None = None,
    ) -> None:
        self._view = view
        self._budget = budget
        self._pending = pending or {}
        # The ids of those among them that are not committed as they are.
        self._written: dict[TypeKey, list[pa.Array]] = {}
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
        pending = self._pending.get(type_key)
        asked = None if pending else self._find_lookup(type_key, conditions, params)
        if asked is not None:
            column, value = asked
            self._asked.setdefault((type_key, column), []).append(value)
            return
        budget = self._budget
        found = find_matching_rows(
            self._view, type_key, conditions, params, columns=(), budget=budget
        )
        self._add_found(type_key, found)
        if pending is not None:
            self._add_written(type_key, pending.find_matching(conditions, params))
        self._reads.append(
            {str(type_key): build_condition_reads(self._view, type_key, conditions, params)}
        )

    def delete_ids(self, type_key: TypeKey, ids: pa.Array) -> None:
        """Delete the entities of a type that have one of some ids, as far as they exist."""
        columns = [*copies_schema_of(type_key).names]
        found = self._view.open_table(type_key).find(ID_COLUMN, ids, columns=columns)
        self._budget.spend_bytes(found.nbytes)
        self._add_found(type_key, found)
        if type_key in self._pending:
            self._add_written(type_key, self._pending[type_key].find_written(ID_COLUMN, ids))
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
        nodes = {
            type_key.name: ids
            for type_key, ids, _ in self.iter_found()
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
                if (pending := self._pending.get(type_key)) is not None:
                    self._add_written(type_key, pending.find_written(column, nodes[name]))

    def iter_found(self) -> Iterator[tuple[TypeKey, pa.Array, pa.Table]]:
        """Per type the ids that end, each once, and the committed copies of those with one."""
        for type_key in dict.fromkeys([*self._found, *self._written]):
            none = copies_schema_of(type_key).empty_table()
            copies = _deduplicate_rows([none, *self._found.get(type_key, ())])
            parts = [*copies[ID_COLUMN].chunks, *self._written.get(type_key, ())]
            yield type_key, pa.chunked_array(parts, pa.utf8()).unique(), copies

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

    def _add_written(self, type_key: TypeKey, ids: pa.Array) -> None:
        if len(ids):
            self._written.setdefault(type_key, []).append(ids)

    def _add_found(self, type_key: TypeKey, found: pa.Table) -> None:
        if type_key in self._pending:
            found = self._pending[type_key].filter_unwritten(found)
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
