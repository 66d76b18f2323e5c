"""What is in memory, piece by piece: made once, counted, and given up when there is too much."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

# In the names of pieces that are made from another piece, whose name comes before.
DERIVED: Final = ":"
# Of the memory of the machine, unless somebody says how much.
SHARE_OF_MEMORY: Final = 0.25
# Where the size of memory cannot be asked for.
_USUAL_MEMORY_BYTES: Final = 8 * 1024**3


class Sized(Protocol):
    """Whatever knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """How many bytes."""


_T = TypeVar("_T", bound=Sized)


class _Held:
    __slots__ = ("nbytes", "used", "value")

    def __init__(self, value: Any, used: int) -> None:  # Any: a piece of any kind
        self.value = value
        self.nbytes = int(value.nbytes)
        self.used = used


class Parts:
    """The pieces of one thing, by name. They all can be made again, with the same content."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        memory.join(self)

    def get(self, name: str, make: Callable[[], _T]) -> _T:
        """A piece; the first who asks makes it, and everybody else who asks meanwhile waits."""
        held = self._held.get(name)
        if held is None:
            with self._lock:
                making = self._making.setdefault(name, threading.Lock())
            with making:
                held = self._held.get(name)
                if held is None:
                    held = self.keep(name, make())
        held.used = next(self.memory.ticks)
        found: _T = held.value
        return found

    def peek(self, name: str) -> Any:  # Any: a piece of any kind
        """A piece if it is in memory, or None; this does not count as a use."""
        held = self._held.get(name)
        return None if held is None else held.value

    def keep(self, name: str, value: Sized) -> _Held:
        """Have a piece that was made elsewhere."""
        held = self._held[name] = _Held(value, next(self.memory.ticks))
        self.memory.make_room(held)
        return held

    @property
    def names(self) -> list[str]:
        """The names of the pieces that are in memory."""
        return list(self._held)

    def entries(self) -> list[tuple[int, Parts, str, int]]:
        """What could be given up: when it was used last, where it is, and how much it is."""
        return [(held.used, self, name, held.nbytes) for name, held in list(self._held.items())]

    def give_up(self, name: str) -> Any:  # Any: a piece of any kind
        """Forget a piece, and return it if there was one; whoever uses it right now keeps it."""
        held = self._held.pop(name, None)
        return None if held is None else held.value


class Memory:
    """The pieces of everything, bounded together by bytes; safe to share between threads."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self.bytes_max = default_bytes() if bytes_max is None else bytes_max
        self.ticks = itertools.count()
        self._all: weakref.WeakSet[Parts] = weakref.WeakSet()
        self._lock = threading.Lock()

    def join(self, parts: Parts) -> None:
        """Count the pieces of one more thing."""
        with self._lock:
            self._all.add(parts)

    @property
    def nbytes(self) -> int:
        """How many bytes all pieces take."""
        return sum(nbytes for _, _, _, nbytes in self._entries())

    def make_room(self, newest: _Held) -> None:
        """Give up the pieces that were not used for longest, while there are too many bytes."""
        with self._lock:
            entries = self._entries()
            surplus = sum(nbytes for *_, nbytes in entries) - self.bytes_max
            if surplus <= 0:
                return
            for used, parts, name, nbytes in sorted(entries, key=lambda entry: entry[0]):
                if surplus <= 0 or used >= newest.used:
                    return
                parts.give_up(name)
                surplus -= nbytes

    def _entries(self) -> list[tuple[int, Parts, str, int]]:
        return [entry for parts in list(self._all) for entry in parts.entries()]


def default_bytes() -> int:
    """How many bytes to keep when nobody says."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = _USUAL_MEMORY_BYTES
    return int(memory * SHARE_OF_MEMORY)
