"""A few large arrays that the next request is likely to ask for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import pyarrow as pa

# Of the ids of a bulk load, a million take about this much.
BYTES_MAX: Final = 128 * 1024 * 1024


class ArrayCache:
    """Arrays by key, the least recently used forgotten first; safe to share between threads."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._arrays: OrderedDict[Hashable, pa.Array] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], pa.Array]) -> pa.Array:
        """The array of a key, made if it is not known; one that is too large is not kept."""
        with self._lock:
            if (known := self._arrays.get(key)) is not None:
                self._arrays.move_to_end(key)
                return known
        made = make()
        with self._lock:
            self._arrays[key] = made
            while sum(each.nbytes for each in self._arrays.values()) > self._bytes_max:
                self._arrays.popitem(last=False)
        return made
