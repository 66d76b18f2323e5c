"""Arrays that versions share: they grow at their end without a copy, and a few elements differ."""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

# How much room there is after a copied array, as a share of it, but never less than some.
_ROOM_SHARE: Final = 1 / 16
_ROOM_MIN: Final = 1_024
# More replaced elements than this are put into place: a share of all, but never fewer than some.
PATCHES_SHARE_MAX: Final = 1 / 64
PATCHES_MIN: Final = 1_024

Integers: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class _SharedBuffer:
    """A buffer whose first elements are in use; the array of exactly those may use more."""

    def __init__(self, buffer: npt.NDArray[Any], used: int) -> None:
        self.buffer = buffer
        self.used = used
        self.lock = threading.Lock()


class AppendArray:
    """An array that never changes, and that others may begin with."""

    __slots__ = ("_room", "values")

    def __init__(self, values: npt.NDArray[Any], room: _SharedBuffer | None = None) -> None:
        self.values = values
        self._room = room

    def append(self, more: npt.NDArray[Any]) -> AppendArray:
        """The array with more elements after it."""
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
                return AppendArray(room.buffer[:size], room)
        buffer = np.empty(size + max(_ROOM_MIN, int(size * _ROOM_SHARE)), self.values.dtype)
        buffer[:count] = self.values
        buffer[count:size] = more
        return AppendArray(buffer[:size], _SharedBuffer(buffer, size))


class SharedRoot:
    """What an array and those that follow it share: its elements, without replacements."""

    __slots__ = ("order", "values")

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        # The order of the elements, if it was asked for.
        self.order: SortedElements | None = None


class SortedElements(NamedTuple):
    """The places of elements in ascending order, and the elements in it.

    None where the places are in that order themselves.
    """

    indices: npt.NDArray[np.int32] | None
    elements: npt.NDArray[Any]


class PatchedArray:
    """A growing array in which a few elements are replaced; it never changes itself.

    A later version shares the elements and has replacements of its own. All of it in one array is
    made when it is first asked for: who reads every element pays for that anyway.
    """

    __slots__ = ("_whole", "at", "growing", "new", "root")

    def __init__(
        self,
        growing: AppendArray,
        at: Integers | None = None,
        new: npt.NDArray[Any] | None = None,
        *,
        root: SharedRoot | None = None,
    ) -> None:
        self.growing = growing
        # The places of replaced elements, ascending, and what is there.
        self.at: Integers = np.zeros(0, np.int32) if at is None else at
        self.new: npt.NDArray[Any] = growing.values[:0] if new is None else new
        self.root = SharedRoot(growing.values) if root is None else root
        self._whole: npt.NDArray[Any] | None = None if len(self.at) else growing.values

    def __len__(self) -> int:
        return len(self.growing.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self.growing.values.dtype

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.growing.values.nbytes + self.at.nbytes + self.new.nbytes

    @property
    def is_plain(self) -> bool:
        """Whether all elements are in one array already."""
        return self._whole is not None

    @property
    def whole(self) -> npt.NDArray[Any]:
        """All elements in one array; two threads may make it at once, and make the same."""
        if self._whole is None:
            self._whole = self.merge()
        return self._whole

    def merge(self) -> npt.NDArray[Any]:
        """All elements in one array that is not kept."""
        if self._whole is not None:
            return self._whole
        merged = self.growing.values.copy()
        merged[self.at] = self.new
        return merged

    def take(self, at: Integers) -> npt.NDArray[Any]:
        """Some elements."""
        if self._whole is not None:
            return self._whole.take(at)
        found = self.growing.values.take(at)
        places = np.searchsorted(self.at, at)
        is_replaced = self.at.take(places, mode="clip") == at
        if is_replaced.any():
            found[is_replaced] = self.new.take(places[is_replaced])
        return found

    def find(self, elements: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The places of distinct elements; -1 where there is none.

        Elements that are added, one version after the other, must ascend.
        """
        values, count = self.growing.values, len(self)
        found = np.full(len(elements), -1, np.int32)
        if not count or not len(elements):
            return found
        order, first = self._sort_elements(), len(self.root.values)
        if first:
            places = np.minimum(np.searchsorted(order.elements, elements), first - 1)
            self._put(found, elements, places if order.indices is None else order.indices[places])
        if count > first:
            places = np.searchsorted(values[first:], elements) + first
            self._put(found, elements, np.minimum(places, count - 1))
        if len(self.at):
            # Replacements are in no order with the others.
            ascending = np.argsort(self.new, kind="stable")
            places = np.searchsorted(self.new, elements, sorter=ascending)
            self._put(found, elements, self.at.take(ascending.take(places, mode="clip")))
        return found

    def _put(self, found: Integers, elements: npt.NDArray[Any], places: Integers) -> None:
        is_there = self.take(places) == elements
        found[is_there] = places[is_there]

    def _sort_elements(self) -> SortedElements:
        root = self.root
        if root.order is None:
            values = root.values
            if bool(np.all(values[1:] > values[:-1])):
                root.order = SortedElements(None, values)
            else:
                places = np.argsort(values, kind="stable").astype(np.int32)
                root.order = SortedElements(places, values.take(places))
        return root.order

    def take_one(self, place: int) -> Any:  # Any: of the type of the elements
        """One element."""
        if self._whole is not None:
            return self._whole[place]
        found = int(np.searchsorted(self.at, place))
        is_replaced = found < len(self.at) and self.at[found] == place
        return self.new[found] if is_replaced else self.growing.values[place]

    def patch(self, at: Integers, values: npt.NDArray[Any], *, size: int) -> PatchedArray:
        """The array of `size` elements, some of which are other ones; of two the last counts.

        Elements that are added without a value are zero.
        """
        count = len(self)
        growing = self.growing
        is_more = at >= count
        if size > count:
            more = np.zeros(size - count, self.dtype)
            more[at[is_more] - count] = values[is_more]
            growing = growing.append(more)
        if is_more.all():
            return PatchedArray(growing, self.at, self.new, root=self.root)
        places = np.concatenate([self.at, at[~is_more].astype(np.int32, copy=False)])
        new = np.concatenate([self.new, values[~is_more].astype(self.dtype, copy=False)])
        order = np.argsort(places, kind="stable")
        places, new = places[order], new[order]
        is_last = np.append(places[1:] != places[:-1], True)
        found = PatchedArray(growing, places[is_last], new[is_last], root=self.root)
        if len(found.at) > max(PATCHES_MIN, PATCHES_SHARE_MAX * size):
            return PatchedArray(AppendArray(found.merge()))
        return found

    def find_differences(self, older: PatchedArray) -> npt.NDArray[np.int32]:
        """The places at which an older array has another element, among those it has."""
        count = len(older)
        if self.root is older.root:
            places = np.union1d(self.at, older.at).astype(np.int32)
            places = places[places < count]
            is_other: npt.NDArray[np.bool_] = self.take(places) != older.take(places)
            return places[is_other]
        return np.flatnonzero(self.whole[:count] != older.whole).astype(np.int32)
