"""A graph of one table that takes single rows, and the least that Lance and a disk need for one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Storage, open_storage
from omnigraph.storage import Entry, Objects, Tables
from omnigraph.storage.objects import layout
from omnigraph.versioning import MAIN, Snapshot

PERSON = "node:Person"
_TEXT = "a short text"
_SCHEMA = "node Person { name: String @key value: String }"
_INSERT = f"""query add($name: String) {{ insert Person {{ name: $name, value: "{_TEXT}" }} }}"""
# What the table of that schema looks like.
_ROWS = pa.schema(
    [pa.field("__id", pa.utf8(), nullable=False), ("c2", pa.utf8()), ("c3", pa.utf8())]
)
_RECORD_BYTES = 600


def _row(entity_id: str) -> pa.Table:
    return pa.table({"__id": [entity_id], "c2": [entity_id], "c3": [_TEXT]}, schema=_ROWS)


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
    """One process's view of a graph at a directory, through the engine."""

    def __init__(
        self, folder: Path, *, is_durable: bool, is_compacting: bool = True, is_new: bool = False
    ) -> None:
        self.folder = folder
        found = open_storage(str(folder), is_durable=is_durable, options=None)
        self.objects = CountedObjects(found.objects)
        self.tables = CountedTables(found.tables)
        storage = Storage(self.objects, cast(Tables, self.tables))
        self.graph = create_on(storage, schema=_SCHEMA) if is_new else open_on(storage)
        self._main = self.graph.branch()
        self._resources = self.graph._session.resources  # noqa: SLF001 — what users never see
        if not is_compacting:
            self._resources.publishers.on_published = None

    def insert(self) -> None:
        """Commit one new entity: a mutation, compiled once, that looks for its key."""
        self._main.mutate(_INSERT, params={"name": uuid4().hex})

    def head(self) -> Snapshot:
        """The newest snapshot of main."""
        return self._resources.log.read_head(MAIN).snapshot

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
        self.graph.close()
        if self._resources.compactor.last_error:
            raise self._resources.compactor.last_error


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

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of the object, or None."""
        self.read.append(path)
        return self.inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object."""
        self.written.append(path)
        return self.inner.put_new(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        self.written.append(path)
        self.inner.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Replace an object."""
        self.written.append(path)
        self.inner.replace(path, data)

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
