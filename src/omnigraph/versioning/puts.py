"""Puts of records, with their outcome even if the answer of the store is lost.

"It may have been made" is said only where the place of a record cannot be read either.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from omnigraph.errors import InDoubtError, StorageError, StorageUnknownError
from omnigraph.storage.objects import layout
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import LogEntry, PutOutcome, Record

# How often a record whose acknowledgement was lost is put again before the outcome is in doubt.
PUTS_MAX: Final = 8
# Pauses between attempts are random below this, so that losers do not meet again.
PAUSE_S_MAX: Final = 0.05
PAUSE_S_FIRST: Final = 0.002
# So many pauses are each longer than the one before.
_LONGER_MAX: Final = 32


def pause_after(attempt: int, pause: Callable[[float], None]) -> None:
    """Wait before the next attempt, the longer the more there were."""
    longest = min(PAUSE_S_MAX, PAUSE_S_FIRST * 2 ** min(attempt, _LONGER_MAX))
    pause(random.uniform(0, longest))  # noqa: S311 — not a secret


class Puts:
    """Puts entries of the streams of one graph; for the committer alone."""

    def __init__(self, log: Log, pause: Callable[[float], None]) -> None:
        self._log = log
        self._pause = pause

    def put_or_find(self, record: Record) -> PutOutcome:
        """Put a record; an error is raised only if the record is not there after it."""
        try:
            return self.put(record)
        except StorageUnknownError:
            raise
        except StorageError:
            try:
                placed = self._find_outcome(record)
            except StorageError as error:
                message = f"commit {record.commit} may have been made: {error.message}"
                raise InDoubtError(message, commit=record.commit) from error
            if placed is not PutOutcome.CREATED:
                raise
            return placed

    def put(self, entry: LogEntry) -> PutOutcome:
        """Put a record at its place, and find out what became of it.

        One that landed among collected commits is not acknowledged: no reader would ever see it.
        """
        may_be_there = False
        for attempt in range(PUTS_MAX):
            placed: PutOutcome | None = None
            try:
                placed = self._log.append(entry)
            except StorageUnknownError:
                may_be_there = True
            except StorageError:
                # This put did nothing; one before it may still have created the record.
                if not may_be_there:
                    raise
            if placed is None or placed is PutOutcome.TAKEN:
                placed = self._find_outcome_if_readable(entry)
                may_be_there = True
            if placed is PutOutcome.COLLECTED:
                self._log.withdraw(entry)
            if placed is not None:
                return placed
            # Absent is not yet "no": the request may still land. The same record put again
            # either creates it or finds it.
            pause_after(attempt, self._pause)
        name = entry.commit if isinstance(entry, Record) else None
        place = layout.build_record_path(entry.stream, entry.seq)
        raise InDoubtError(
            f"commit {name} may have been made: no answer about {place}", commit=name
        )

    def _find_outcome(self, entry: LogEntry) -> PutOutcome | None:
        """What is at the place of an entry; None when the place is empty.

        "Exists" may be our own put: stores repeat a request whose first answer was lost.
        """
        found = self._log.read(entry.stream, entry.seq)
        if found is None:
            return None
        if isinstance(found, Record) and isinstance(entry, Record):
            is_ours = found.commit == entry.commit
        else:
            is_ours = found == entry
        return self._log.verify_put(entry) if is_ours else PutOutcome.TAKEN

    def _find_outcome_if_readable(self, entry: LogEntry) -> PutOutcome | None:
        try:
            return self._find_outcome(entry)
        except StorageError:
            return None
