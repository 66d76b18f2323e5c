"""From three views to what a merge does: one function for merges, cherry-picks and reverts."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.changes import Counts, TypePair, find_candidates, pair_types
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.pins import Pin
from omnigraph.versioning.footprint import ReadSet
from omnigraph.versioning.idset import IdSet
from omnigraph.versioning.record import ChangeSet
from omnigraph.writers.change import GraphChange
from omnigraph.writers.merge.changes import build_type_change, find_adoptable
from omnigraph.writers.merge.conflicts import (
    MergeConflicts,
    join_conflicts,
    list_row_conflicts,
    list_schema_conflicts,
)
from omnigraph.writers.merge.forwards import count_change, find_fast_forwards
from omnigraph.writers.merge.schemas import MergedSchema, MergedType, merge_view_schemas
from omnigraph.writers.merge.sides import MergeSides
from omnigraph.writers.merge.verdicts import RowOutcomes, resolve_rows


@dataclass(frozen=True)
class MergedChange:
    """What a merge does, under the names of the merged schema.

    Where there are conflicts, ours stays as it is in `change`. `adopted` are the tables that become
    what theirs made of them, and `forwarded` those of them whose change set is known without a look
    at rows. `reads` are what the verdicts depend on in ours, by the names there; `preferred` are
    the preferences that decided a conflict.
    """

    sides: MergeSides
    schema: MergedSchema
    change: GraphChange
    adopted: Mapping[TypeKey, Pin]
    forwarded: Mapping[TypeKey, ChangeSet]
    counts: Mapping[TypeKey, Counts]
    reads: Mapping[str, ReadSet]
    preferred: Mapping[str, str]
    conflicts: MergeConflicts


def merge_three_way(
    sides: MergeSides, preferences: Mapping[str, str], *, is_forward: bool = False
) -> MergedChange:
    """Bring what theirs changed since the base into ours; `is_forward` says ours is as the base."""
    by_name = sides.is_matched_by_name
    schema = merge_view_schemas(sides.base, sides.ours, sides.theirs, by_name=by_name)
    forwarded = find_fast_forwards(sides, schema) if is_forward else {}
    verdicts = list(_iter_outcomes(sides, schema, preferences, known=forwarded))
    pins = {key: find_adoptable(type_, schema, sides) for key, type_ in schema.types.items()}
    changes = {
        each.type_.key: build_type_change(each, adopted=pins[each.type_.key]) for each in verdicts
    }
    change = {key: each for key, each in changes.items() if each is not None}
    new = (key for key, type_ in schema.types.items() if type_.ours is None)
    used = set().union(*(each.list_preferred(preferences) for each in verdicts))
    return MergedChange(
        sides=sides,
        schema=schema,
        change=change,
        adopted={key: pin for key in (*forwarded, *change, *new) if (pin := pins[key]) is not None},
        forwarded=forwarded,
        counts=_count_types(sides, schema, verdicts, forwarded),
        reads=dict(_iter_reads(verdicts)),
        preferred={kind: preferences[kind] for kind in sorted(used)},
        conflicts=join_conflicts(
            [list_schema_conflicts(schema.conflicts), list_row_conflicts(verdicts, sides.action)]
        ),
    )


def _iter_outcomes(
    sides: MergeSides,
    schema: MergedSchema,
    preferences: Mapping[str, str],
    *,
    known: Collection[TypeKey],
) -> Iterator[RowOutcomes]:
    asked = [type_ for key, type_ in schema.types.items() if key not in known]
    by_theirs = {each.theirs.key: each for each in asked if each.theirs is not None}
    for pair, ids in _list_candidates(sides, by_theirs):
        type_ = None if pair.new is None else by_theirs.get(pair.new)
        # A type that either side has dropped is about the schema.
        if type_ is not None and not _is_fast_forward(type_, sides):
            yield resolve_rows(type_, sides, ids, preferences)


def _list_candidates(
    sides: MergeSides, wanted: Container[TypeKey]
) -> list[tuple[TypePair, pa.Array]]:
    """The ids that theirs may have changed since the base, by type; some types, by their names."""
    pairs = pair_types(sides.base, sides.theirs, sides.lineage)
    pairs = [pair for pair in pairs if pair.new is not None and pair.new in wanted]
    return list(find_candidates(sides.base, sides.theirs, sides.lineage, pairs=pairs))


def _is_fast_forward(type_: MergedType, sides: MergeSides) -> bool:
    if type_.ours is None or type_.theirs is None:
        return False
    mine = sides.ours.snapshot.pins[str(type_.ours.key)]
    return mine == sides.theirs.snapshot.pins[str(type_.theirs.key)]


def _count_types(
    sides: MergeSides,
    schema: MergedSchema,
    verdicts: Iterable[RowOutcomes],
    forwarded: Mapping[TypeKey, ChangeSet],
) -> dict[TypeKey, Counts]:
    """What happens to each type, in the order of types."""
    found = {each.type_.key: _count_outcomes(each) for each in verdicts}
    for key, change in forwarded.items():
        ours = schema.types[key].ours
        rows = 0 if ours is None else sides.ours.snapshot.pins[str(ours.key)].rows
        found[key] = count_change(change, rows_before=rows)
    return {key: found[key] for key in schema.types if key in found and found[key].total}


def _count_outcomes(verdicts: RowOutcomes) -> Counts:
    is_new = verdicts.is_written & ~verdicts.ours.is_there
    inserted = int(np.count_nonzero(is_new))
    written = int(np.count_nonzero(verdicts.is_written))
    return Counts(inserted, written - inserted, int(np.count_nonzero(verdicts.is_deleted)))


def _iter_reads(verdicts: list[RowOutcomes]) -> Iterator[tuple[str, ReadSet]]:
    for each in verdicts:
        if each.type_.ours is not None and len(each.ids):
            yield str(each.type_.ours.key), ReadSet(ids=IdSet(each.ids))
