"""Change sets beside their record: small ones inside it, large ones in an Arrow file.

The record has the digest of the file, which is compared before Arrow reads a byte: its reader ends
the process on some damaged files.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CorruptObjectError
from omnigraph.ids import generate_ulid
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.digests import digest_of
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance, Spilled

# A record is read whole by every reader of the branch, so it stays a few tens of kilobytes.
INLINE_IDS_MAX: Final = 1_000
INLINE_BYTES_MAX: Final = 64 * 1024

# Inserted, updated, deleted, mark.
_OPS: Final = range(4)
_SCHEMA: Final = pa.schema([("op", pa.int8()), ("id", pa.large_string())])
# Says whether marks were kept, because a file without marks may also mean that there were none.
_MARKS_KEPT: Final = b"marks"

_HINT: Final = "restore this object from a copy of the graph"

# A change set that needs no further object to be compared with.
LoadedChange: TypeAlias = Changed | Bulk | Maintenance


def seal_change_set(objects: Objects, change: ChangeSet) -> ChangeSet:
    """The change set as its record will hold it, after writing the file it may need.

    The file is written before the record: a crash between the two leaves an unreferenced object.
    """
    if not isinstance(change, Changed) or _fits_inline(change):
        return change
    path = layout.build_change_set_path(generate_ulid())
    data = _to_arrow(change)
    objects.put_new(path, data)
    return Spilled(
        file=path,
        inserted=len(change.inserted),
        updated=len(change.updated),
        deleted=len(change.deleted),
        digest=digest_of(data),
    )


def load_change_set(objects: Objects, change: ChangeSet) -> LoadedChange:
    """The change set with its ids in memory."""
    if not isinstance(change, Spilled):
        return change
    data = objects.get(change.file)
    if data is None:
        raise CorruptObjectError(change.file, "a record names this change set, and it is absent")
    if change.digest is not None and digest_of(data) != change.digest:
        raise CorruptObjectError(change.file, "its digest is not the one of its record", hint=_HINT)
    try:
        found = _from_arrow(data)
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        raise CorruptObjectError(
            change.file, f"is not a change set: {error}", hint=_HINT
        ) from error
    said = (change.inserted, change.updated, change.deleted)
    if (
        change.digest is None
        and tuple(map(len, (found.inserted, found.updated, found.deleted))) != said
    ):
        raise CorruptObjectError(change.file, "it has other ids than its record says", hint=_HINT)
    return found


def combine_change_sets(changes: list[Changed]) -> Changed:
    """One change set for writes that touch different entities of a type."""
    if len(changes) == 1:
        return changes[0]
    marks = [change.marks for change in changes if change.marks is not None]
    return Changed(
        inserted=IdSet.union_of([change.inserted for change in changes]),
        updated=IdSet.union_of([change.updated for change in changes]),
        deleted=IdSet.union_of([change.deleted for change in changes]),
        marks=IdSet.union_of(marks) if len(marks) == len(changes) else None,
    )


def _fits_inline(change: Changed) -> bool:
    sets = [change.inserted, change.updated, change.deleted, change.marks or IdSet()]
    if sum(map(len, sets)) > INLINE_IDS_MAX:
        return False
    return sum(len(value) + 3 for ids in sets for value in ids) <= INLINE_BYTES_MAX


def _to_arrow(change: Changed) -> bytes:
    marks = IdSet() if change.marks is None else change.marks
    arrays = [ids.to_array() for ids in (change.inserted, change.updated, change.deleted, marks)]
    ops = [pa.repeat(pa.scalar(op, pa.int8()), len(ids)) for op, ids in enumerate(arrays)]
    schema = _SCHEMA if change.marks is None else _SCHEMA.with_metadata({_MARKS_KEPT: b"kept"})
    table = pa.table([pa.chunked_array(ops), pa.chunked_array(arrays)], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _from_arrow(data: bytes) -> Changed:
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    if not table.schema.equals(_SCHEMA):
        raise ValueError(f"its columns are {table.schema.names}")
    # Offsets that lead out of their buffers are believed by everything that follows.
    table.validate(full=True)
    inserted, updated, deleted, marks = (
        IdSet(table["id"].filter(pc.equal(table["op"], op))) for op in _OPS
    )
    are_marks_kept = _MARKS_KEPT in (table.schema.metadata or {})
    return Changed(inserted, updated, deleted, marks if are_marks_kept else None)
