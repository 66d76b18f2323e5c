"""Parsed records that this process has read lately, and the newest of each stream as stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from omnigraph.versioning.codec import decode_entry
from omnigraph.versioning.record import LogEntry

# Parsed records are immutable and take 4 kB; this many serve rebases and listings without a read.
CACHED_ENTRIES_MAX: Final = 2048
CACHED_ENDS_MAX: Final = 1024


class EntryCache:
    """Entries of all streams of one graph; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, int], LogEntry] = OrderedDict()
        # The newest entry of each stream as it is stored: to see that it still is.
        self._ends: OrderedDict[str, tuple[LogEntry, bytes]] = OrderedDict()

    def get(self, stream: str, seq: int) -> LogEntry | None:
        """An entry that was kept, or None."""
        with self._lock:
            entry = self._entries.get((stream, seq))
            if entry is not None:
                self._entries.move_to_end((stream, seq))
        return entry

    def keep(self, entry: LogEntry) -> LogEntry:
        """Keep an entry, and forget the ones that were not asked for longest."""
        with self._lock:
            self._entries[entry.stream, entry.seq] = entry
            while len(self._entries) > CACHED_ENTRIES_MAX:
                self._entries.popitem(last=False)
        return entry

    def keep_end(self, entry: LogEntry, data: bytes) -> None:
        """Keep the bytes of an entry if it is the newest known one of its stream."""
        with self._lock:
            known = self._ends.get(entry.stream)
            if known is not None and known[0].seq > entry.seq:
                return
            self._ends[entry.stream] = entry, data
            self._ends.move_to_end(entry.stream)
            while len(self._ends) > CACHED_ENDS_MAX:
                self._ends.popitem(last=False)

    def decode(self, stream: str, seq: int, data: bytes) -> LogEntry:
        """An entry from its bytes, which most often are the ones this process saw last."""
        known = self._ends.get(stream)
        if known is not None and known[0].seq == seq and known[1] == data:
            return known[0]
        return decode_entry(stream, seq, data)
