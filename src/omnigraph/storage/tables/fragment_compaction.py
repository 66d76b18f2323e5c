"""Joining small fragments: planned and written on one version, replayed on a newer one.

Tiers are powers of the fan-out. As soon as there are FANOUT small fragments, the lowest tier that
holds half of them is joined, so a version has few small fragments and a row is rewritten a few
times per tier, never once per commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import lance.optimize
import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction as LancePlanner
from lance.optimize import CompactionOptions

from omnigraph.storage.tables.fragments import fragment_of, renumber_fragments
from omnigraph.storage.tables.pins import Pin, list_file_names
from omnigraph.storage.tables.row_ids import ROW_ID, fetch_rows_by_id
from omnigraph.storage.tables.table_indexes import Indexed

# Its stubs lack the text form of a task and the results' own field names.
_Task: Any = lance.optimize.CompactionTask
# Gives written fragments the names they keep.
Seal: TypeAlias = Callable[[Iterable[FragmentMetadata]], list[FragmentMetadata]]
# Refuses fragments, by id, that must not be copied.
Require: TypeAlias = Callable[[list[int]], None]

FANOUT = 32
TIERS = tuple(FANOUT**level for level in range(1, 4))
# Fragments at least this large are rewritten only to get rid of dead rows.
SMALL_ROWS_MAX = TIERS[-1]
# A rewrite of N rows is paid by N/10 deletes; in small fragments dead rows wait for the next join.
DEAD_SHARE_MAX = 0.1
DEAD_FRAGMENT_ROWS_MIN = FANOUT**2
REWRITTEN_ROWS_TARGET = 1024 * 1024
# How many fragments others may add while a compaction runs without moving its new ones to other
# ids. There are 2**32 ids, so that a table may be compacted millions of times.
RESERVED_IDS = 1024

_THOROUGH: CompactionOptions = {
    "target_rows_per_fragment": REWRITTEN_ROWS_TARGET,
    "materialize_deletions_threshold": DEAD_SHARE_MAX,
}


@dataclass(frozen=True, slots=True)
class Compaction:
    """What to rewrite on one version: independent tasks, as texts that any process can run."""

    pin: Pin
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Fragments that hold the live rows of other fragments, under the same row ids."""

    inputs: tuple[int, ...]
    outputs: tuple[FragmentMetadata, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction whose files are written and that no version shows yet."""

    pin: Pin
    groups: tuple[Rewritten, ...]
    # Segments over the new fragments, for indexes that forget rewritten rows.
    indexed: Indexed | None = None

    @property
    def inputs(self) -> list[int]:
        """The fragments that are rewritten."""
        return [number for group in self.groups for number in group.inputs]

    @property
    def files(self) -> list[str]:
        """The data files written, relative to the table's data folder."""
        return [
            name
            for group in self.groups
            for output in group.outputs
            for name in list_file_names(output)
        ]


def plan_compaction(
    dataset: LanceDataset, pin: Pin, *, is_thorough: bool = False
) -> Compaction | None:
    """The next useful rewrite of this version, or None; a thorough one joins all it can."""
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    options = _THOROUGH if is_thorough else _plan_join(fragments) or _plan_purge(fragments)
    if options is None:
        return None
    tasks: Any = LancePlanner.plan(dataset, options).tasks
    return Compaction(pin, tuple(task.json() for task in tasks)) if tasks else None


def execute_compaction(
    dataset: LanceDataset, compaction: Compaction, *, require_inputs: Require, seal: Seal
) -> Iterator[Rewritten]:
    """Write the new fragments, task by task, and give their files the names they keep."""
    for text in compaction.tasks:
        task = _Task.from_json(text)
        require_inputs([fragment.id for fragment in task.fragments])
        result = task.execute(dataset)
        inputs = tuple(fragment.id for fragment in result.original_fragments)
        yield Rewritten(inputs, tuple(seal(result.new_fragments)))


@dataclass(frozen=True, slots=True)
class Replay:
    """How a compaction is applied to a version: the rewrite, then the rows it would revive."""

    rewrite: LanceOperation.Rewrite
    revived: pa.Array


def replay_compaction(
    compacted: Compacted, *, planned: LanceDataset, current: LanceDataset, pin: Pin
) -> Replay | None:
    """The compaction on the version `current`; None when its rows are elsewhere by now."""
    before = {fragment.fragment_id: fragment.metadata for fragment in planned.get_fragments()}
    now = {fragment.fragment_id: fragment.metadata for fragment in current.get_fragments()}
    groups, moved, gone = [], [], []
    # Ids that are the same on every version that did not use them up meanwhile: segments of
    # indexes were built for them.
    high_water = max(pin.high_water, compacted.pin.high_water + RESERVED_IDS)
    for group in compacted.groups:
        outputs = renumber_fragments(group.outputs, above=high_water)
        high_water += len(outputs)
        kept = [now[number] for number in group.inputs if number in now]
        if any(list_file_names(old) != list_file_names(before[old.id]) for old in kept):
            return None
        if kept:
            groups.append(LanceOperation.RewriteGroup(kept, outputs))
            moved += [
                old.id
                for old in kept
                if _identify_deletions(old) != _identify_deletions(before[old.id])
            ]
            gone += [number for number in group.inputs if number not in now]
    held, live = _read_row_ids(planned, moved), _read_row_ids(current, moved)
    lost = _read_row_ids(planned, gone)
    # Not a descendant of the planned version: the outputs lack rows that live here. Or another
    # compaction was faster: the outputs hold rows that live elsewhere.
    if not groups or len(np.setdiff1d(live, held)) or _is_any_live(current, lost):
        return None
    # The outputs hold every row that lived when they were planned. Rows that died since would
    # come back to life with the rewrite, so they have to be killed again, by row id.
    revived = np.concatenate([np.setdiff1d(held, live), lost])
    return Replay(LanceOperation.Rewrite(groups, []), pa.array(revived, pa.uint64()))


def _plan_join(fragments: list[FragmentMetadata]) -> CompactionOptions | None:
    sizes = [fragment.physical_rows for fragment in fragments]
    if sum(size < SMALL_ROWS_MAX for size in sizes) < FANOUT:
        return None
    tier = next(tier for tier in TIERS if sum(size < tier for size in sizes) >= FANOUT // 2)
    # Lance would also purge large fragments here, and cut them into pieces of the tier's size.
    return {"target_rows_per_fragment": tier, "materialize_deletions": False}


def _plan_purge(fragments: list[FragmentMetadata]) -> CompactionOptions | None:
    worthy = {
        fragment.id
        for fragment in fragments
        if fragment.physical_rows >= DEAD_FRAGMENT_ROWS_MIN
        and fragment.num_deletions > DEAD_SHARE_MAX * fragment.physical_rows
    }
    if not worthy:
        return None
    return {
        "target_rows_per_fragment": REWRITTEN_ROWS_TARGET,
        "materialize_deletions_threshold": DEAD_SHARE_MAX,
        "excluded_fragment_ids": [one.id for one in fragments if one.id not in worthy],
    }


def _identify_deletions(fragment: FragmentMetadata) -> object:
    """Which rows of a fragment are dead: deletion files are never changed."""
    return fragment.deletion_file and fragment.deletion_file.asdict()


def _read_row_ids(
    dataset: LanceDataset, fragment_ids: list[int]
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    if not fragment_ids:
        return np.empty(0, np.uint64)
    fragments = [fragment_of(dataset, number) for number in fragment_ids]
    found = dataset.scanner(columns=[ROW_ID], fragments=fragments).to_table()
    row_ids: np.ndarray[tuple[int], np.dtype[np.uint64]] = found[ROW_ID].to_numpy()
    return row_ids


def _is_any_live(
    dataset: LanceDataset, row_ids: np.ndarray[tuple[int], np.dtype[np.uint64]]
) -> bool:
    if not len(row_ids):
        return False
    return bool(len(fetch_rows_by_id(dataset, pa.array(row_ids), columns=[ROW_ID])))
