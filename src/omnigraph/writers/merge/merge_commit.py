"""Turns a merged change into a transaction, or into the conflicts that prevent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from omnigraph.errors import MergeConflictError
from omnigraph.rows.comparison import with_both_zeros
from omnigraph.rows.value_conversion import convert_values
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN, Adopt, Effect, Register
from omnigraph.versioning.footprint import WHOLE, Footprint, unite_footprints
from omnigraph.versioning.record import CommitRef
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import NO_EDGE_COPIES, GraphChange
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.merge.conflict_kinds import MergeAction
from omnigraph.writers.merge.merge_conflicts import (
    CONFLICTS_LISTED_MAX,
    MergeConflicts,
    join_conflicts,
    list_rule_conflicts,
    with_images,
)
from omnigraph.writers.merge.merged_schema import MergedSchema, SchemaBridge, build_bridge
from omnigraph.writers.merge.three_way import MergedChange
from omnigraph.writers.merge.tightened_rules import list_tightened_conflicts
from omnigraph.writers.prepare import Request, build_transaction
from omnigraph.writers.row_staging import RowStaging
from omnigraph.writers.validate import Findings, check_change

# A table that does not exist: it has no rows, and is never opened.
_NO_TABLE: Final = Pin(path="", version="0" * 16, rows=0, fragments=0, high_water=0)


@dataclass(frozen=True)
class CheckedMerge:
    """A merged change that was held against the rules of the merged schema; nothing is written.

    `reads` are what the answer depends on, by the names of the merged schema; `keys` know ids by
    these names. With `is_forward` ours is as the base, and has to be so to the end.
    """

    merged: MergedChange
    keys: KeyCache
    reads: Footprint
    conflicts: MergeConflicts
    is_forward: bool


def check_merge(merged: MergedChange, *, keys: KeyCache, is_forward: bool = False) -> CheckedMerge:
    """Look for conflicts of every kind; a merged state that is wholly theirs has no new ones."""
    sides, schema = merged.sides, merged.schema
    if not schema.is_ours:
        # What is known of a type by its name does not hold for a name it does not have yet.
        keys = KeyCache(sides.lineage.log)
    parts, reads = [merged.conflicts], {}
    if not is_forward:
        committed = MergedSchemaState(schema, sides.ours, keys, merged.change)
        findings = Findings(shown_max=CONFLICTS_LISTED_MAX)
        reads = dict(check_change(merged.change, committed, findings))
        parts.append(list_rule_conflicts(merged.change, committed, findings, schema, sides))
        parts.append(list_tightened_conflicts(merged, parts[-1]))
    conflicts = with_images(join_conflicts(parts), schema, sides)
    return CheckedMerge(merged, keys, reads, conflicts, is_forward)


def raise_conflicts(conflicts: MergeConflicts, action: MergeAction) -> None:
    """Raise the conflicts, if there are any."""
    if conflicts.count:
        raise MergeConflictError(conflicts.listed, count=conflicts.count, operation=action)


def build_merge_transaction(
    found: CheckedMerge,
    staging: RowStaging,
    request: Request,
    *,
    source: CommitRef | None,
    schemas: Schemas,
) -> Transaction:
    """The transaction of a merge without conflicts; `source` is its second parent."""
    merged = found.merged
    sides = merged.sides
    raise_conflicts(found.conflicts, sides.action)
    across = build_bridge(merged.schema, sides.ours, schemas=schemas, adopted=merged.adopted)
    committed = CommittedState(across.view, found.keys, merged.change)
    rows = [each.rows for each in merged.change.values() if each.adopted is None]
    with staging.discard_on_failure(rows):
        made = build_transaction(
            merged.change, committed, staging, request=request, reads=found.reads
        )
    forwarded = {str(key): change for key, change in merged.forwarded.items()}
    effects = _build_effects(merged, across, made.effects)
    made = across.settle_transaction(
        replace(made, effects=effects, changes={**made.changes, **forwarded})
    )
    is_whole = found.is_forward or made.schema is not None
    whole = dict.fromkeys(sides.ours.snapshot.pins, WHOLE) if is_whole else {}
    return replace(
        made,
        footprint=unite_footprints([made.footprint, merged.reads, whole]),
        merged=source,
        preferred=merged.preferred,
        decisions=merged.decisions,
    )


def _build_effects(
    merged: MergedChange, across: SchemaBridge, effects: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """The effects with those on tables whose rows were not compared: forwarded, and new ones."""
    pins = across.view.snapshot.pins
    new = {
        str(key): Register(str(key), pin)
        for key, pin in merged.adopted.items()
        if merged.schema.types[key].ours is None
    }
    forwarded = [
        Adopt(str(key), pins[str(key)], merged.adopted[key])
        for key in merged.forwarded
        if str(key) not in new
    ]
    kept = [each for each in effects if not (isinstance(each, Adopt) and each.type_key in new)]
    return (*new.values(), *forwarded, *kept)


class MergedSchemaState(CommittedState):
    """What is committed on ours, by the names and with the types of a merged schema.

    Types that are new on ours have no entities, and new properties no values.
    """

    def __init__(
        self, merged: MergedSchema, ours: View, keys: KeyCache, change: GraphChange
    ) -> None:
        super().__init__(_build_merged_view(merged, ours), keys, change)
        self._merged = merged

    def find_edges_at(self, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        """The committed edges that have one of the nodes at an end."""
        if self._merged.types[type_key].ours is None:
            return NO_EDGE_COPIES
        return super().find_edges_at(type_key, end, ids)

    def find_value_rows(
        self, type_key: TypeKey, columns: Sequence[str], values: pa.Array
    ) -> pa.Table:
        """The committed rows that hold one of the values in the first column: `__id`, columns."""
        shape = self._merged.types[type_key].shape.schema
        fields = pa.schema([shape.field(name) for name in dict.fromkeys([ID_COLUMN, *columns])])
        ours = self._merged.types[type_key].ours
        # Ours may have a property in another column, with values of another type.
        stored = {} if ours is None else ours.columns
        wanted = [stored.get(name, name) for name in columns]
        known = self._index_stored_columns(type_key)
        # A row that lacks a member of a unique group holds no tuple of it.
        if not known.keys() >= set(wanted):
            return fields.empty_table()
        own = convert_values(values, known[wanted[0]]).drop_null()
        found = super().find_value_rows(type_key, wanted, with_both_zeros(own))
        made = [
            convert_values(found[stored.get(each.name, each.name)], each.type) for each in fields
        ]
        return pa.Table.from_arrays(made, schema=fields)

    def _index_stored_columns(self, type_key: TypeKey) -> dict[str, pa.DataType]:
        """The columns of a table; one of a property that was dropped and is back is among them."""
        if self._merged.types[type_key].ours is None:
            return {}
        return {each.name: each.type for each in self.view.open_table(type_key).schema}


def _build_merged_view(merged: MergedSchema, ours: View) -> View:
    if merged.is_ours:
        return ours
    before = ours.snapshot.pins
    pins = {
        str(key): _NO_TABLE if type_.ours is None else before[str(type_.ours.key)]
        for key, type_ in merged.types.items()
    }
    # It is never looked up by its digest: it is not stored.
    schema = StoredSchema("", merged.source, merged.accepted)
    return View(replace(ours.snapshot, pins=pins), schema, ours.tables)
