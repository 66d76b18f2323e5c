"""What is in memory, piece by piece: made once, counted, and given up when there is too much."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, TypeVar

# In the names of pieces that are made from another piece, whose name comes before.
DERIVED: Final = ":"
# Of the memory of the machine, unless a setting says how much.
SHARE_OF_MEMORY: Final = 0.25
# Where the size of memory cannot be asked for.
_USUAL_MEMORY_BYTES: Final = 8 * 1024**3


class Sized(Protocol):
    """Whatever knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """How many bytes."""


_T = TypeVar("_T", bound=Sized)

# Entries of pieces that ended wait in the queue; beyond so many per piece they are swept out.
_ENDED_SHARE_MAX: Final = 2
_SWEEP_MIN: Final = 1_024


class _CacheEntry:
    """A piece in memory: when it was used last, and when it entered the queue."""

    __slots__ = ("__weakref__", "name", "nbytes", "parts", "queued", "used", "value")

    def __init__(
        self, parts: weakref.ref[CachePartition], name: str, value: Any, *, used: int
    ) -> None:
        self.parts = parts
        self.name = name
        self.value = value  # Any: a piece of any kind
        self.nbytes = int(value.nbytes)
        self.used = used
        self.queued = used


class _MemoryAccount:
    """The pieces of one thing, counted; it outlives the thing until it is settled."""

    __slots__ = ("count", "nbytes")

    def __init__(self) -> None:
        self.count = 0
        self.nbytes = 0


class CachePartition:
    """The pieces of one thing, by name. They all can be made again, with the same content."""

    def __init__(self, memory: MemoryCache) -> None:
        self.memory = memory
        self.account = _MemoryAccount()
        self._held: dict[str, _CacheEntry] = {}
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        memory.register(self)

    def get(self, name: str, make: Callable[[], _T]) -> _T:
        """A piece; the first thread that asks makes it, and others that ask meanwhile wait."""
        held = self._held.get(name)
        if held is None:
            held = self._make_entry(name, make)
        else:
            held.used = next(self.memory.ticks)
        found: _T = held.value
        return found

    def _make_entry(self, name: str, make: Callable[[], Sized]) -> _CacheEntry:
        with self._lock:
            making = self._making.setdefault(name, threading.Lock())
        with making:
            held = self._held.get(name)
            if held is None:
                held = self.keep(name, make())
        self._making.pop(name, None)
        return held

    def peek(self, name: str) -> Any:  # Any: a piece of any kind
        """A piece if it is in memory, or None; this does not count as a use."""
        held = self._held.get(name)
        return None if held is None else held.value

    def keep(self, name: str, value: Sized) -> _CacheEntry:
        """Have a piece that was made elsewhere."""
        held = _CacheEntry(weakref.ref(self), name, value, used=next(self.memory.ticks))
        self.memory.add(self, self._held, held)
        return held

    def get_last_use(self, name: str) -> int:
        """When a piece was used last; the first of all times if it is not in memory."""
        held = self._held.get(name)
        return -1 if held is None else held.used

    def size_of(self, name: str) -> int:
        """How many bytes a piece takes that others do not count; 0 if it is not in memory."""
        held = self._held.get(name)
        return 0 if held is None else held.nbytes

    @property
    def names(self) -> list[str]:
        """The names of the pieces that are in memory."""
        return list(self._held)

    def share(self) -> None:
        """Stop counting what is here: another thing has the same arrays, and counts them."""
        self.memory.uncount(self, self._held)

    def contains_entry(self, held: _CacheEntry) -> bool:
        """Whether a piece is still here, and not another one of its name."""
        return self._held.get(held.name) is held

    def forget(self, held: _CacheEntry) -> None:
        """Take a piece out without counting it."""
        del self._held[held.name]

    def recount(self, name: str, nbytes: int) -> None:
        """Count another size for a piece."""
        self.memory.recount(self, self._held, name, nbytes=nbytes)

    def evict(self, name: str) -> Any:  # Any: a piece of any kind
        """Forget a piece, and return it if there was one; who uses it right now keeps it."""
        held = self.memory.remove(self, self._held, name)
        return None if held is None else held.value


