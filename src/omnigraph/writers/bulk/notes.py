"""What the tasks of a load leave beside the graph for each other and for who leads the load."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from omnigraph.errors import StagingExpired
from omnigraph.ids import new_ulid
from omnigraph.storage.objects import Objects


def write_question(notes: Objects, folder: str, question: object) -> str:
    """Leave a question that many tasks are asked, so that each is sent only the path of it."""
    path = f"{folder}/{new_ulid()}.question"
    notes.put(path, pickle.dumps(question))
    return path


def read_question(notes: Objects, path: str) -> Any:  # whatever the task is asked
    """A question that was left."""
    return pickle.loads(read_note(notes, path))  # noqa: S301 — written by who leads the load


def write_rows(notes: Objects, folder: str, rows: pa.Table) -> str:
    """Leave rows as an Arrow stream; the path of it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    path = f"{folder}/{new_ulid()}.rows"
    notes.put(path, bytes(sink.getvalue()))
    return path


def read_rows(notes: Objects, path: str) -> pa.Table:
    """Rows that were left."""
    return pa.ipc.open_stream(read_note(notes, path)).read_all()


def read_note(notes: Objects, path: str) -> bytes:
    """All bytes of a note."""
    return require_note(notes.get(path))


def require_note(data: bytes | None) -> bytes:
    """What a note holds; notes stay until their load ends, unless a clean-up takes it for dead."""
    if data is None:
        raise StagingExpired(
            "the notes of this load were removed meanwhile",
            hint="run it again, and clean up only what is older than the longest load takes",
        )
    return data
