"""Parsed records that this process has read lately, and the newest of each stream as stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Generic, TypeVar

from omnigraph.versioning.codec import decode_entry, encode_entry
from omnigraph.versioning.record import LogEntry

# Parsed records are immutable; so many serve rebases and listings without a read.
CACHED_ENTRIES_MAX: Final = 2048
CACHED_ENDS_MAX: Final = 1024
# A record with many pins or ids has tens of kilobytes, and takes up to four times as much memory
# as its stored bytes: so all of them stay below 100 MB.
CACHED_BYTES_MAX: Final = 16 * 1024 * 1024
CACHED_END_BYTES_MAX: Final = 4 * 1024 * 1024

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Bounded(Generic[_Key, _Value]):
    """The values that were asked for last, within a count and a number of bytes."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._byte_count = 0
        self._sized: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        if key not in self._sized:
            return None
        self._sized.move_to_end(key)
        return self._sized[key][0]

    def keep(self, key: _Key, value: _Value, size: int) -> None:
        _, replaced = self._sized.pop(key, (None, 0))
        self._sized[key] = value, size
        self._byte_count += size - replaced
        while len(self._sized) > self._count_max or self._byte_count > self._bytes_max:
            _, (_, freed) = self._sized.popitem(last=False)
            self._byte_count -= freed


class EntryCache:
    """Entries of all streams of one graph; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: _Bounded[tuple[str, int], LogEntry] = _Bounded(
            CACHED_ENTRIES_MAX, CACHED_BYTES_MAX
        )
        # The newest entry of each stream as it is stored: to see that it still is.
        self._ends: _Bounded[str, tuple[LogEntry, bytes]] = _Bounded(
            CACHED_ENDS_MAX, CACHED_END_BYTES_MAX
        )

    def get(self, stream: str, seq: int) -> LogEntry | None:
        """An entry that was kept, or None."""
        with self._lock:
            return self._entries.get((stream, seq))

    def keep(self, entry: LogEntry, size: int | None = None) -> LogEntry:
        """Keep an entry of a stored size, and forget the ones that were not asked for longest."""
        with self._lock:
            if size is None:
                end = self._ends.get(entry.stream)
                data = end[1] if end is not None and end[0] is entry else encode_entry(entry)
                size = len(data)
            self._entries.keep((entry.stream, entry.seq), entry, size)
        return entry

    def keep_end(self, entry: LogEntry, data: bytes) -> None:
        """Keep the bytes of an entry if it is the newest known one of its stream."""
        with self._lock:
            known = self._ends.get(entry.stream)
            if known is None or known[0].seq <= entry.seq:
                self._ends.keep(entry.stream, (entry, data), len(data))

    def decode(self, stream: str, seq: int, data: bytes) -> LogEntry:
        """An entry from its bytes, which most often are the ones this process saw last."""
        with self._lock:
            known = self._ends.get(stream)
        if known is not None and known[0].seq == seq and known[1] == data:
            return known[0]
        return decode_entry(stream, seq, data)
