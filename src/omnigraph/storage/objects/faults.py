"""Injected faults: the nth durable step crashes, fails, pauses, or loses its acknowledgement.

A scenario is run once to count its steps, and then once per fault:

    for fault in iter_faults(lambda steps: scenario(fresh_store(), steps)):
        store, steps = fresh_store(), fault.create_steps()
        with suppress(SimulatedCrash):
            scenario(store, steps)
        assert steps.is_met
        ...                          # open the store again, without faults, and look
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar, assert_never

from omnigraph.errors import StorageError, StorageUnknownError
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects

Result = TypeVar("Result")

# What tables only read or plan; every other method of theirs writes something.
_TABLE_READS = frozenset(
    {
        "open",
        "list_references",
        "compute_manifest_digest",
        "read_linear_history",
        "plan_compaction",
        "cut_indexes",
        "forget_unpublished",
    }
)


class SimulatedCrash(BaseException):
    """The process is gone: not an Exception, so that no handler of errors lives through it."""


class FaultKind(StrEnum):
    """What goes wrong at a step, and whether the step happens."""

    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"
    ERROR = "error"
    UNKNOWN_BEFORE = "unknown-before"
    UNKNOWN_AFTER = "unknown-after"
    PAUSE_BEFORE = "pause-before"
    PAUSE_AFTER = "pause-after"


CRASHES = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)
FAILURES = (FaultKind.ERROR, FaultKind.UNKNOWN_BEFORE, FaultKind.UNKNOWN_AFTER)
PAUSES = (FaultKind.PAUSE_BEFORE, FaultKind.PAUSE_AFTER)
_HAPPENING = (FaultKind.CRASH_AFTER, FaultKind.UNKNOWN_AFTER)


@dataclass(frozen=True, slots=True)
class DurableStep:
    """One durable step: what was called, and on which path."""

    operation: str
    path: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at which step, counted from 1."""

    number: int
    kind: FaultKind
    operation: str

    def __str__(self) -> str:
        return f"{self.number:03}-{self.operation}-{self.kind}"

    def create_steps(self, during: Callable[[], object] | None = None) -> Steps:
        """A fresh counter that will meet this fault; `during` is what others do meanwhile."""
        return Steps(self, during=during)


@dataclass(slots=True)
class Steps:
    """The durable steps of one simulated process, counted across all its wrappers and threads."""

    fault: Fault | None = None
    during: Callable[[], object] | None = None
    taken: list[DurableStep] = field(default_factory=list)
    has_fired: bool = False
    is_dead: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, operation: str, path: str, action: Callable[[], Result]) -> Result:
        """Do one durable step, unless the fault is here."""
        kind = self._count(DurableStep(operation, path))
        if kind is None:
            return action()
        if kind in PAUSES:
            return self._pause(kind, action)
        if self.during is not None:
            self.during()
        if kind in _HAPPENING:
            action()
        raise _build_failure(kind, operation, path)

    def _pause(self, kind: FaultKind, action: Callable[[], Result]) -> Result:
        """Stop this process before or after a step, while others go on for as long as they like."""
        assert self.during is not None, "a pause needs to know what others do meanwhile"
        if kind is FaultKind.PAUSE_BEFORE:
            self.during()
            return action()
        result = action()
        self.during()
        return result

    def _count(self, step: DurableStep) -> FaultKind | None:
        with self._lock:
            if self.is_dead:
                # A cleanup handler or another thread of a dead process writes nothing either.
                raise SimulatedCrash
            self.taken.append(step)
            if self.fault is None or self.fault.number != len(self.taken):
                return None
            self.has_fired = True
            # Dead before a CRASH_AFTER step runs, so that no other thread follows it.
            self.is_dead = self.fault.kind in CRASHES
            return self.fault.kind


def iter_faults(
    run: Callable[[Steps], object], kinds: Iterable[FaultKind] = CRASHES
) -> Iterator[Fault]:
    """Run a scenario once without faults, and give each fault of each of its steps."""
    counted = Steps()
    run(counted)
    for number, step in enumerate(counted.taken, 1):
        for kind in kinds:
            yield Fault(number, kind, step.operation)


class FaultyObjects:
    """An object store whose writes are steps."""

    def __init__(self, inner: Objects, steps: Steps) -> None:
        self.uri = inner.uri
        self._inner = inner
        self._steps = steps

    def get(self, path: str) -> bytes | None:
        """The whole object, or None when it is absent."""
        return self._inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object that has them, or None when it is absent."""
        return self._inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object, as a step."""
        return self._steps.take("put_new", path, lambda: self._inner.put_new(path, data))

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object, as a step."""
        self._steps.take("put", path, lambda: self._inner.put(path, data))

    def replace(self, path: str, data: bytes) -> None:
        """Replace an object, as a step."""
        self._steps.take("replace", path, lambda: self._inner.replace(path, data))

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """Every object below a folder."""
        return self._inner.list(prefix, after=after)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects, each as a step of its own: no store removes several at once."""
        for path in paths:
            self._steps.take("delete", path, partial(self._inner.delete, [path]))


class FaultyTables:
    """Tables whose writes are steps; it has every method and attribute of what it wraps."""

    def __init__(self, inner: object, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:  # the wrapped class decides
        found = getattr(self._inner, name)
        if name in _TABLE_READS or not callable(found):
            return found

        def step(*arguments: Any, **options: Any) -> Any:  # the wrapped method decides
            path = str(getattr(arguments[0], "path", arguments[0])) if arguments else ""
            return self._steps.take(name, path, lambda: found(*arguments, **options))

        return step


def _build_failure(kind: FaultKind, operation: str, path: str) -> BaseException:
    match kind:
        case FaultKind.CRASH_BEFORE | FaultKind.CRASH_AFTER:
            return SimulatedCrash(f"{kind} {operation} {path}")
        case FaultKind.ERROR:
            return StorageError(operation, path, "a fault on purpose")
        case FaultKind.UNKNOWN_BEFORE | FaultKind.UNKNOWN_AFTER:
            return StorageUnknownError(operation, path, "a fault on purpose")
        case FaultKind.PAUSE_BEFORE | FaultKind.PAUSE_AFTER:
            raise AssertionError("a paused step happens")
        case _:
            assert_never(kind)