class MemoryCache:
    """The pieces of everything, bounded together by bytes; safe to share between threads.

    Totals are kept as pieces come and go. Pieces wait in a queue; when there are too many bytes,
    the first in it is given up, unless it was used since it entered: then it enters again. So
    making room costs as much as what comes in, however many pieces there are.
    """

    def __init__(self, bytes_max: int | None = None) -> None:
        self.bytes_max = compute_default_bytes() if bytes_max is None else bytes_max
        self.ticks = itertools.count()
        self._queue: deque[weakref.ref[_CacheEntry]] = deque()
        self._total = _MemoryAccount()
        # Appended to without the lock: the collector may end a thing while the lock is held.
        self._ended: deque[_MemoryAccount] = deque()
        self._lock = threading.Lock()

    def register(self, parts: CachePartition) -> None:
        """Count the pieces of one more thing, for as long as it lives."""
        ending = weakref.finalize(parts, self._ended.append, parts.account)
        ending.atexit = False

    @property
    def nbytes(self) -> int:
        """How many bytes all pieces take."""
        with self._lock:
            self._settle_ended()
            return self._total.nbytes

    def add(self, parts: CachePartition, among: dict[str, _CacheEntry], held: _CacheEntry) -> None:
        """Put a piece among others, and give up those not used for longest if there are too many.

        The piece itself stays, however large it is.
        """
        with self._lock:
            self._settle_ended()
            self._count(parts, among.get(held.name), sign=-1)
            among[held.name] = held
            self._count(parts, held, sign=1)
            self._queue.append(weakref.ref(held))
            self._make_room(held)
            self._sweep()

    def remove(
        self, parts: CachePartition, among: dict[str, _CacheEntry], name: str
    ) -> _CacheEntry | None:
        """Take a piece away."""
        with self._lock:
            held = among.pop(name, None)
            self._count(parts, held, sign=-1)
            return held

    def recount(
        self, parts: CachePartition, among: dict[str, _CacheEntry], name: str, *, nbytes: int
    ) -> None:
        """Change the size of a piece."""
        with self._lock:
            held = among.get(name)
            self._count(parts, held, sign=-1)
            if held is not None:
                held.nbytes = nbytes
            self._count(parts, held, sign=1)

    def uncount(self, parts: CachePartition, among: dict[str, _CacheEntry]) -> None:
        """Leave the bytes of pieces out of the total."""
        with self._lock:
            for held in among.values():
                held.nbytes = 0
            self._total.nbytes -= parts.account.nbytes
            parts.account.nbytes = 0

    def _count(self, parts: CachePartition, held: _CacheEntry | None, *, sign: int) -> None:
        if held is not None:
            for account in (parts.account, self._total):
                account.count += sign
                account.nbytes += sign * held.nbytes

    def _settle_ended(self) -> None:
        while self._ended:
            ended = self._ended.popleft()
            self._total.count -= ended.count
            self._total.nbytes -= ended.nbytes

    def _make_room(self, newest: _CacheEntry) -> None:
        # A piece used meanwhile enters the queue once more: twice its length is the end of it.
        for _ in range(2 * len(self._queue)):
            if self._total.nbytes <= self.bytes_max:
                return
            entry = self._queue.popleft()
            held = entry()
            parts = None if held is None else held.parts()
            if held is None or parts is None:
                continue
            if held is newest or held.used > held.queued:
                held.queued = held.used
                self._queue.append(entry)
            elif parts.contains_entry(held):
                parts.forget(held)
                self._count(parts, held, sign=-1)

    def _sweep(self) -> None:
        """Drop the entries of pieces that ended, as soon as they are most of the queue."""
        if len(self._queue) > _ENDED_SHARE_MAX * self._total.count + _SWEEP_MIN:
            self._queue = deque(entry for entry in self._queue if entry() is not None)


@cache
def compute_default_bytes() -> int:
    """How many bytes to keep without a setting."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = _USUAL_MEMORY_BYTES
    return int(memory * SHARE_OF_MEMORY)
