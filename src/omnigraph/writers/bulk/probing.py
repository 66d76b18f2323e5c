"""The task that looks through committed rows for those that share a hash with the load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.hashing import Hashes
from omnigraph.ids import new_ulid
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.hashes import HashFile, are_among, read_all, text_hashes, tuple_hashes
from omnigraph.writers.bulk.runner import Runner
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.units import UNIT_ROWS, Job, Place
from omnigraph.writers.validate.groups import Group

# So few rows are looked through at once, where the load is led from.
_HERE_ROWS_MAX: Final = 1024 * 1024
_KEPT_SETS: Final = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to a committed table: the rows whose hash is wanted, with some columns.

    What is hashed is a column of texts, or the tuple of a group. With `is_other` the rows that are
    asked for are those whose hash is not wanted.
    """

    type_key: str
    columns: tuple[str, ...]
    wanted: tuple[HashFile, ...]
    hashed: str | Group = ID_COLUMN
    is_other: bool = False


@dataclass(frozen=True, slots=True)
class _Look:
    """A probe of some fragments."""

    place: Place = field(repr=False)
    folder: str
    pin: Pin
    fragments: tuple[int, ...]
    probe: Probe


def probed(job: Job, pin: Pin, probe: Probe, runner: Runner) -> pa.Table:
    """The committed rows that answer a probe."""
    stores = stores_of(job.place)
    table = stores.tables.open(pin)
    groups = _groups(table.fragment_ids, pin)
    looks = [_Look(job.place, job.folder, pin, group, probe) for group in groups]
    if pin.rows <= _HERE_ROWS_MAX:
        answers = [look_through(look) for look in looks]
    else:
        answers = runner.run(looks, look_through, stage=f"committed {probe.type_key}")
    found = [_read(stores.notes, path) for path in answers if path is not None]
    if not found:
        return table.scan(columns=list(probe.columns), filter="false")
    return pa.concat_tables(found)


def look_through(look: _Look) -> str | None:
    """The path of an object with the rows that were found; None when there are none."""
    stores = stores_of(look.place)
    rows = list(_found(look, stores))
    if not rows:
        return None
    path = f"{look.folder}/{new_ulid()}.rows"
    stores.notes.put(path, table_bytes(pa.concat_tables(rows)))
    return path


def table_bytes(rows: pa.Table) -> bytes:
    """Rows as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def row_hashes(rows: pa.Table, hashed: str | Group) -> Hashes:
    """The hash of each row, by a column or by a group that exempts none of them."""
    if isinstance(hashed, Group):
        return tuple_hashes(hashed.texts(rows))
    return text_hashes(rows[hashed])


def _found(look: _Look, stores: Stores) -> Iterator[pa.Table]:
    probe = look.probe
    wanted = _wanted(look.place.uri, probe.wanted, stores.notes)
    hashed = probe.hashed.columns if isinstance(probe.hashed, Group) else (probe.hashed,)
    names = list(dict.fromkeys([*probe.columns, *hashed]))
    table = stores.tables.open(look.pin)
    for batch in table.batches(columns=names, fragments=look.fragments):
        rows = pa.Table.from_batches([batch])
        if isinstance(probe.hashed, Group):
            rows = probe.hashed.bound_rows(rows)
        is_found = are_among(row_hashes(rows, probe.hashed), wanted)
        chosen = ~is_found if probe.is_other else is_found
        if chosen.any():
            yield rows.filter(pa.array(chosen)).select(list(probe.columns))


def _groups(fragments: Sequence[int], pin: Pin) -> list[tuple[int, ...]]:
    """Fragments in groups of about as many rows as a unit has."""
    if not fragments:
        return []
    count = max(1, min(len(fragments), -(-pin.rows // UNIT_ROWS)))
    return [tuple(each.tolist()) for each in np.array_split(np.array(fragments), count)]


def _wanted(uri: str, files: tuple[HashFile, ...], objects: Objects) -> Hashes:
    return _sets(_Wanted(uri, files, objects))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A set of hashes that several looks of one process share."""

    uri: str
    files: tuple[HashFile, ...]
    objects: Objects = field(compare=False)


@lru_cache(maxsize=_KEPT_SETS)
def _sets(wanted: _Wanted) -> Hashes:
    return read_all(wanted.objects, wanted.files)


def _read(objects: Objects, path: str) -> pa.Table:
    data = objects.get(path)
    assert data is not None, "what a unit wrote stays until the load ends"
    return pa.ipc.open_stream(data).read_all()
