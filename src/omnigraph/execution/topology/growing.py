"""Arrays that grow at their end without a copy, as long as one line of versions grows them."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

# How much room there is behind a copied array, as a share of it, but never less than some.
_ROOM_SHARE: Final = 1 / 16
_ROOM_MIN: Final = 1_024


class _Room:
    """A buffer whose first elements are in use; whoever has exactly those may use more."""

    def __init__(self, buffer: npt.NDArray[Any], used: int) -> None:
        self.buffer = buffer
        self.used = used
        self.lock = threading.Lock()


class GrowingArray:
    """An array that never changes, and that others may begin with."""

    __slots__ = ("_room", "values")

    def __init__(self, values: npt.NDArray[Any], room: _Room | None = None) -> None:
        self.values = values
        self._room = room

    def appended(self, more: npt.NDArray[Any]) -> GrowingArray:
        """The array with more elements behind it."""
        count, size = len(self.values), len(self.values) + len(more)
        if not len(more):
            return self
        room = self._room
        if room is not None and size <= len(room.buffer):
            with room.lock:
                # Another branch may have gone its own way from here.
                is_free = room.used == count
                room.used = size if is_free else room.used
            if is_free:
                room.buffer[count:size] = more
                return GrowingArray(room.buffer[:size], room)
        buffer = np.empty(size + max(_ROOM_MIN, int(size * _ROOM_SHARE)), self.values.dtype)
        buffer[:count] = self.values
        buffer[count:size] = more
        return GrowingArray(buffer[:size], _Room(buffer, size))
