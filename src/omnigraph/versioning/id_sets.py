"""Sets of ids: a Python set while there are few, an Arrow array when there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# A Python set answers a handful of ids in a microsecond; above this an Arrow array is far smaller.
FEW_MAX: Final = 10_000


class IdSet:
    """An immutable set of ids, in id order when it is read."""

    __slots__ = ("_ids",)

    def __init__(self, ids: Iterable[str] | pa.Array | pa.ChunkedArray = ()) -> None:
        self._ids: frozenset[str] | pa.Array = _compact(ids)

    @staticmethod
    def from_distinct(ids: pa.Array) -> IdSet:
        """The set of ids that are known to be all different."""
        found = IdSet()
        few = len(ids) <= FEW_MAX
        found._ids = frozenset(ids.to_pylist()) if few else ids.cast(pa.large_string())
        return found

    @staticmethod
    def _from_few(ids: frozenset[str]) -> IdSet:
        found = IdSet()
        found._ids = ids
        return found

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._to_frozenset()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdSet) and len(self) == len(other) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(len(self._ids))

    def __repr__(self) -> str:
        shown = list(self)[:5]
        return f"IdSet({shown}{' …' if len(self) > len(shown) else ''})"

    def find_first_common(self, other: IdSet) -> str | None:
        """The lowest id that both sets hold."""
        if not self._ids or not other._ids:
            return None
        if isinstance(self._ids, frozenset) and isinstance(other._ids, frozenset):
            return min(self._ids & other._ids, default=None)
        small, large = sorted((self.to_array(), other.to_array()), key=len)
        common = large.filter(pc.is_in(large, value_set=small))
        return min(common.to_pylist(), default=None)

    def is_within(self, other: IdSet) -> bool:
        """Whether the other set holds every id of this one."""
        if len(self) > len(other):
            return False
        if isinstance(self._ids, frozenset) and isinstance(other._ids, frozenset):
            return self._ids <= other._ids
        found = pc.is_in(self.to_array(), value_set=other.to_array())
        return bool(pc.all(found, min_count=0).as_py())

    def union(self, *others: IdSet) -> IdSet:
        """Every id that any of the sets holds."""
        return IdSet.union_of([self, *others])

    @staticmethod
    def union_of(sets: Iterable[IdSet]) -> IdSet:
        """Every id that any of the sets holds; of no sets, nothing."""
        sets = [ids for ids in sets if ids is not EMPTY and len(ids)]
        if len(sets) < 2:
            return sets[0] if sets else EMPTY
        if any(isinstance(ids, DeferredIds) for ids in sets):
            return DeferredIds(sum(map(len, sets)), lambda: _unite_sets(sets))
        if sum(map(len, sets)) <= FEW_MAX:
            return IdSet._from_few(frozenset().union(*map(IdSet._to_frozenset, sets)))
        return IdSet(pa.chunked_array([ids.to_array() for ids in sets]))

    def _to_frozenset(self) -> frozenset[str]:
        return self._ids if isinstance(self._ids, frozenset) else frozenset(self._ids.to_pylist())

    def to_array(self) -> pa.Array:
        """The ids as an Arrow array of large strings."""
        if isinstance(self._ids, frozenset):
            return pa.array(sorted(self._ids), pa.large_string())
        return self._ids


class DeferredIds(IdSet):
    """A set that is made on first use: most writes are never compared with others."""

    __slots__ = ("_count", "_known", "_make")

    def __init__(self, count: int, make: Callable[[], IdSet]) -> None:
        self._count = count
        self._make = make
        self._known: IdSet | None = None

    @property
    def _ids(self) -> frozenset[str] | pa.Array:  # type: ignore[override]  # read, never assigned
        if self._known is None:
            self._known = self._make()
        return self._known._ids  # noqa: SLF001

    def __len__(self) -> int:
        return self._count


def _unite_sets(sets: list[IdSet]) -> IdSet:
    made = [IdSet(ids.to_array()) if isinstance(ids, DeferredIds) else ids for ids in sets]
    return made[0].union(*made[1:])


def _compact(ids: Iterable[str] | pa.Array | pa.ChunkedArray) -> frozenset[str] | pa.Array:
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        few = frozenset(ids)
        if len(few) <= FEW_MAX:
            return few
        return pa.array(sorted(few), pa.large_string())
    array = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    many = array.cast(pa.large_string()).unique()
    return frozenset(many.to_pylist()) if len(many) <= FEW_MAX else many


EMPTY: Final = IdSet()
