"""A bounded cache: the least recently used value is evicted first."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Values by key, within a count and a number of bytes; safe to share between threads.

    A value that is larger than all of the bytes is not kept, and evicts nothing.
    """

    def __init__(self, count_max: int = sys.maxsize, *, bytes_max: int = sys.maxsize) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._nbytes = 0
        self._sized: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is then the one that was used last."""
        # Without the lock, which readers would wake each other with: each call is atomic.
        found = self._sized.get(key)
        if found is None:
            return None
        try:  # noqa: SIM105 — a context takes longer than the look-up
            self._sized.move_to_end(key)
        except KeyError:
            pass  # evicted meanwhile
        return found[0]

    def peek(self, key: Key) -> Value | None:
        """The value of a key; its place in the order of eviction stays."""
        found = self._sized.get(key)
        return None if found is None else found[0]

    def put(self, key: Key, value: Value, nbytes: int = 0) -> Value:
        """Keep a value in the place of the one that the key had, and evict what is too much."""
        with self._lock:
            self._nbytes -= self._pop_size(key)
            if nbytes > self._bytes_max:
                return value
            self._nbytes += nbytes
            self._sized[key] = value, nbytes
            while len(self._sized) > self._count_max or self._nbytes > self._bytes_max:
                _, (_, freed) = self._sized.popitem(last=False)
                self._nbytes -= freed
        return value

    def discard(self, key: Key) -> None:
        """Remove a key, if it is there."""
        with self._lock:
            self._nbytes -= self._pop_size(key)

    def clear(self) -> None:
        """Remove every key."""
        with self._lock:
            self._sized.clear()
            self._nbytes = 0

    def list_items(self) -> list[tuple[Key, Value]]:
        """Every key with its value, the least recently used first."""
        with self._lock:
            return [(key, value) for key, (value, _) in self._sized.items()]

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._sized)

    def _pop_size(self, key: Key) -> int:
        before = self._sized.pop(key, None)
        return 0 if before is None else before[1]
