"""What the tasks of a load leave beside the graph for each other and for the process that leads it.

The name of a note carries the digest of its bytes, and the note is compared with it before Arrow or
pickle reads it.
"""

from __future__ import annotations

import pickle
import re
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import CorruptObjectError, StagingExpiredError
from omnigraph.ids import generate_ulid
from omnigraph.storage.digests import digest_of
from omnigraph.storage.objects import Objects

_DIGEST: Final = re.compile(r"-([0-9a-f]{16})\.[a-z]+$")


def write_note(notes: Objects, folder: str, data: bytes, *, kind: str) -> str:
    """Leave some bytes; the path of them."""
    digest = digest_of(data).partition(":")[2]
    path = f"{folder}/{generate_ulid()}-{digest}.{kind}"
    notes.put(path, data)
    return path


def write_task_input(notes: Objects, folder: str, question: object) -> str:
    """Leave a question that many tasks are asked, so that each is sent only the path of it."""
    return write_note(notes, folder, pickle.dumps(question), kind="question")


def read_task_input(notes: Objects, path: str) -> Any:  # whatever the task is asked
    """A question that was left."""
    return pickle.loads(read_task_object(notes, path))  # noqa: S301 — written by who leads the load


def write_task_rows(notes: Objects, folder: str, rows: pa.Table) -> str:
    """Leave rows as an Arrow stream; the path of it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return write_note(notes, folder, bytes(sink.getvalue()), kind="rows")


def read_task_rows(notes: Objects, path: str) -> pa.Table:
    """Rows that were left."""
    return pa.ipc.open_stream(read_task_object(notes, path)).read_all()


def read_task_object(notes: Objects, path: str) -> bytes:
    """All bytes of a note, as they were written."""
    data = require_task_object(notes.get(path))
    found = _DIGEST.search(path)
    if found and digest_of(data) != f"xxh3:{found[1]}":
        reason = "its digest is not the one in its name"
        raise CorruptObjectError(
            path, reason, hint="run the load again: nothing of it was committed"
        )
    return data


def require_task_object(data: bytes | None) -> bytes:
    """What a note holds; notes stay until their load ends, unless a clean-up takes it for dead."""
    if data is None:
        raise StagingExpiredError(
            "the notes of this load were removed meanwhile",
            hint="run it again, and clean up only what is older than the longest load takes",
        )
    return data
