"""The clock of commits: stamps that rise along a branch, in the time of the store.

`created_at` orders commits: it is later than that of both parents, whatever the clocks of writers
say. A clock that is far ahead would drag all later stamps along, so a time that is far from the
stamp before it is compared with the clock of the store, which is used instead if they disagree.

Where a parent is stamped in the future all the same, by an earlier program, the commits after it
are stamped right after it and say when they were made beside the stamp, in `made_at`. From the
first such commit on, all later ones of the branch have it. So a time finds one commit: times rise
along those without `made_at` by their stamps, and along those with it by that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.durations import read_clock_s
from omnigraph.storage.objects.object_store import Objects, read_store_time

# How far a clock may be off before it is not believed. A graph that was left alone for longer costs
# its next commit two requests.
AHEAD_S_MAX: Final = 3600.0
_AHEAD_US_MAX: Final = int(AHEAD_S_MAX * 1_000_000)
# How long the difference to the clock of the store is believed.
STORE_CLOCK_EVERY_S: Final = 3600.0


class Stamped(Protocol):
    """A commit, as far as its time goes."""

    @property
    def created_at(self) -> int:
        """What orders it (µs since 1970)."""

    @property
    def made_at(self) -> int | None:
        """When it was made, if `created_at` does not say so."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The times of a new commit."""

    created_at: int
    made_at: int | None = None


def time_of(commit: Stamped) -> int:
    """When a commit was made."""
    return commit.created_at if commit.made_at is None else commit.made_at


def find_newest_at(seqs: range, time_us: int, read: Callable[[int], Stamped | None]) -> int:
    """The newest commit of a line that was made by a time; the seq before all if there is none.

    A commit that cannot be read counts as older.
    """

    def first(among: range, holds: Callable[[Stamped], bool]) -> int:
        low, high = among.start, among.stop
        while low < high:
            middle = (low + high) // 2
            found = read(middle)
            low, high = (low, middle) if found and holds(found) else (middle + 1, high)
        return low

    late = first(seqs, lambda at: at.created_at > time_us)
    last = read(seqs.stop - 1) if late < seqs.stop else None
    if last is None or last.made_at is None:
        return late - 1
    timed = first(range(late, seqs.stop), lambda at: at.made_at is not None)
    later = first(range(timed, seqs.stop), lambda at: time_of(at) > time_us)
    return later - 1 if later > timed else late - 1


class Clock:
    """Stamps the commits of one graph."""

    def __init__(
        self,
        objects: Objects,
        now_us: Callable[[], int],
        ask_store: Callable[[Objects], int | None] = read_store_time,
    ) -> None:
        self._objects = objects
        self._now_us = now_us
        self._ask_store = ask_store
        # What the store said, what this machine did, and when, by a clock that is never set.
        self._asked: tuple[int, int, float] | None = None

    def stamp(self, parent: Stamped | None, *, after: int = 0) -> Stamp:
        """The stamp of a commit that follows another one, and is later than a time."""
        if parent is None:
            return Stamp(max(self._correct_time(self._now_us()), after))
        least = max(parent.created_at + 1, after)
        before = least if parent.made_at is None else parent.made_at + 1
        now = self._now_us()
        if abs(now - before) > _AHEAD_US_MAX:
            now = self._correct_time(now)
        if parent.made_at is None and least - now <= _AHEAD_US_MAX:
            return Stamp(max(now, least))
        made_at = now if parent.made_at is None else max(now, before)
        return Stamp(max(made_at, least), made_at)

    def _correct_time(self, now: int) -> int:
        """A time of this machine, or that of the store if they are far apart."""
        store = self._find_store_time(now)
        return now if store is None or abs(now - store) <= _AHEAD_US_MAX else store

    def _find_store_time(self, now: int) -> int | None:
        """The time of the store; it is asked again if the clock of this machine was set."""
        if self._asked is not None:
            said, then, at = self._asked
            passed_s = read_clock_s() - at
            passed = int(passed_s * 1_000_000)
            if passed_s <= STORE_CLOCK_EVERY_S and abs(now - then - passed) <= _AHEAD_US_MAX:
                return said + passed
        found = self._ask_store(self._objects)
        self._asked = None if found is None else (found, now, read_clock_s())
        return found
