"""The entities that a mutation deletes: each once, and every edge of a deleted node with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.expressions import Params
from omnigraph.execution.pinned import find_equality_value
from omnigraph.execution.view import View
from omnigraph.query import typed
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import Footprint, ReadSet, unite_footprints
from omnigraph.versioning.idset import IdSet
from omnigraph.writers.change import COPIES, EDGE_COPIES, TypeChange, WriteMode
from omnigraph.writers.committed import CommittedState
from omnigraph.writers.mutations.budget import MutationBudget
from omnigraph.writers.mutations.looking import build_condition_reads, find_matching_rows
from omnigraph.writers.validate import build_edge_reads
from omnigraph.writers.validate.references import ends_of


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
        self, type_key: TypeKey, conditions: Sequence[typed.Expr], params: Params
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

    def finish_deletes(self, committed: CommittedState) -> None:
        """Look up what was asked for, and delete the edges of all deleted nodes."""
        for (type_key, column), values in self._asked.items():
            wanted = pa.array(dict.fromkeys(values), pa.utf8())
            found = self._view.open_table(type_key).find(
                column, wanted, columns=_copies_schema_of(type_key).names
            )
            self._budget.spend_bytes(found.nbytes)
            self._add_found(type_key, found)
            is_id = column == ID_COLUMN
            reads = ReadSet(ids=IdSet(wanted)) if is_id else build_edge_reads(column, wanted)
            self._reads.append({str(type_key): reads})
        self._cascade_to_edges(committed)

    def _find_lookup(
        self, type_key: TypeKey, conditions: Sequence[typed.Expr], params: Params
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
            schema = _copies_schema_of(type_key)
            self._found.setdefault(type_key, []).append(found.select(schema.names).cast(schema))


def _copies_schema_of(type_key: TypeKey) -> pa.Schema:
    return EDGE_COPIES if type_key.kind is TypeKind.EDGE else COPIES


def _deduplicate_rows(found: Sequence[pa.Table]) -> pa.Table:
    """Every row once, however often it was found."""
    if len(found) == 1:
        return found[0]
    together = pa.concat_tables(found)
    _, places = np.unique(together[ROW_ID].to_numpy(), return_index=True)
    return together.take(pa.array(places))
