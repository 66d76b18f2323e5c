"""The tables of every commit: each version opens, with its rows, its columns and its files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from omnigraph.engine.check.check_problems import FAILURES, Failure, Problems
from omnigraph.engine.check.checked_reads import TornFiles, check_columns
from omnigraph.engine.check.schema_check import SchemaCheck
from omnigraph.engine.check.stream_check import WalkedStream
from omnigraph.rows.view import View, table_types_of
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.file_digests import StoredFile
from omnigraph.storage.tables.fragments import Fragment
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import change_sets
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Spilled

_READERS: Final = 4
KIND = "digest"
INDEX_KIND = "index"


@dataclass(slots=True)
class _PinUse:
    """The commits that pin a version: the newest, and one for each shape it must have."""

    where: str
    is_counted: bool = False
    by_shape: dict[tuple[str, str], Snapshot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _OpenVersion:
    """A version that could be opened, and the objects it needs."""

    table: Table
    rows: int
    files: frozenset[str]
    # Folders of index segments.
    damaged: frozenset[str]


class _RowCounter:
    """Counts the rows of versions; a fragment that a neighbouring version has too counts once."""

    def __init__(self) -> None:
        # The fragments of the last version of each table that have the rows they claim to have.
        self._counted: dict[str, dict[int, Fragment]] = {}

    def count_rows(self, table: Table) -> int:
        """How many rows there are, by their row ids: these come with the version itself."""
        path, fragments = table.pin.path, table.fragments
        counted = self._counted.get(path, {})
        new = {id_: each for id_, each in fragments.items() if counted.get(id_) != each}
        found: int = table.scan_fragments(new, columns=[ROW_ID]).num_rows
        is_true = found == sum(each.rows for each in new.values())
        known = {id_: each for id_, each in fragments.items() if id_ not in new}
        self._counted[path] = fragments if is_true else known
        return found + sum(each.rows for each in known.values())


class PinCheck:
    """Opens every version that a commit pins, each once."""

    def __init__(
        self, objects: Objects, torn: TornFiles, schemas: SchemaCheck, problems: Problems
    ) -> None:
        self._objects = objects
        self._torn = torn
        self._tables = torn.tables
        self._schemas = schemas
        self._problems = problems
        self._counts = _RowCounter()

    def check(
        self,
        lines: Iterable[WalkedStream],
        *,
        read: Collection[tuple[str, str, Pin]],
        current: Collection[Pin],
    ) -> None:
        """Report versions that are gone, are not what their pins say, or lack files.

        What was read already, as a type of a schema, is known to be what its pin says. The newest
        commits of branches pin the current versions.
        """
        uses = _collect_uses(lines)
        for digest, type_key, pin in read:
            if pin in uses:
                uses[pin].is_counted = True
                uses[pin].by_shape.pop((digest, type_key), None)
        needed: dict[str, str] = {}
        damaged: dict[str, bool] = {}
        for (pin, use), opened in zip(uses.items(), self._open_all(list(uses)), strict=True):
            if not isinstance(opened, _OpenVersion):
                self._problems.add_failure("table", use.where, opened)
                continue
            self._check_version(pin, use, opened)
            for file in opened.files:
                needed.setdefault(file, use.where)
            for folder in opened.damaged:
                damaged[folder] = damaged.get(folder, False) or pin in current
        for folder, is_current in sorted(damaged.items()):
            report_damaged_index(self._problems, folder, is_current=is_current)
        report_missing_files(self._objects, needed, self._problems)

    def _open_all(self, pins: list[Pin]) -> Iterator[_OpenVersion | Failure]:
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            yield from readers.map(self._open, pins)

    def _open(self, pin: Pin) -> _OpenVersion | Failure:
        try:
            table = self._tables.open(pin)
            files = frozenset(self._tables.list_references(pin))
            segments = self._tables.find_damaged_indexes(pin)
            damaged = frozenset(f"{pin.path}/{each.path}" for each in segments)
            return _OpenVersion(table, self._counts.count_rows(table), files, damaged)
        except FAILURES as error:
            return self._torn.explain_failure(pin, error)

    def _check_version(self, pin: Pin, use: _PinUse, opened: _OpenVersion) -> None:
        ids = opened.table.fragment_ids
        if len(ids) != pin.fragments:
            message = f"{pin.path} has {len(ids)} fragments, and its pin says {pin.fragments}"
            self._problems.add("table", use.where, message)
        if max(ids, default=0) > pin.high_water:
            message = f"{pin.path} has fragment {max(ids)}, above the {pin.high_water} of its pin"
            self._problems.add("table", use.where, message)
        if opened.rows != pin.rows and not use.is_counted:
            message = f"{pin.path} has {opened.rows} rows, and its pin says {pin.rows}"
            self._problems.add("table", use.where, message)
        for (digest, type_key), snapshot in use.by_shape.items():
            stored = self._schemas.get(digest)
            types = (
                {} if stored is None else {str(key): key for key in table_types_of(stored.catalog)}
            )
            if stored is not None and type_key in types:
                shape = View(snapshot, stored, self._tables).get_shape(types[type_key])
                where = _format_location(snapshot, type_key)
                check_columns(opened.table, shape, where=where, problems=self._problems)


def report_missing_files(objects: Objects, needed: Mapping[str, str], problems: Problems) -> None:
    """Report files that are not there, given the commits that need them."""
    # Tables in memory are Lance's own and cannot be listed.
    if objects.uri.startswith("memory://"):
        return
    # Listed last: what a kept version needs is never removed, so a writer cannot disturb.
    present = {entry.path for entry in objects.list(layout.TABLES)}
    for file, where in sorted(needed.items()):
        # What may be below a folder, such as large blobs, is found by reading the rows.
        if file not in present and not file.endswith("/"):
            problems.add("table", file, f"it is missing, and {where} needs it")


def report_damaged_index(problems: Problems, folder: str, *, is_current: bool) -> None:
    """Report a damaged index segment; that of older commits stays, and does no harm."""
    if is_current:
        message = (
            "it is damaged; reads and writes do without it until `omnigraph repair --confirm`"
            " builds it anew"
        )
        problems.add(INDEX_KIND, folder, message)
    else:
        problems.add_notice(INDEX_KIND, folder, "is damaged; older commits are read without it")


def _collect_uses(lines: Iterable[WalkedStream]) -> dict[Pin, _PinUse]:
    """Every version that commits pin, the newest commits of each branch first."""
    uses: dict[Pin, _PinUse] = {}
    for line in lines:
        for _, snapshot in sorted(line.snapshots.items(), reverse=True):
            for type_key, pin in snapshot.pins.items():
                use = uses.get(pin)
                if use is None:
                    use = uses[pin] = _PinUse(_format_location(snapshot, type_key))
                use.by_shape.setdefault((snapshot.schema, type_key), snapshot)
    return uses


def _format_location(snapshot: Snapshot, type_key: str) -> str:
    return f"{layout.build_record_path(snapshot.stream.id, snapshot.seq)} {type_key}"


class DigestCheck:
    """Compares files with their digests, each once; `count` of them matched or did not."""

    def __init__(self, objects: Objects, tables: Tables, problems: Problems) -> None:
        self._objects = objects
        self._tables = tables
        self._problems = problems
        self._seen: set[str] = set()
        self._without: dict[str, int] = {}
        self.count = 0

    def check(self, lines: Iterable[WalkedStream], *, current: Collection[Pin]) -> None:
        """Report files that are not what was written, and count those without a digest.

        The newest commits of branches pin the current versions.
        """
        for pin in current:
            self._check_version(pin, is_current=True)
        for line in lines:
            for record in line.records.values():
                for change in record.changes.values():
                    if isinstance(change, Spilled):
                        self._check_change_set(change)
            pins = {pin: None for at in line.snapshots.values() for pin in at.pins.values()}
            for pin in pins:
                self._check_version(pin, is_current=False)
        for path, count in sorted(self._without.items()):
            message = f"has {count} files that cannot be verified: they have no digest"
            self._problems.add_notice(KIND, path, message)

    def _check_change_set(self, change: Spilled) -> None:
        if self._is_new(change.file):
            load = partial(change_sets.load_change_set, self._objects, change)
            self._problems.attempt(KIND, change.file, load)
            self._add(change.file, has_digest=change.digest is not None)

    def _check_version(self, pin: Pin, *, is_current: bool) -> None:
        if not self._is_new(f"{pin.path} {pin.version}"):
            return
        self._add(pin.path, has_digest=pin.digest is not None)
        # A version that cannot be opened was reported when it was opened first.
        stored = partial(self._tables.list_stored_files, pin)
        for file in self._problems.attempt("table", pin.path, stored) or ():
            if self._is_new(f"{pin.path}/{file.path}"):
                self._check_file(pin.path, file, is_current=is_current)

    def _check_file(self, table: str, file: StoredFile, *, is_current: bool) -> None:
        self._add(table, has_digest=file.digest is not None)
        if file.digest is None:
            return
        where = f"{table}/{file.path}"
        problem = self._problems.attempt(
            KIND, where, partial(self._tables.find_damage, table, file)
        )
        if problem is not None and file.is_index:
            report_damaged_index(self._problems, where, is_current=is_current)
        elif problem is not None:
            self._problems.add(KIND, where, problem)

    def _is_new(self, name: str) -> bool:
        is_new = name not in self._seen
        self._seen.add(name)
        return is_new

    def _add(self, path: str, *, has_digest: bool) -> None:
        if has_digest:
            self.count += 1
        else:
            self._without[path] = self._without.get(path, 0) + 1
