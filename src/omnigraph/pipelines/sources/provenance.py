"""Rows that cannot be written, led back to the records they were made of.

Beside every row go its source and the two numbers of its record. For rows that are rejected the
source is read once more: what the record holds, and where it is. A line of a file is counted then
too, because Spark knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from omnigraph.bulk.bulk_sources import OriginRecord, RecordOrigin
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.pipelines.config.definition import FileSource, Source
from omnigraph.pipelines.mapping.mapping_sql import quote_name
from omnigraph.pipelines.mapping.record_ids import BLOCK, FILE, PART, ROW
from omnigraph.pipelines.mapping.row_guards import CORRUPT, build_record_sql
from omnigraph.pipelines.sources import SourceState, build_location_sql
from omnigraph.pipelines.sources.file_locations import (
    group_by_file,
    locate_records,
    resolve_local_file,
)
from omnigraph.pipelines.sources.source_dispatch import PartitionSettings, partition_settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.storage.objects.source_files import SourceFile

_RECORD, _PLACE, _FIRST, _COUNT = "record", "place", "first", "count"
# Kinds whose second number means something to people.
_COUNTED: Final = ("http", "kafka")

RecordId: TypeAlias = tuple[int, int]
_Row: TypeAlias = Mapping[str, Any]  # Any: columns of several types


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source that was opened: its records, how many were read, and where each of them is."""

    name: str
    source: Source
    state: SourceState
    records: DataFrame
    # The same, counted while they are read, and how many there were.
    rows: DataFrame
    count: Callable[[], int | None]
    partition_settings: PartitionSettings

    @classmethod
    def from_records(
        cls, name: str, source: Source, found: SourceState, records: DataFrame
    ) -> OpenSource:
        """The origins of records that have their numbers beside them."""
        rows, count = import_spark_module("sql_analysis").observe_count(records)
        packing = partition_settings_of(records.sparkSession)
        return cls(name, source, found, records, rows, count, packing)

    def locate(self, wanted: Sequence[RecordId]) -> Iterator[tuple[RecordId, OriginRecord]]:
        """Where records are, by their numbers; one that is not found any more is left out."""
        parts = self._find_parts({part for part, _ in wanted})
        rows = self._reread_rows([(parts.get(part, part), row) for part, row in wanted])
        asked = {part: number for number, part in parts.items()}
        if isinstance(self.source, FileSource):
            places = self._locate_in_files(rows, self.source)
        else:
            places = [
                (
                    f"source '{self.name}' {row[_PLACE] or ''}".rstrip(),
                    self.name,
                    self._number_of(row),
                )
                for row in rows
            ]
        for row, (place, file, number) in zip(rows, places, strict=True):
            known: int = row[PART]
            found = OriginRecord(place, file, number, row[_RECORD] or "")
            yield (asked.get(known, known), row[ROW]), found

    def _find_parts(self, wanted: Set[int]) -> Mapping[int, int]:
        """The parts that Spark has for files which tasks read without it, by their numbers."""
        names = self.records.columns
        files = self.state.listing.files if FILE in names and BLOCK not in names else ()
        numbers = {files[number].path: number for number in wanted if 0 <= number < len(files)}
        if not numbers:
            return {}
        known = self._collect_rows(lambda: self.records.select(PART, FILE).distinct())
        paths = ((self._file_of(row[FILE]).path, row[PART]) for row in known)
        return {numbers[path]: part for path, part in paths if path in numbers}

    def _reread_rows(self, wanted: Sequence[RecordId]) -> list[_Row]:
        spark = self.records.sparkSession
        # In other partitions the same numbers may be those of other records.
        if (
            BLOCK in self.records.columns
            and partition_settings_of(spark) != self.partition_settings
        ):
            return []
        parts, numbers = zip(*wanted, strict=True)
        asked = spark.createDataFrame(
            pa.table({PART: pa.array(parts, pa.int64()), ROW: pa.array(numbers, pa.int64())})
        )
        names = [name for name in (PART, ROW, FILE, BLOCK) if name in self.records.columns]
        text = build_record_sql(self.records.columns)
        if CORRUPT in self.records.columns:
            text = f"coalesce(make_valid_utf8({quote_name(CORRUPT)}), {text})"
        items = [f"{text} AS {_RECORD}"]
        if not isinstance(self.source, FileSource):
            items.append(f"{build_location_sql(self.source, self.records.columns)} AS {_PLACE}")
        joined = self.records.join(asked.hint("broadcast"), [PART, ROW], "left_semi")
        return self._collect_rows(lambda: joined.selectExpr(*names, *items))

    def _collect_rows(self, made: Callable[[], DataFrame]) -> list[_Row]:
        leaving = import_spark_module("job_cancellation").cancel_on_error(self.records.sparkSession)
        # Spark looks at what a frame is made of when it is made, and may not understand it.
        with leaving, import_spark_module("spark_failures").translate_source_errors(self.name):
            found: list[_Row] = made().toArrow().to_pylist()
        return found

    def _number_of(self, row: _Row) -> int | None:
        return row[ROW] if self.source.kind in _COUNTED else None

    def _locate_in_files(
        self, rows: Sequence[_Row], source: FileSource
    ) -> list[tuple[str, str, int | None]]:
        """The place, the file and the number of each row."""
        numbered, totals = self._number_rows(rows)
        known: dict[tuple[str, int], tuple[str, str, int | None]] = {}
        for name, numbers in group_by_file(numbered).items():
            file = self._file_of(name)
            counted = locate_records(file, numbers, totals.get(name), source, self._format)
            known |= {
                (name, each): (f"{file.uri} {noun} {number}", file.uri, number)
                for each, (noun, number) in counted.items()
            }
        return [known[each] for each in numbered]

    def _number_rows(self, rows: Sequence[_Row]) -> tuple[list[tuple[str, int]], Mapping[str, int]]:
        """The file of each row and its number there from 1, and how many there are in files."""
        if FILE not in self.records.columns:
            return [(str(row[PART]), row[ROW] + 1) for row in rows], self._count_remote_records()
        if BLOCK not in self.records.columns:
            return [(row[FILE], row[ROW] + 1) for row in rows], {}
        begins, totals = self._count_block_rows()
        return [(row[FILE], begins[row[FILE], row[BLOCK]] + row[ROW] + 1) for row in rows], totals

    def _count_remote_records(self) -> Mapping[str, int]:
        """How many records files elsewhere have, if those come in the order of their lines."""
        if self._format != "json":
            return {}
        counts = self._collect_rows(lambda: self.records.groupBy(PART).count())
        return {str(each[PART]): each[_COUNT] for each in counts}

    def _count_block_rows(self) -> tuple[Mapping[tuple[str, int], int], Mapping[str, int]]:
        """What makes a number of Spark's in a block one in its file, and how many a file has."""
        from pyspark.sql import functions  # noqa: PLC0415 — Spark is here by now

        grouped = self.records.groupBy(FILE, BLOCK)
        first, count = functions.min(ROW).alias(_FIRST), functions.count(ROW).alias(_COUNT)
        begins: dict[tuple[str, int], int] = {}
        totals: dict[str, int] = {}
        blocks = self._collect_rows(lambda: grouped.agg(first, count))
        for block in sorted(blocks, key=lambda each: (each[FILE], each[BLOCK])):
            before = totals.get(block[FILE], 0)
            begins[block[FILE], block[BLOCK]] = before - block[_FIRST]
            totals[block[FILE]] = before + block[_COUNT]
        return begins, totals

    def _file_of(self, name: str) -> SourceFile:
        if FILE in self.records.columns:
            return resolve_local_file(name)
        remote: SourceFile = self.state.listing.files[int(name)]
        return remote

    @property
    def _format(self) -> str:
        return str(self.state.listing.format)


