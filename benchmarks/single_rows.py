"""A graph of one table that takes single rows, and the least that Lance and a disk need for one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage import Entry, Objects, Tables, layout, open_objects
from omnigraph.versioning import (
    MAIN,
    Append,
    Branches,
    Changed,
    Committer,
    Compactor,
    IdSet,
    Log,
    Publishers,
    Snapshot,
    Transaction,
)

PERSON = "node:Person"
_ROWS = pa.schema([pa.field("__id", pa.string(), nullable=False), pa.field("value", pa.string())])
_RECORD_BYTES = 600


def _row(entity_id: str) -> pa.Table:
    return pa.table({"__id": [entity_id], "value": ["a short text"]}, schema=_ROWS)


class Floor:
    """Single rows without a graph: one fragment, one detached commit, one new file per row.

    A durable row syncs the three files and their directories, as many at a time as it may.
    """

    def __init__(self, folder: Path, *, is_durable: bool) -> None:
        self._records = folder / "records"
        self._records.mkdir(parents=True)
        self._table = folder / "table.lance"
        self._dataset: LanceDataset = lance.write_dataset(
            _ROWS.empty_table(),
            self._table,
            enable_stable_row_ids=True,
            data_storage_version="2.2",
        )
        self._count = 0
        self._syncs = ThreadPoolExecutor(4) if is_durable else None

    def insert(self) -> None:
        """Write one row."""
        fragments = write_fragments(_row(uuid4().hex), self._dataset)
        self._count += 1
        fragments[0].id = self._count
        self._dataset = LanceDataset.commit(
            self._dataset,
            LanceOperation.Append(fragments),
            read_version=self._dataset.version,
            detached=True,
        )
        data = self._table / "data" / fragments[0].files[0].path
        manifest = self._table / "_versions" / f"d{self._dataset.version}.manifest"
        self._sync([data, data.parent, manifest, manifest.parent])
        record = self._records / f"{self._count:020}.json"
        with record.open("xb") as file:
            file.write(b"x" * _RECORD_BYTES)
        self._sync([record, record.parent])

    def _sync(self, paths: list[Path]) -> None:
        if self._syncs:
            list(self._syncs.map(_sync, paths))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Graph:
    """One process's view of a graph at a directory."""

    def __init__(self, folder: Path, *, is_durable: bool, is_compacting: bool = True) -> None:
        self.folder = folder
        self.objects = CountedObjects(open_objects(str(folder), is_durable=is_durable))
        self.tables = CountedTables(Tables(str(folder), is_durable=is_durable))
        self.log = Log(self.objects)
        self.committer = Committer(self.log, self.tables)
        self.branches = Branches(self.committer)
        self._publishers = Publishers(self.committer)
        self._publisher = self._publishers.of(MAIN)
        self._background = ThreadPoolExecutor(1)
        self.compactor = Compactor(self._publishers, self._background) if is_compacting else None

    def create(self) -> Graph:
        """Make the empty graph."""
        pin = self.tables.create(layout.table(PERSON, "00000001"), _ROWS)
        self.committer.create_graph(schema="sha256:none", pins={PERSON: pin})
        return self

    def insert(self) -> None:
        """Commit one new row, after a look at the newest snapshot, without a look for its key."""
        entity_id = uuid4().hex

        def prepare(snapshot: Snapshot) -> Transaction:
            changes = {PERSON: Changed(inserted=IdSet([entity_id]), marks=IdSet())}
            return Transaction(snapshot, (Append(PERSON, (_row(entity_id),)),), changes)

        self._publisher.publish(prepare(self.head()), prepare_again=prepare)

    def head(self) -> Snapshot:
        """The newest snapshot of main."""
        return self.log.head(MAIN).snapshot

    def insert_between(self, start: float, end: float) -> int:
        """Commit single rows from one time to another; the number of commits."""
        time.sleep(max(0.0, start - time.time()))
        count = 0
        while time.time() < end:
            self.insert()
            count += 1
        return count

    def close(self) -> None:
        """Wait for the background work, and fail when it failed."""
        self._background.shutdown()
        if self.compactor and self.compactor.last_error:
            raise self.compactor.last_error


@dataclass
class CountedObjects:
    """An object store that remembers what was read and written."""

    inner: Objects
    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """The root."""
        return self.inner.uri

    def get(self, path: str) -> bytes | None:
        """The object, or None."""
        self.read.append(path)
        return self.inner.get(path)

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object."""
        self.written.append(path)
        return self.inner.put_new(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        self.written.append(path)
        self.inner.put(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """The objects below a folder; each counts as read."""
        for entry in self.inner.list(prefix, after=after):
            self.read.append(entry.path)
            yield entry

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects."""
        self.inner.delete(paths)


class CountedTables:
    """A gateway that counts the calls of its methods."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.calls = 0

    def __getattr__(self, name: str) -> Any:  # whatever the gateway has
        self.calls += 1
        return getattr(self._tables, name)


def table_files(folder: Path) -> Mapping[str, int]:
    """Every file of the tables of a graph, with the time of its last change."""
    found = (folder / layout.TABLES).rglob("*")
    return {str(path): path.stat().st_mtime_ns for path in found}
