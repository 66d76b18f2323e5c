"""The units of a load that are under way, and what they have written, told beside the graph.

Whoever leads a load may be interrupted while units are written elsewhere. Then it asks them to
stop, waits until they have, and removes what they tell to have written. Units that are killed
tell nothing: what they leave is garbage like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from omnigraph.ids import new_ulid
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Staged
from omnigraph.writers.bulk.notes import read_note
from omnigraph.writers.bulk.runner import Runner
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.units import GraphPlace

# So long an ended load waits for its units: longer than one takes to write some of its rows.
STOP_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05
# Objects that are read or removed at once, since each waits for the store.
_AT_ONCE: Final = 8
_STAGED: Final = ".staged"
_GO: Final = b"go"
_STOP: Final = b"stop"

U = TypeVar("U")
R = TypeVar("R")


class Stopped(Exception):
    """A unit of a load that has ended: nobody waits for its answer."""


@dataclass(frozen=True, slots=True)
class Attended:
    """A unit of a load with the function that it is for."""

    unit: Any  # whatever the function takes
    task: Callable[[Any], Any]
    place: GraphPlace
    folder: str


@dataclass(frozen=True, slots=True)
class AttendedRunner:
    """Runs the units of one load; when it raises, those units have stopped, if they could."""

    runner: Runner
    place: GraphPlace
    folder: str

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        """One answer per unit."""
        attended = [Attended(unit, task, self.place, self.folder) for unit in units]
        with stopped_if_left(stores_of(self.place).notes, self.folder):
            answers: list[R] = self.runner.run(attended, attend, stage=stage)
        return answers


def attend(attended: Attended) -> Any:  # whatever the function answers
    """Run the function of a unit, and tell meanwhile that it is under way."""
    with under_way(stores_of(attended.place).notes, attended.folder):
        return attended.task(attended.unit)


@contextmanager
def stopped_if_left(notes: Objects, folder: str) -> Iterator[None]:
    """Let units run meanwhile; if this fails, ask them to stop, and wait until they have."""
    notes.put(_load(folder), _GO)
    try:
        yield
    except BaseException:
        # Any failure: it must not hide why the load has ended.
        with suppress(Exception):
            notes.put(_load(folder), _STOP)
            _await_end(notes, folder)
        raise


@contextmanager
def under_way(notes: Objects, folder: str) -> Iterator[None]:
    """Tell that a unit is being run."""
    require_wanted(notes, folder)
    path = f"{_attended(folder)}/{new_ulid()}"
    notes.put(path, b"")
    try:
        yield
    finally:
        with suppress(Exception):
            notes.delete([path])


def require_wanted(notes: Objects, folder: str) -> None:
    """Stop a unit whose load has ended."""
    if read_note(notes, _load(folder)) != _GO:
        raise Stopped


def tell_staged(notes: Objects, folder: str, staged: Staged) -> None:
    """Tell of rows that were written."""
    if staged.files:
        notes.put(f"{folder}/{_name(staged)}", staged.to_json().encode())


def discard(stores: Stores, folder: str, *, kept: Sequence[Staged]) -> None:
    """Remove the rows that units told of, but some."""
    stay = {_name(staged) for staged in kept if staged.files}
    told = [
        entry.path
        for entry in stores.notes.list(folder)
        if entry.path.endswith(_STAGED) and entry.path.rpartition("/")[2] not in stay
    ]

    if not told:
        return

    def remove(path: str) -> None:
        # Any failure: it must not hide why the rows are not wanted.
        with suppress(Exception):
            data = stores.notes.get(path)
            if data is not None:
                stores.tables.discard(Staged.from_json(data.decode()))

    with ThreadPoolExecutor(_AT_ONCE) as removers:
        list(removers.map(remove, told))
    stores.notes.delete(told)


def forget_notes(notes: Objects, folder: str) -> None:
    """Remove everything that the units of a load left for each other."""
    for each in (folder, _attended(folder)):
        notes.delete([entry.path for entry in notes.list(each)])


def _await_end(notes: Objects, folder: str) -> None:
    load, end = _load(folder), time.monotonic() + STOP_SECONDS
    while any(entry.path != load for entry in notes.list(_attended(folder))):
        if time.monotonic() > end:
            return
        time.sleep(_LOOK_SECONDS)


def _attended(folder: str) -> str:
    """A folder of its own: that of the notes may be large, and is listed rarely."""
    return layout.units_folder(folder)


def _load(folder: str) -> str:
    """Says whether a load goes on; it also keeps the folder from being removed meanwhile."""
    return f"{_attended(folder)}/load"


def _name(staged: Staged) -> str:
    """Found without being read: data files have names that nothing else has."""
    return f"{staged.files[0].rpartition('/')[2]}{_STAGED}"
