"""The tasks that look through committed rows: for their hashes, and for those the load shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.execution.hashing import Hashes
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.comparing import Files, Shared, compare
from omnigraph.writers.bulk.hashes import (
    HashFile,
    are_among,
    read_all,
    text_hashes,
    tuple_hashes,
    write_hashes,
)
from omnigraph.writers.bulk.notes import read_question, read_rows, write_question, write_rows
from omnigraph.writers.bulk.runner import Runner
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.units import UNIT_ROWS, GraphPlace, Job
from omnigraph.writers.validate.groups import Group

# So few rows are looked through at once, where the load is led from.
_HERE_ROWS_MAX: Final = 1024 * 1024
_SHARED: Final = "shared"

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to a committed table: the rows whose hash is wanted, with some columns.

    What is hashed is a column of texts, or the tuple of a group.
    """

    type_key: str
    columns: tuple[str, ...]
    wanted: Files
    hashed: str | Group = ID_COLUMN


@dataclass(frozen=True, slots=True)
class _Look:
    """A question to some fragments, by the path of it."""

    place: GraphPlace = field(repr=False)
    folder: str
    parts: int
    pin: Pin
    fragments: tuple[int, ...]
    probe: str


def probed(job: Job, pin: Pin, probe: Probe, runner: Runner) -> pa.Table:
    """The committed rows that answer a probe."""
    if job.parts > 1:
        # No worker could hold what a load of this size wants: only what both have is looked for.
        committed = committed_hashes(job, pin, probe, runner)
        question = Shared(_SHARED, committed, probe.wanted)
        probe = replace(probe, wanted=compare(job, [question], runner)[_SHARED])
    stores = stores_of(job.place)
    paths = _looked(job, pin, probe, look_through, runner) if probe.wanted else []
    found = [read_rows(stores.notes, path) for path in paths if path is not None]
    if not found:
        return stores.tables.open(pin).scan(columns=list(probe.columns), filter="false")
    return pa.concat_tables(found)


def committed_hashes(job: Job, pin: Pin, probe: Probe, runner: Runner) -> Files:
    """The hashes of all committed rows, of what a probe asks for."""
    return tuple(_looked(job, pin, replace(probe, wanted=()), hash_rows, runner))


def look_through(look: _Look) -> str | None:
    """The path of a note with the rows that were found; None when there are none."""
    stores = stores_of(look.place)
    probe: Probe = read_question(stores.notes, look.probe)
    wanted = _wanted(_Wanted(look.place.uri, look.probe, probe.wanted, stores.notes))
    found = []
    for rows, hashes in _hashed_rows(look, probe, stores):
        is_found = are_among(hashes, wanted)
        if is_found.any():
            found.append(rows.filter(pa.array(is_found)).select(list(probe.columns)))
    return write_rows(stores.notes, look.folder, pa.concat_tables(found)) if found else None


def hash_rows(look: _Look) -> HashFile:
    """A file with the hashes of the rows."""
    stores = stores_of(look.place)
    probe: Probe = read_question(stores.notes, look.probe)
    hashes = (found for _, found in _hashed_rows(look, replace(probe, columns=()), stores))
    return write_hashes(stores.notes, look.folder, hashes, parts=look.parts, is_sorted=True)


def row_hashes(rows: pa.Table, hashed: str | Group) -> Hashes:
    """The hash of each row, by a column or by a group that exempts none of them."""
    if isinstance(hashed, Group):
        return tuple_hashes(hashed.texts(rows))
    return text_hashes(rows[hashed])


def forget_wanted() -> None:
    """Let go of the hashes that were kept from one look to the next."""
    _wanted.cache_clear()


def _looked(
    job: Job, pin: Pin, probe: Probe, task: Callable[[_Look], Answer], runner: Runner
) -> list[Answer]:
    """The answers of all fragments; few rows are looked through where the load is led from."""
    stores = stores_of(job.place)
    groups = _groups(stores.tables.open(pin).fragment_ids, pin)
    path = write_question(stores.notes, job.folder, probe)
    looks = [_Look(job.place, job.folder, job.parts, pin, group, path) for group in groups]
    if pin.rows <= _HERE_ROWS_MAX:
        return [task(look) for look in looks]
    return runner.run(looks, task, stage=f"committed {probe.type_key}")


def _hashed_rows(look: _Look, probe: Probe, stores: Stores) -> Iterator[tuple[pa.Table, Hashes]]:
    hashed = probe.hashed.columns if isinstance(probe.hashed, Group) else (probe.hashed,)
    names = list(dict.fromkeys([*probe.columns, *hashed]))
    table = stores.tables.open(look.pin)
    for batch in table.batches(columns=names, fragments=look.fragments):
        rows = pa.Table.from_batches([batch])
        if isinstance(probe.hashed, Group):
            rows = probe.hashed.bound_rows(rows)
        yield rows, row_hashes(rows, probe.hashed)


def _groups(fragments: Sequence[int], pin: Pin) -> list[tuple[int, ...]]:
    """Fragments in groups of about as many rows as a unit has."""
    if not fragments:
        return []
    count = max(1, min(len(fragments), -(-pin.rows // UNIT_ROWS)))
    return [tuple(each.tolist()) for each in np.array_split(np.array(fragments), count)]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The hashes that a probe wants; equal if the probe is."""

    uri: str
    probe: str
    files: Files = field(compare=False)
    objects: Objects = field(compare=False)


@lru_cache(maxsize=1)
def _wanted(wanted: _Wanted) -> Hashes:
    # Kept while a process makes the looks of one probe, which come one after the other.
    return read_all(wanted.objects, wanted.files)
