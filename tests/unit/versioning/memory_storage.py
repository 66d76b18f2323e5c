"""A tiny store in memory: the contracts of objects and tables, for fast model-based tests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.tables.added_columns import ConvertedColumn
from omnigraph.storage.tables.pins import Pin, Staged, format_version

FANOUT = 4
Row = dict[str, Any]


@dataclass
class MemoryObjects:
    """Objects in a dictionary; counts what is asked of it."""

    uri: str = "memory://stand-in"
    data: dict[str, bytes] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, path: str) -> bytes | None:
        self.calls.append(("get", path))
        return self.data.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        found = self.get(path)
        return None if found is None else found[start : start + length]

    def put_new(self, path: str, data: bytes) -> bool:
        self.calls.append(("put_new", path))
        with self.lock:
            return self.data.setdefault(path, data) is data

    def put(self, path: str, data: bytes) -> None:
        self.calls.append(("put", path))
        self.data[path] = data

    def replace(self, path: str, data: bytes) -> None:
        self.calls.append(("replace", path))
        self.data[path] = data

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        self.calls.append(("list", prefix))
        folder = prefix.removesuffix("/") + "/"
        for path in sorted(self.data):
            if path.startswith(folder) and (after is None or path > after):
                yield Entry(path, len(self.data[path]), 0.0)

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.data.pop(path, None)


@dataclass(frozen=True)
class Version:
    """The fragments of a version: by fragment id, the rows by row id."""

    schema: pa.Schema
    fragments: Mapping[int, Mapping[int, Row]]

    @property
    def rows(self) -> dict[int, Row]:
        return {at: row for rows in self.fragments.values() for at, row in rows.items()}


@dataclass(frozen=True)
class MemoryTable:
    """A view of one version."""

    version: Version

    @property
    def schema(self) -> pa.Schema:
        return self.version.schema

    def scan(self, *, columns: Sequence[str] | None = None) -> pa.Table:
        rows = [{**row, "_rowid": at} for at, row in self.version.rows.items()]
        schema = self.schema.append(pa.field("_rowid", pa.uint64()))
        return pa.Table.from_pylist(rows, schema=schema).select(columns or self.schema.names)

    def find(self, column: str, values: pa.Array) -> pa.Table:
        rows = self.scan(columns=[column, "_rowid"])
        wanted = values.cast(self.schema.field(column).type)
        return rows.filter(pc.is_in(rows[column], value_set=wanted))


@dataclass(frozen=True)
class MemoryCompaction:
    """Fragments worth joining, and the rows they had when it was planned."""

    pin: Pin
    inputs: Mapping[int, Mapping[int, Row]]


@dataclass
class MemoryTables:
    """Tables whose versions are dictionaries; nothing is ever changed in place."""

    versions: dict[tuple[str, str], Version] = field(default_factory=dict)
    staged: dict[str, pa.Table] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def create(self, path: str, schema: pa.Schema) -> Pin:
        return self._keep(path, Version(schema, {}), high_water=0)

    def open(self, pin: Pin) -> MemoryTable:
        return MemoryTable(self.versions[pin.path, pin.version])

    def write(self, pin: Pin, rows: pa.Table, *, is_synced: bool = True) -> Staged:
        del is_synced  # memory has nothing to sync
        token = f"file-{next(self.numbers)}"
        self.staged[token] = rows
        return Staged(pin.path, (token,), rows.num_rows)  # type: ignore[arg-type]  # names rows here

    def forget_unpublished(self) -> None:
        pass

    def append(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        return self.replace(pin, dead=pa.array([], pa.uint64()), staged=staged)

    def replace(
        self,
        pin: Pin,
        *,
        dead: pa.Array,
        staged: Sequence[Staged] = (),
        addresses: pa.Array | None = None,
    ) -> Pin:
        assert addresses is None, "nobody reads addresses here"
        version, gone = self.versions[pin.path, pin.version], set(dead.to_pylist())
        assert gone <= version.rows.keys(), "a row id that is not on this version"
        kept = {
            number: {at: row for at, row in rows.items() if at not in gone}
            for number, rows in version.fragments.items()
        }
        alive = {number: rows for number, rows in kept.items() if rows}
        return self._next(pin, version.schema, alive, self._rows(staged))

    def overwrite(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        version = self.versions[pin.path, pin.version]
        return self._next(pin, version.schema, {}, self._rows(staged))

    def add_columns(self, pin: Pin, schema: pa.Schema) -> Pin:
        version = self.versions[pin.path, pin.version]
        wider = pa.schema([*version.schema, *schema])
        return self._next(pin, wider, version.fragments, [])

    def convert_columns(
        self,
        pin: Pin,
        columns: Sequence[ConvertedColumn],
        *,
        own: list[Any],  # noqa: ARG002
    ) -> Pin:
        version = self.versions[pin.path, pin.version]

        def widen(row: Row) -> Row:
            made = {
                each.field.name: each.convert(
                    pa.record_batch(
                        [
                            pa.array([row[name]], version.schema.field(name).type)
                            for name in each.sources
                        ],
                        names=list(each.sources),
                    )
                )[0].as_py()
                for each in columns
            }
            return row | made

        fragments = {
            number: {at: widen(row) for at, row in rows.items()}
            for number, rows in version.fragments.items()
        }
        wider = pa.schema([*version.schema, *(each.field for each in columns)])
        return self._next(pin, wider, fragments, [])

    def plan_compaction(self, pin: Pin) -> MemoryCompaction | None:
        fragments = self.versions[pin.path, pin.version].fragments
        small = {number: rows for number, rows in fragments.items() if len(rows) < FANOUT}
        return MemoryCompaction(pin, small) if len(small) >= FANOUT else None

    def compact(self, plan: MemoryCompaction) -> MemoryCompaction:
        return plan

    def replay(self, compacted: MemoryCompaction, pin: Pin) -> Pin | None:
        version = self.versions[pin.path, pin.version]
        if not compacted.inputs.keys() <= version.fragments.keys():
            return None
        others = {n: rows for n, rows in version.fragments.items() if n not in compacted.inputs}
        alive = {at: row for n in compacted.inputs for at, row in version.fragments[n].items()}
        fragments = {**others, pin.high_water + 1: alive}
        return self._keep(pin.path, Version(version.schema, fragments), pin.high_water + 1)

    def _rows(self, staged: Sequence[Staged]) -> list[dict[int, Row]]:
        tables = [self.staged[str(token)] for each in staged for token in each.fragments]
        return [{next(self.numbers): row for row in table.to_pylist()} for table in tables]

    def _next(
        self,
        pin: Pin,
        schema: pa.Schema,
        kept: Mapping[int, Mapping[int, Row]],
        new: list[dict[int, Row]],
    ) -> Pin:
        fragments = {**kept, **dict(enumerate(new, pin.high_water + 1))}
        return self._keep(pin.path, Version(schema, fragments), pin.high_water + len(new))

    def _keep(self, path: str, version: Version, high_water: int) -> Pin:
        text = format_version(next(self.numbers) | 1 << 63)
        self.versions[path, text] = version
        return Pin(path, text, len(version.rows), len(version.fragments), high_water)