class SlotSources:
    """The sources of a slot, each opened when it is needed for the first time.

    `states` are those of the sources whose records tasks may read without Spark.
    """

    def __init__(
        self,
        names: Sequence[str],
        open_source: Callable[[str], OpenSource],
        *,
        states: Mapping[str, tuple[Source, SourceState]] | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self.names = tuple(names)
        self.states = states or {}
        self.session = session
        self._open_source = open_source
        self._opened: dict[str, OpenSource] = {}
        self._counted: set[str] = set()

    def open(self, name: str) -> OpenSource:
        """A source, opened."""
        if name not in self._opened:
            self._opened[name] = self._open_source(name)
        return self._opened[name]

    def count(self, name: str) -> int | None:
        """How many records Spark read of a source; None if tasks read it without Spark."""
        # Of a frame that was not evaluated, the number would never come.
        return self._opened[name].count() if name in self._counted else None

    def open_rows(self, name: str) -> DataFrame:
        """The records of a source, which are counted when they are read."""
        self._counted.add(name)
        return self.open(name).rows

    @property
    def frames(self) -> Mapping[str, DataFrame]:
        """The records of each source."""
        return _SourceFrames(self)


class _SourceFrames(Mapping[str, "DataFrame"]):
    """Frames that are made when they are asked for."""

    def __init__(self, sources: SlotSources) -> None:
        self._sources = sources

    def __getitem__(self, name: str) -> DataFrame:
        return self._sources.open_rows(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources.names)

    def __len__(self) -> int:
        return len(self._sources.names)


@dataclass(frozen=True, slots=True)
class RecordLocator:
    """What finds the records of rows whose origins name these sources by their numbers."""

    sources: SlotSources

    def __call__(self, wanted: Sequence[RecordOrigin]) -> dict[RecordOrigin, OriginRecord]:
        """Where records are, as far as they are found."""
        asked: dict[int, list[RecordId]] = {}
        for source, part, row in dict.fromkeys(wanted):
            asked.setdefault(source, []).append((part, row))
        return {
            (source, *numbers): found
            for source, each in asked.items()
            for numbers, found in self._open(source).locate(each)
        }

    def _open(self, number: int) -> OpenSource:
        return self.sources.open(self.sources.names[number])
