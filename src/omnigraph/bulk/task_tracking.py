"""The units of a load that are under way, and what they have written, noted beside the graph.

The coordinator of a load may be interrupted while units are written elsewhere. Then it asks them to
stop, waits until they have, and removes what they report to have written. Units that are killed
report nothing: what they leave is garbage like any other.
"""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from omnigraph.bulk.splits import GraphLocation, Stores, get_stores
from omnigraph.bulk.task_runner import Runner
from omnigraph.errors import CorruptObjectError, StagingExpiredError
from omnigraph.ids import generate_ulid
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.digests import digest_of
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.pins import Staged

# So long an ended load waits for its units: longer than one takes to write some of its rows.
STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05

# Objects that are read or removed at once, since each waits for the store.
_REMOVERS_MAX: Final = 8
_STAGED: Final = ".staged"
_GO: Final = b"go"
_STOP: Final = b"stop"
U = TypeVar("U")
R = TypeVar("R")
_DIGEST: Final = re.compile(r"-([0-9a-f]{16})\.[a-z]+$")


class TaskStoppedError(Exception):
    """A unit of a load that has ended: its answer is not awaited."""


@dataclass(frozen=True, slots=True)
class TrackedTask:
    """A unit of a load with the function that it is for."""

    item: Any  # whatever the function takes
    task: Callable[[Any], Any]
    location: GraphLocation
    folder: str

    @property
    def staged_bytes(self) -> int | None:
        """The size of the rows that it is about, if they were staged beside the graph."""
        return getattr(self.item, "staged_bytes", None)


@dataclass(frozen=True, slots=True)
class TrackingRunner:
    """Runs the units of one load; when it raises, those units have stopped, if they could."""

    runner: Runner
    location: GraphLocation
    folder: str

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        """One answer per unit."""
        attended = [TrackedTask(unit, task, self.location, self.folder) for unit in units]
        with stop_tasks_on_error(get_stores(self.location).objects, self.folder):
            answers: list[R] = self.runner.run(attended, run_tracked, stage=stage)
        return answers


def run_tracked(attended: TrackedTask) -> Any:  # whatever the function answers
    """Run the function of a unit, and report meanwhile that it is under way."""
    with mark_running(get_stores(attended.location).objects, attended.folder):
        return attended.task(attended.item)


@contextmanager
def stop_tasks_on_error(notes: Objects, folder: str) -> Iterator[None]:
    """Let units run meanwhile; if this fails, ask them to stop, and wait until they have."""
    notes.put(_state_path_of(folder), _GO)
    try:
        yield
    except BaseException:
        # Any failure: it must not hide why the load has ended.
        with suppress(Exception):
            notes.put(_state_path_of(folder), _STOP)
            _wait_for_tasks(notes, folder)
        raise


@contextmanager
def mark_running(notes: Objects, folder: str) -> Iterator[None]:
    """Report that a unit is being run."""
    require_running_load(notes, folder)
    path = f"{_tasks_folder_of(folder)}/{generate_ulid()}"
    notes.put(path, b"")
    try:
        yield
    finally:
        with suppress(Exception):
            notes.delete([path])


def require_running_load(notes: Objects, folder: str) -> None:
    """Stop a unit whose load has ended."""
    if read_task_object(notes, _state_path_of(folder)) != _GO:
        raise TaskStoppedError


def record_staged(notes: Objects, folder: str, staged: Staged) -> None:
    """Report rows that were written."""
    if staged.list_files:
        notes.put(f"{folder}/{_staged_name_of(staged)}", staged.to_json().encode())


def discard_staged(stores: Stores, folder: str, *, kept: Sequence[Staged]) -> None:
    """Remove the rows that units reported, but some."""
    stay = {_staged_name_of(staged) for staged in kept if staged.list_files}
    reported = [
        entry.path
        for entry in stores.objects.list(folder)
        if entry.path.endswith(_STAGED) and entry.path.rpartition("/")[2] not in stay
    ]

    if not reported:
        return

    def remove(path: str) -> None:
        # Any failure: it must not hide why the rows are not wanted.
        with suppress(Exception):
            data = stores.objects.get(path)
            if data is not None:
                stores.tables.discard(Staged.from_json(data.decode()))

    with ThreadPoolExecutor(_REMOVERS_MAX) as removers:
        list(removers.map(remove, reported))
    stores.objects.delete(reported)


def delete_task_objects(notes: Objects, folder: str) -> None:
    """Remove everything that the units of a load left for each other."""
    for each in (folder, _tasks_folder_of(folder)):
        notes.delete([entry.path for entry in notes.list(each)])


def _wait_for_tasks(notes: Objects, folder: str) -> None:
    load, end = _state_path_of(folder), time.monotonic() + STOP_SECONDS
    while any(entry.path != load for entry in notes.list(_tasks_folder_of(folder))):
        if time.monotonic() > end:
            return
        time.sleep(_POLL_SECONDS)


def _tasks_folder_of(folder: str) -> str:
    """A folder of its own: that of the notes may be large, and is listed rarely."""
    return layout.build_splits_folder(folder)


def _state_path_of(folder: str) -> str:
    """Says whether a load goes on; it also keeps the folder from being removed meanwhile."""
    return f"{_tasks_folder_of(folder)}/load"


def _staged_name_of(staged: Staged) -> str:
    """Found without being read: data files have names that nothing else has."""
    return f"{staged.list_files[0].rpartition('/')[2]}{_STAGED}"


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
