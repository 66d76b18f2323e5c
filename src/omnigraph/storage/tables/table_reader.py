"""Reading one pinned version of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceScanner
from lance.blob import BlobFile
from lance.fragment import LanceFragment
from lance.schema import LanceSchema

from omnigraph.errors import StorageRefusedError
from omnigraph.storage.tables.blob_columns import is_blob, to_logical_schema
from omnigraph.storage.tables.file_digests import Verifier, VersionUse
from omnigraph.storage.tables.fragments import Fragment, fragment_of, fragments_of
from omnigraph.storage.tables.lance_errors import translate_lance_errors
from omnigraph.storage.tables.pins import Pin, list_file_names
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID, ROWS_PER_ID, fetch_rows_by_id
from omnigraph.storage.tables.table_indexes import (
    Index,
    IndexSpec,
    count_rows_in,
    indexes_of,
    list_damaged_indexes,
)

# Measured on 100k rows: a look-up costs about as much as reading a hundred values of the column.
ROWS_PER_LOOKUP = 100
# Without an index, comparing so few values in a filter is no slower than hashing them here.
FILTER_VALUES_MAX = 64
# Beyond this the filter text alone is slower to parse than the column is to read.
LOOKUPS_MAX = 10_000
# The values looked for are hashed once per batch, so a look-up of many needs large ones.
FIND_BATCH_ROWS = 1024 * 1024
# What every row has beside its columns.
_HIDDEN = (ROW_ID, ROW_ADDRESS)

# Without its sign, this number is too large for the integers of a filter.
_LOWEST = -(2**63)


class Table:
    """An immutable view of one version; cheap to make, safe to share between threads."""

    def __init__(self, pin: Pin, dataset: LanceDataset, verifier: Verifier) -> None:
        self.pin = pin
        self._verifier = verifier
        with translate_lance_errors("open", pin.path):
            self.schema: pa.Schema = to_logical_schema(dataset.schema)
        self._dataset = dataset
        self._blobs = [field.name for field in self.schema if is_blob(field)]

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The indexes of this version, with what they do not cover yet; damaged ones are none."""
        with translate_lance_errors("indexes", self.pin.path):
            return indexes_of(self._dataset, self._find_damaged_segments())

    @property
    def damaged_indexes(self) -> list[IndexSpec]:
        """The indexes of this version of which something is damaged."""
        with translate_lance_errors("indexes", self.pin.path):
            return self._list_damaged_indexes()

    @property
    def fragment_ids(self) -> list[int]:
        """The ids of its fragments."""
        with translate_lance_errors("fragments", self.pin.path):
            return list(self._dataset.fragment_ids())

    @property
    def fragments(self) -> dict[int, Fragment]:
        """What this version says of each of its fragments, by id.

        Where two versions of a table with the same field ids say the same, their rows are the same.
        """
        with translate_lance_errors("fragments", self.pin.path):
            return fragments_of(self._dataset)

    @property
    def field_ids(self) -> list[Any]:
        """Which data each column is bound to."""
        with translate_lance_errors("fields", self.pin.path):
            return field_ids_of(self._dataset.lance_schema)

    def count_covered_rows(self, index: Index) -> int:
        """How many rows an index of this version covers."""
        if not index.uncovered:
            return self.pin.rows
        return self.count_rows_in(index.covered)

    def count_rows_in(self, fragment_ids: Collection[int]) -> int:
        """How many rows some fragments of this version hold."""
        with translate_lance_errors("fragments", self.pin.path):
            return count_rows_in(self._dataset, fragment_ids)

    def require_whole(self, fragments: Collection[int] | None = None) -> None:
        """Refuse to copy rows out of damaged files of this version, or of some fragments.

        Reads compare as much as they can afford; what leaves the graph is compared completely.
        """
        with translate_lance_errors("read", self.pin.path):
            self._require_sound(VersionUse.COPY, fragments)

    def count(self) -> int:
        """How many rows there are."""
        return self.pin.rows

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002
    ) -> pa.Table:
        """All rows that pass an SQL filter; `_rowid` may be asked for like a column."""
        names = self._list_columns(columns)
        with translate_lance_errors("scan", self.pin.path):
            return self._to_logical(self._create_scanner(names, filter).to_table(), names)

    def scan_batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002
        fragments: Collection[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same rows as `scan`, or those in some fragments, a batch at a time."""
        names = self._list_columns(columns)
        with translate_lance_errors("scan", self.pin.path):
            among = None
            if fragments is not None:
                among = [fragment_of(self._dataset, id_) for id_ in fragments]
            for batch in self._create_scanner(names, filter, fragments=among).to_batches():
                yield from self._to_logical(pa.Table.from_batches([batch]), names).to_batches()

    def require_filter(self, filter: str) -> None:  # noqa: A002
        """Refuse an SQL filter that this table cannot evaluate; no row is read."""
        with translate_lance_errors("filter", self.pin.path):
            self._create_scanner(self.schema.names[:1], filter).explain_plan()

    def scan_files(self, files: Sequence[str], *, columns: Sequence[str]) -> pa.Table:
        """The rows in some data files, by their paths from the graph's root.

        All of them must be in this version: missing rows must not pass for none.
        """
        wanted = {name.removeprefix(f"{self.pin.path}/data/") for name in files}
        names = self._list_columns(columns)
        with translate_lance_errors("rows_of_files", self.pin.path):
            held = {
                each: set(list_file_names(each.metadata)) for each in self._dataset.get_fragments()
            }
        if missing := sorted(wanted.difference(*held.values())):
            reason = f"{len(missing)} of {len(wanted)} files are not in it, first {missing[0]}"
            raise StorageRefusedError("rows_of_files", self.pin.path, reason)
        fragments = [each for each, names_of in held.items() if not wanted.isdisjoint(names_of)]
        return self._scan_fragments(fragments, names)

    def scan_fragments(self, ids: Collection[int], *, columns: Sequence[str]) -> pa.Table:
        """The rows in some fragments of this version."""
        with translate_lance_errors("fragments", self.pin.path):
            fragments = [fragment_of(self._dataset, id_) for id_ in ids]
        return self._scan_fragments(fragments, self._list_columns(columns))

    def _scan_fragments(self, fragments: list[LanceFragment], names: list[str]) -> pa.Table:
        if not fragments:
            return self.project_schema(names).empty_table()
        with translate_lance_errors("scan", self.pin.path):
            scanner = self._create_scanner(names, None, fragments=fragments)
            return self._to_logical(scanner.to_table(), names)

    def find(
        self, column: str, values: pa.Array, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Every row whose value is among the given ones: the column and `_rowid`, or `columns`."""
        names = [column, ROW_ID] if columns is None else list(columns)
        if not self.pin.rows or not len(values):
            return self.project_schema(names).empty_table()
        with translate_lance_errors("find", self.pin.path):
            wanted = values.cast(self.schema.field(column).type).drop_null()
            if len(wanted) <= LOOKUPS_MAX:
                # More are compared with all rows, whether or not they are distinct.
                wanted = pc.unique(wanted)
            if self._is_worth_a_filter(column, wanted):
                text = f"`{column}` IN ({_format_literals(wanted)})"
                return self._to_logical(self._create_scanner(names, text).to_table(), names)
            # Many rows come from one scan with all their columns, a few by their row ids.
            are_many = len(wanted) > self.pin.rows // ROWS_PER_ID and not self._blobs
            are_read = are_many or {column, *_HIDDEN}.issuperset(names)
            read = list(dict.fromkeys([column, *names])) if are_read else [column, ROW_ID]
            found = self._find_by_scan(column, wanted, read)
        if are_read:
            return found.select(names)
        return self.take(found[ROW_ID].combine_chunks(), columns=names)

    def _find_by_scan(self, column: str, wanted: pa.Array, names: list[str]) -> pa.Table:
        self._require_sound(VersionUse.SCAN)
        with translate_lance_errors("find", self.pin.path):
            scanner = self._dataset.scanner(columns=names, batch_size=FIND_BATCH_ROWS)
            parts = [
                batch.filter(pc.is_in(batch.column(column), value_set=wanted))
                for batch in scanner.to_batches()
            ]
        return pa.Table.from_batches(parts, schema=self.project_schema(names))

    def take(self, row_ids: pa.Array, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by row id, in the order given; every one of them must be in this version."""
        names = self._list_columns(columns)
        with translate_lance_errors("take", self.pin.path):
            self._require_sound(VersionUse.LOOKUP)
            found = fetch_rows_by_id(
                self._dataset, row_ids, columns=names, has_blobs=bool(self._blobs)
            )
        places = pc.index_in(row_ids.cast(pa.uint64()), value_set=found[ROW_ID])
        if places.null_count:
            raise StorageRefusedError(
                "take", self.pin.path, f"{places.null_count} rows are not in it"
            )
        return self._to_logical(found.select(names).take(places), names)

    def fetch_rows(self, row_ids: pa.Array, *, columns: Sequence[str]) -> pa.Table:
        """The rows of row ids that are in this version, in any order; the others are left out."""
        names = list(columns)
        with translate_lance_errors("rows", self.pin.path):
            self._require_sound(VersionUse.LOOKUP)
            found = fetch_rows_by_id(
                self._dataset, row_ids, columns=names, has_blobs=bool(self._blobs)
            )
        return self._to_logical(found.select(names), names)

    def open_blob(self, column: str, row_id: int) -> StoredBlob | None:
        """One blob, without loading its bytes; None for a null."""
        with translate_lance_errors("open_blob", self.pin.path):
            self._require_sound(VersionUse.LOOKUP)
            found = fetch_rows_by_id(self._dataset, pa.array([row_id]), columns=[ROW_ADDRESS])
            if not len(found):
                raise StorageRefusedError("open_blob", self.pin.path, "the row is not in it")
            file = self._dataset.take_blobs(column, addresses=found[ROW_ADDRESS].to_pylist())[0]
        return None if file is None else StoredBlob(file, self.pin.path)

    def _list_columns(self, columns: Sequence[str] | None) -> list[str]:
        return self.schema.names if columns is None else list(columns)

    def _create_scanner(
        self, names: list[str], text: str | None, *, fragments: list[LanceFragment] | None = None
    ) -> LanceScanner:
        ids = None if fragments is None else [each.fragment_id for each in fragments]
        self._require_sound(VersionUse.SCAN if text is None else VersionUse.LOOKUP, ids)
        # Among the columns, the row id would cost a point look-up a tenth more.
        columns = [name for name in names if name not in _HIDDEN] or names
        return self._dataset.scanner(
            columns=columns,
            filter=text,
            fragments=fragments,
            blob_handling="all_binary" if self._blobs else None,
            with_row_id=ROW_ID in names,
            with_row_address=ROW_ADDRESS in names,
            use_scalar_index=text is None or self._can_use_indexes(text),
        )

    def _require_sound(self, use: VersionUse, fragments: Collection[int] | None = None) -> None:
        self._verifier.require(self.pin, self._dataset, use, fragments)

    def _find_damaged_segments(self) -> frozenset[str]:
        return self._verifier.find_damaged_segments(self.pin, self._dataset)

    def _can_use_indexes(self, text: str) -> bool:
        """Whether no column that a filter may mean has a damaged index: Lance would fail."""
        return not any(index.column in text for index in self._list_damaged_indexes())

    def _list_damaged_indexes(self) -> list[IndexSpec]:
        damaged = self._find_damaged_segments()
        return list_damaged_indexes(self._dataset, damaged) if damaged else []

    def _is_worth_a_filter(self, column: str, wanted: pa.Array) -> bool:
        is_literal = pa.types.is_string(wanted.type) or pa.types.is_integer(wanted.type)
        if not (is_literal and 0 < len(wanted) <= LOOKUPS_MAX):
            return False
        if pa.types.is_signed_integer(wanted.type) and pc.min(wanted).as_py() == _LOWEST:
            return False
        if len(wanted) <= FILTER_VALUES_MAX:
            return True
        is_few = len(wanted) <= self.pin.rows // ROWS_PER_LOOKUP
        return is_few and any(index.column == column for index in self.indexes)

    def _to_logical(self, rows: pa.Table, names: list[str]) -> pa.Table:
        if rows.column_names != names:
            rows = rows.select(names)
        return (
            rows if not self._blobs else pa.table(rows.columns, schema=self.project_schema(names))
        )

    def project_schema(self, names: list[str]) -> pa.Schema:
        """The schema of rows with these columns."""
        hidden = {name: pa.field(name, pa.uint64()) for name in _HIDDEN}
        return pa.schema([hidden.get(name) or self.schema.field(name) for name in names])


class StoredBlob:
    """The bytes of one blob; ranges share no cursor, so threads may read at once."""

    def __init__(self, file: BlobFile, path: str) -> None:
        self._file = file
        self._path = path

    def get_size(self) -> int:
        """How many bytes there are."""
        with translate_lance_errors("size_of_blob", self._path):
            return int(self._file.size())

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a half-open range, by default all of them."""
        length = (self.get_size() if end is None else end) - start
        if not length:
            return b""
        with translate_lance_errors("read_blob", self._path):
            return bytes(self._file.read_range(start, length))


def field_ids_of(schema: LanceSchema) -> list[Any]:
    """The ids of all fields, as nested as the fields are."""

    # Lance's fields are typed by stubs that its own module does not export.
    def ids(field: Any) -> tuple[Any, ...]:
        return (field.name(), field.id(), *map(ids, field.children()))

    return [ids(field) for field in schema.fields()]


def _format_literals(values: pa.Array) -> str:
    if pa.types.is_string(values.type):
        quoted = pc.replace_substring(values, "'", "''").to_pylist()
        return ",".join(f"'{value}'" for value in quoted)
    return ",".join(map(str, values.to_pylist()))
