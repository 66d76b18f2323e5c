"""From a merged change to a transaction, or to the conflicts that keep it from being one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.errors import MergeConflictError
from omnigraph.versioning.effects import Adopt, Effect, Register
from omnigraph.versioning.footprint import WHOLE, Footprint, unite_footprints
from omnigraph.versioning.record import CommitRef
from omnigraph.versioning.schemas import Schemas
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.committed import CommittedState
from omnigraph.writers.keys import KeyCache
from omnigraph.writers.merge.conflicts import (
    CONFLICTS_LISTED_MAX,
    MergeConflicts,
    join_conflicts,
    list_rule_conflicts,
    with_images,
)
from omnigraph.writers.merge.foreseen import MergedSchemaState
from omnigraph.writers.merge.schemas import SchemaBridge, build_bridge
from omnigraph.writers.merge.three_way import MergedChange
from omnigraph.writers.merge.wording import MergeAction
from omnigraph.writers.prepare import Request, build_transaction
from omnigraph.writers.staging import RowStaging
from omnigraph.writers.validate import Findings, check_change


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
    )


def _build_effects(
    merged: MergedChange, across: SchemaBridge, effects: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """The effects with those on tables whose rows nobody looked at: forwarded, and new ones."""
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
