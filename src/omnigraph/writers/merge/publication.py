"""From a merged change to a transaction, or to the conflicts that keep it from being one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.errors import MergeConflict
from omnigraph.versioning.effects import Adopt, Effect, Register
from omnigraph.versioning.footprint import WHOLE, Footprint, union
from omnigraph.versioning.record import CommitRef
from omnigraph.versioning.schemas import Schemas
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.committed import Committed
from omnigraph.writers.keys import Keys
from omnigraph.writers.merge.conflicts import (
    LISTED_MAX,
    Conflicts,
    joined,
    rule_conflicts,
    with_images,
)
from omnigraph.writers.merge.foreseen import Foreseen
from omnigraph.writers.merge.schemas import Bridge, bridge
from omnigraph.writers.merge.three_way import MergedChange
from omnigraph.writers.merge.wording import Action
from omnigraph.writers.prepare import Request, composed
from omnigraph.writers.staging import Staging
from omnigraph.writers.validate import Findings, examine


@dataclass(frozen=True)
class Checked:
    """A merged change that was held against the rules of the merged schema; nothing is written.

    `reads` are what the answer depends on, by the names of the merged schema; `keys` know ids by
    these names. With `is_forward` ours is as the base, and has to be so to the end.
    """

    merged: MergedChange
    keys: Keys
    reads: Footprint
    conflicts: Conflicts
    is_forward: bool


def checked(merged: MergedChange, *, keys: Keys, is_forward: bool = False) -> Checked:
    """Look for conflicts of every kind; a merged state that is wholly theirs has no new ones."""
    sides, schema = merged.sides, merged.schema
    if not schema.is_ours:
        # What is known of a type by its name does not hold for a name it does not have yet.
        keys = Keys(sides.lineage.log)
    parts, reads = [merged.conflicts], {}
    if not is_forward:
        committed = Foreseen(schema, sides.ours, keys, merged.change)
        findings = Findings(shown_max=LISTED_MAX)
        reads = dict(examine(merged.change, committed, findings))
        parts.append(rule_conflicts(merged.change, committed, findings, schema, sides))
    conflicts = with_images(joined(parts), schema, sides)
    return Checked(merged, keys, reads, conflicts, is_forward)


def refuse_conflicts(conflicts: Conflicts, action: Action) -> None:
    """Raise the conflicts, if there are any."""
    if conflicts.count:
        raise MergeConflict(conflicts.listed, count=conflicts.count, operation=action)


def transaction(
    found: Checked,
    staging: Staging,
    request: Request,
    *,
    source: CommitRef | None,
    schemas: Schemas,
) -> Transaction:
    """The transaction of a merge without conflicts; `source` is its second parent."""
    merged = found.merged
    sides = merged.sides
    refuse_conflicts(found.conflicts, sides.action)
    across = bridge(merged.schema, sides.ours, schemas=schemas, adopted=merged.adopted)
    committed = Committed(across.view, found.keys, merged.change)
    rows = [each.rows for each in merged.change.values() if each.adopted is None]
    with staging.preparing(rows):
        made = composed(merged.change, committed, staging, request=request, reads=found.reads)
    forwarded = {str(key): change for key, change in merged.forwarded.items()}
    effects = _effects(merged, across, made.effects)
    made = across.settled(replace(made, effects=effects, changes={**made.changes, **forwarded}))
    is_whole = found.is_forward or made.schema is not None
    whole = dict.fromkeys(sides.ours.snapshot.pins, WHOLE) if is_whole else {}
    return replace(
        made,
        footprint=union([made.footprint, merged.reads, whole]),
        merged=source,
        preferred=merged.preferred,
    )


def _effects(
    merged: MergedChange, across: Bridge, effects: tuple[Effect, ...]
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
