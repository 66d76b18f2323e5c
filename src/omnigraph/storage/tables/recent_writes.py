"""Recent writes of this process: a reader of the version before follows them without reading.

Every version that this process makes of another one is remembered with the rows that it added and
the row ids of those that it ended, as long as they are few. Nothing depends on it: who finds no
step from one version to another reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lru_cache import LruCache
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.pins import Pin, Staged

RowIds: TypeAlias = npt.NDArray[np.uint64]
# The row ids of fragments of a version that is open.
RowIdsOf: TypeAlias = Callable[[str, str, Sequence[int]], RowIds | None]

# What is larger is read again as fast as it is remembered.
STEP_BYTES_MAX: Final = 1024 * 1024
BYTES_MAX: Final = 32 * 1024 * 1024
# A reader may lag by so many versions and still follow.
STEPS_MAX: Final = 4_096
CHAIN_MAX: Final = 256
_NO_ROWS: Final[RowIds] = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class _WriteStep:
    """How one version was made of another one."""

    version: str
    parent: str
    dead: RowIds
    rows: tuple[pa.Table, ...] = ()
    fragments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What happened between two versions: rows that ended, and those that were added and live.

    The rows have all columns that were written, but no blobs.
    """

    since: str
    dead: RowIds
    row_ids: RowIds
    rows: pa.Table


class RecentWrites:
    """The last versions that this process made; safe to share between threads."""

    def __init__(self) -> None:
        self._steps: LruCache[tuple[str, str], _WriteStep] = LruCache(
            STEPS_MAX, bytes_max=BYTES_MAX
        )

    def record_version(
        self, pin: Pin, parent: Pin, *, dead: pa.Array | None = None, staged: Sequence[Staged] = ()
    ) -> None:
        """Remember how a version was made; one that came with more than a little is not."""
        rows = tuple(part.cached_rows for part in staged if part.cached_rows is not None)
        # A copy, as of the rows: what a scan found may be a part of something large.
        ended = _NO_ROWS if dead is None else dead.to_numpy().copy()
        nbytes = sum(each.get_total_buffer_size() for each in rows) + ended.nbytes
        if len(rows) < len(staged) or nbytes > STEP_BYTES_MAX or pin.version == parent.version:
            return
        fragments = range(parent.high_water + 1, parent.high_water + 1 + _count_rows(staged))
        step = _WriteStep(pin.version, parent.version, ended, rows, tuple(fragments))
        self._steps.put((pin.path, pin.version), step, nbytes)

    def find_steps(self, pin: Pin, known: Container[str]) -> list[_WriteStep] | None:
        """The steps from the newest known version before this one; None if it was not made here."""
        found: list[_WriteStep] = []
        version = pin.version
        while version not in known:
            # Not a use: a chain is of no use without its newest steps, so that the oldest go first.
            step = self._steps.peek((pin.path, version))
            if step is None or len(found) >= CHAIN_MAX:
                return None
            found.append(step)
            version = step.parent
        return found[::-1]

    def find_changes_since(
        self, pin: Pin, known: Container[str], *, schema: pa.Schema, row_ids_of: RowIdsOf
    ) -> RowChanges | None:
        """What happened since the newest known version before this one; None if it was not here."""
        steps = self.find_steps(pin, known)
        if not steps:
            return None
        parts = []
        for step in steps:
            found = row_ids_of(pin.path, step.version, step.fragments)
            if found is None or len(found) != sum(map(len, step.rows)):
                return None
            parts.append(found)
        return _build_changes(steps, parts, schema)


def _build_changes(
    steps: list[_WriteStep], parts: list[RowIds], schema: pa.Schema
) -> RowChanges | None:
    rows = _join_rows([each for step in steps for each in step.rows], schema)
    if rows is None:
        return None
    row_ids = np.concatenate([np.zeros(0, np.uint64), *parts])
    dead = np.concatenate([np.zeros(0, np.uint64), *(step.dead for step in steps)])
    if len(steps) > 1 and len(dead):
        is_living = ~np.isin(row_ids, dead)
        row_ids, rows = row_ids[is_living], rows.filter(pa.array(is_living))
    return RowChanges(steps[0].parent, dead, row_ids, rows)


def _join_rows(tables: list[pa.Table], schema: pa.Schema) -> pa.Table | None:
    """Rows with all columns of a table but blobs; None if they have others."""
    names = [field.name for field in schema if not is_blob(field)]
    if len(tables) == 1 and tables[0].column_names == names:
        return tables[0]
    known = [each.select([name for name in names if name in each.column_names]) for each in tables]
    empty = pa.schema([schema.field(name) for name in names]).empty_table()
    # A column that was left out, or is newer than the row, is null.
    rows = pa.concat_tables([empty, *known], promote_options="default")
    return rows if rows.column_names == names else None


def select_cached_rows(rows: object) -> pa.Table | None:
    """Rows that are worth to be remembered with what is written of them."""
    if not isinstance(rows, pa.Table):
        return None
    batches = rows.to_batches()
    if sum(map(pa.ipc.get_record_batch_size, batches)) > STEP_BYTES_MAX:
        return None
    # A few rows cut from a large table, or some columns of a batch that came as one piece, would
    # keep all of it in memory: no size of a table counts that. A copy takes 10 microseconds.
    copies = [pa.ipc.read_record_batch(each.serialize(), rows.schema) for each in batches]
    return pa.Table.from_batches(copies, schema=rows.schema)


def _count_rows(staged: Sequence[Staged]) -> int:
    return sum(len(part.fragments) for part in staged)
