"""Rows of a write that are too many to wait in memory for their turn: written ahead, once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa

from omnigraph.errors import OmnigraphError
from omnigraph.storage.pins import Pin, Staged
from omnigraph.storage.tables import Tables
from omnigraph.versioning.effects import Part
from omnigraph.versioning.transaction import GRACE_S

# Fewer rows are written by whoever publishes, together with those of other waiting writes.
WAITING_ROWS_MAX: Final = 1_000
WAITING_BYTES_MAX: Final = 1024 * 1024
# So many rows are written while they are checked, which takes as long.
AHEAD_ROWS_MIN: Final = 100_000
# Rows that have waited longer are written again: they may not be old when they are published.
REWRITTEN_AFTER_S: Final = GRACE_S / 4


class Staging:
    """The rows one operation has written ahead; preparing it again does not write them again."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # The rows are kept beside what was made of them, so that their identity stays theirs.
        self._written: dict[tuple[str, int], tuple[pa.Table, Staged]] = {}
        self._begun: dict[tuple[str, int], Future[Staged]] = {}

    @contextmanager
    def ahead(self, rows: Mapping[str, pa.Table], pins: Mapping[str, Pin]) -> Iterator[None]:
        """Write many rows while they are checked; they are removed if the check refuses them."""
        many = {key: found for key, found in rows.items() if found.num_rows >= AHEAD_ROWS_MIN}
        if not many:
            yield
            return
        with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-stage") as writer:
            for type_key, found in many.items():
                place = (pins[type_key].path, id(found))
                if self._kept(place) is None:
                    self._begun[place] = writer.submit(self._write, pins[type_key], found)
            try:
                yield
            except BaseException:
                self._discard()
                raise

    def part(self, pin: Pin, rows: pa.Table) -> Part:
        """The rows as a part of an effect: themselves while they are few, else written ahead."""
        if rows.num_rows <= WAITING_ROWS_MAX and rows.nbytes <= WAITING_BYTES_MAX:
            return rows
        place = (pin.path, id(rows))
        begun = self._begun.pop(place, None)
        if begun is not None:
            return begun.result()
        return self._kept(place) or self._write(pin, rows)

    def _kept(self, place: tuple[str, int]) -> Staged | None:
        kept = self._written.get(place)
        if kept is None or time.time() - kept[1].staged_at > REWRITTEN_AFTER_S:
            return None
        return kept[1]

    def _write(self, pin: Pin, rows: pa.Table) -> Staged:
        staged = self._tables.write(pin, rows)
        self._written[pin.path, id(rows)] = (rows, staged)
        return staged

    def _discard(self) -> None:
        """Remove what was written for nothing; what cannot be removed is garbage like any other."""
        for place, begun in self._begun.items():
            begun.cancel()
            with suppress(CancelledError, OmnigraphError):
                self._tables.discard(begun.result())
                del self._written[place]
        self._begun.clear()
