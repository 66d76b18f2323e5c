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
from omnigraph.writers.merge.schemas import Bridge, bridge
from omnigraph.writers.merge.three_way import MergedChange
from omnigraph.writers.prepare import Request, composed
from omnigraph.writers.staging import Staging
from omnigraph.writers.validate import Findings, examine


@dataclass(frozen=True)
class Checked:
    """A merged change that was held against the rules of the merged schema.

    `reads` are what the answer depends on, by the names of the merged schema.
    """

    merged: MergedChange
    bridge: Bridge
    committed: Committed
    reads: Footprint
    conflicts: Conflicts


def checked(
    merged: MergedChange, *, schemas: Schemas, keys: Keys, is_forward: bool = False
) -> Checked:
    """Look for conflicts of every kind; a merged state that is wholly theirs has no new ones."""
    across = bridge(merged.schema, merged.sides.ours, schemas=schemas, adopted=merged.adopted)
    if not merged.schema.is_ours:
        # What is known of a type by its name does not hold for a name it does not have yet.
        keys = Keys(merged.sides.lineage.log)
    committed = Committed(across.view, keys, merged.change)
    parts, reads = [merged.conflicts], {}
    if not is_forward:
        findings = Findings(shown_max=LISTED_MAX)
        reads = dict(examine(merged.change, committed, findings))
        parts.append(rule_conflicts(merged.change, committed, findings))
    conflicts = with_images(joined(parts), merged.schema, merged.sides)
    return Checked(merged, across, committed, reads, conflicts)


def refuse_conflicts(conflicts: Conflicts) -> None:
    """Raise the conflicts, if there are any."""
    if conflicts.count:
        raise MergeConflict(conflicts.listed, count=conflicts.count)


def transaction(
    found: Checked,
    staging: Staging,
    request: Request,
    *,
    source: CommitRef | None,
    requires_ours_unchanged: bool,
) -> Transaction:
    """The transaction of a merge without conflicts; `source` is its second parent."""
    refuse_conflicts(found.conflicts)
    merged = found.merged
    rows = [each.rows for each in merged.change.values() if each.adopted is None]
    with staging.preparing(rows):
        made = composed(merged.change, found.committed, staging, request=request, reads=found.reads)
    forwarded = {str(key): change for key, change in merged.forwarded.items()}
    made = found.bridge.settled(
        replace(made, effects=_effects(found, made.effects), changes={**made.changes, **forwarded})
    )
    pins = merged.sides.ours.snapshot.pins
    is_whole = requires_ours_unchanged or made.schema is not None
    whole = dict.fromkeys(pins, WHOLE) if is_whole else {}
    return replace(
        made,
        footprint=union([made.footprint, merged.reads, whole]),
        merged=source,
        preferred=merged.preferred,
    )


def _effects(found: Checked, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The effects with those on tables whose rows nobody looked at: forwarded, and new ones."""
    merged = found.merged
    pins = found.bridge.view.snapshot.pins
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
