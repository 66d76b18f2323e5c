"""Stages large rows: writes them before the commit, once, instead of holding them in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning.effects import Part, count_bytes
from omnigraph.versioning.sweeps import Sweeps

# Fewer rows are written by the publisher, together with those of other waiting writes.
WAITING_ROWS_MAX: Final = 1_000
WAITING_BYTES_MAX: Final = 1024 * 1024
# So many rows are written while they are checked, which takes as long.
AHEAD_ROWS_MIN: Final = 100_000


class RowStaging:
    """The rows one operation has written ahead; preparing it again does not write them again.

    An operation is prepared again only when no commit holds what it wrote before.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # The rows are kept beside what was made of them, so that their identity stays theirs.
        self._written: dict[tuple[str, int], tuple[pa.Table, Staged]] = {}
        self._begun: dict[tuple[str, int], Future[Staged]] = {}

    @contextmanager
    def discard_on_failure(self, rows: Collection[pa.Table]) -> Iterator[None]:
        """Prepare a write of these rows; whatever was written ahead is removed if it fails.

        What an earlier preparation wrote of other rows is removed first: nothing refers to it.
        """
        self._remove_all_but({id(each) for each in rows})
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    @contextmanager
    def write_ahead(self, rows: Mapping[str, pa.Table], pins: Mapping[str, Pin]) -> Iterator[None]:
        """Write many rows while they are checked."""
        many = {key: found for key, found in rows.items() if found.num_rows >= AHEAD_ROWS_MIN}
        if not many:
            yield
            return
        with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-stage") as writer:
            for type_key, found in many.items():
                place = (pins[type_key].path, id(found))
                if self._find_staged(place) is None:
                    self._begun[place] = writer.submit(self._write_rows, pins[type_key], found)
            try:
                yield
            except BaseException:
                # Rows that are not being written yet need not be.
                for begun in self._begun.values():
                    begun.cancel()
                raise

    def abandon(self) -> None:
        """Remove everything that was written ahead: the write failed, and no commit holds it."""
        self._remove_all_but(())

    def build_part(self, pin: Pin, rows: pa.Table) -> Part:
        """The rows as a part of an effect: themselves while they are few, else written ahead."""
        if rows.num_rows <= WAITING_ROWS_MAX and count_bytes(rows) <= WAITING_BYTES_MAX:
            return rows
        place = (pin.path, id(rows))
        begun = self._begun.pop(place, None)
        if begun is not None:
            return begun.result()
        return self._find_staged(place) or self._write_rows(pin, rows)

    def _find_staged(self, place: tuple[str, int]) -> Staged | None:
        """What an earlier preparation wrote of these rows, unless a clean-up may remove it."""
        kept = self._written.get(place)
        if kept is None:
            return None
        staged = kept[1]
        may_remove = self._sweeps.may_remove(staged.list_files, after=staged.after_sweep)
        return None if may_remove else staged

    def _write_rows(self, pin: Pin, rows: pa.Table) -> Staged:
        after_sweep = self._sweeps.find_newest()
        staged = replace(self._tables.write(pin, rows), after_sweep=after_sweep)
        place = (pin.path, id(rows))
        self._remove_staged(place)
        self._written[place] = (rows, staged)
        return staged

    @cached_property
    def _sweeps(self) -> Sweeps:
        return Sweeps(open_objects(self._tables.root, options=self._tables.options))

    def _remove_all_but(self, wanted: Collection[int]) -> None:
        """Remove what was written of rows that are not wanted."""
        for place, begun in list(self._begun.items()):
            # A failed writer has left nothing to remove, and must not hide why the write failed.
            with suppress(Exception):
                begun.result()
            if place[1] not in wanted:
                del self._begun[place]
        for place in [place for place in self._written if place[1] not in wanted]:
            self._remove_staged(place)

    def _remove_staged(self, place: tuple[str, int]) -> None:
        """Remove what was written for nothing; what cannot be removed is garbage like any other."""
        written = self._written.pop(place, None)
        if written is not None:
            # Any failure: it must not hide why the write itself is refused.
            with suppress(Exception):
                self._tables.discard(written[1])
