"""Rows that cannot be written, led back to the records they were made of.

Beside every row go its source and the two numbers of its record. For rows that are rejected the
source is read once more: what the record holds, and where it is. A line of a file is counted then
too, because Spark knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from omnigraph.engine.distributed import spark_module
from omnigraph.pipelines.definition import FileSource, Source
from omnigraph.pipelines.guards import CORRUPT, record_sql
from omnigraph.pipelines.origins.file_places import local_file, nouns, numbers_by_file
from omnigraph.pipelines.origins.numbering import BLOCK, FILE, PART, ROW
from omnigraph.pipelines.origins.packing import Packing, packing_of
from omnigraph.pipelines.sources import Survey, place_sql
from omnigraph.pipelines.sql import quoted
from omnigraph.writers.bulk.origins import Found, Origin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.storage.source_files import SourceFile

_RECORD, _PLACE, _FIRST, _COUNT = "record", "place", "first", "count"
# Kinds whose second number means something to people.
_COUNTED: Final = ("http", "kafka")

Numbers: TypeAlias = tuple[int, int]
_Row: TypeAlias = Mapping[str, Any]  # Any: columns of several types


@dataclass(frozen=True, slots=True)
class Origins:
    """A source that was opened: its records, how many were read, and where each of them is."""

    name: str
    source: Source
    found: Survey
    records: DataFrame
    # The same, counted while they are read, and how many there were.
    rows: DataFrame
    count: Callable[[], int | None]
    packing: Packing

    @classmethod
    def of(cls, name: str, source: Source, found: Survey, records: DataFrame) -> Origins:
        """The origins of records that have their numbers beside them."""
        rows, count = spark_module("analysis").counted(records)
        packing = packing_of(records.sparkSession)
        return cls(name, source, found, records, rows, count, packing)

    def locate(self, wanted: Sequence[Numbers]) -> Iterator[tuple[Numbers, Found]]:
        """Where records are, by their numbers; one that is not found any more is left out."""
        rows = self._read_again(wanted)
        if isinstance(self.source, FileSource):
            places = self._file_places(rows, self.source)
        else:
            places = [
                (f"source '{self.name}' {row[_PLACE] or ''}".rstrip(), self.name, self._number(row))
                for row in rows
            ]
        for row, (place, file, number) in zip(rows, places, strict=True):
            yield (row[PART], row[ROW]), Found(place, file, number, row[_RECORD] or "")

    def _read_again(self, wanted: Sequence[Numbers]) -> list[_Row]:
        spark = self.records.sparkSession
        # In other partitions the same numbers may be those of other records.
        if BLOCK in self.records.columns and packing_of(spark) != self.packing:
            return []
        parts, numbers = zip(*wanted, strict=True)
        asked = spark.createDataFrame(
            pa.table({PART: pa.array(parts, pa.int64()), ROW: pa.array(numbers, pa.int64())})
        )
        names = [name for name in (PART, ROW, FILE, BLOCK) if name in self.records.columns]
        text = record_sql(self.records.columns)
        if CORRUPT in self.records.columns:
            text = f"coalesce(make_valid_utf8({quoted(CORRUPT)}), {text})"
        items = [f"{text} AS {_RECORD}"]
        if not isinstance(self.source, FileSource):
            items.append(f"{place_sql(self.source, self.records.columns)} AS {_PLACE}")
        joined = self.records.join(asked.hint("broadcast"), [PART, ROW], "left_semi")
        return self._collected(lambda: joined.selectExpr(*names, *items))

    def _collected(self, made: Callable[[], DataFrame]) -> list[_Row]:
        leaving = spark_module("cancelling").cancelled_if_left(self.records.sparkSession)
        # Spark looks at what a frame is made of when it is made, and may not understand it.
        with leaving, spark_module("failures").refusing_data(self.name):
            found: list[_Row] = made().toArrow().to_pylist()
        return found

    def _number(self, row: _Row) -> int | None:
        return row[ROW] if self.source.kind in _COUNTED else None

    def _file_places(
        self, rows: Sequence[_Row], source: FileSource
    ) -> list[tuple[str, str, int | None]]:
        """The place, the file and the number of each row."""
        numbered, totals = self._numbered(rows)
        known: dict[tuple[str, int], tuple[str, str, int | None]] = {}
        for name, numbers in numbers_by_file(numbered).items():
            file = self._file(name)
            counted = nouns(file, numbers, totals.get(name), source, self._format)
            known |= {
                (name, each): (f"{file.uri} {noun} {number}", file.uri, number)
                for each, (noun, number) in counted.items()
            }
        return [known[each] for each in numbered]

    def _numbered(self, rows: Sequence[_Row]) -> tuple[list[tuple[str, int]], Mapping[str, int]]:
        """The file of each row and its number there from 1, and how many there are in files."""
        if FILE not in self.records.columns:
            return [(str(row[PART]), row[ROW] + 1) for row in rows], self._remote_totals()
        if BLOCK not in self.records.columns:
            return [(row[FILE], row[ROW] + 1) for row in rows], {}
        begins, totals = self._blocks()
        return [(row[FILE], begins[row[FILE], row[BLOCK]] + row[ROW] + 1) for row in rows], totals

    def _remote_totals(self) -> Mapping[str, int]:
        """How many records files elsewhere have, if those come in the order of their lines."""
        if self._format != "json":
            return {}
        counts = self._collected(lambda: self.records.groupBy(PART).count())
        return {str(each[PART]): each[_COUNT] for each in counts}

    def _blocks(self) -> tuple[Mapping[tuple[str, int], int], Mapping[str, int]]:
        """What makes a number of Spark's in a block one in its file, and how many a file has."""
        from pyspark.sql import functions  # noqa: PLC0415 — Spark is here by now

        grouped = self.records.groupBy(FILE, BLOCK)
        first, count = functions.min(ROW).alias(_FIRST), functions.count(ROW).alias(_COUNT)
        begins: dict[tuple[str, int], int] = {}
        totals: dict[str, int] = {}
        blocks = self._collected(lambda: grouped.agg(first, count))
        for block in sorted(blocks, key=lambda each: (each[FILE], each[BLOCK])):
            before = totals.get(block[FILE], 0)
            begins[block[FILE], block[BLOCK]] = before - block[_FIRST]
            totals[block[FILE]] = before + block[_COUNT]
        return begins, totals

    def _file(self, name: str) -> SourceFile:
        if FILE in self.records.columns:
            return local_file(name)
        remote: SourceFile = self.found.state.files[int(name)]
        return remote

    @property
    def _format(self) -> str:
        return str(self.found.state.format)


@dataclass(frozen=True, slots=True)
class Located:
    """What finds the records of rows whose origins name these sources by their numbers."""

    sources: tuple[Origins, ...]

    def __call__(self, wanted: Sequence[Origin]) -> dict[Origin, Found]:
        """Where records are, as far as they are found."""
        asked: dict[int, list[Numbers]] = {}
        for source, part, row in dict.fromkeys(wanted):
            asked.setdefault(source, []).append((part, row))
        return {
            (source, *numbers): found
            for source, each in asked.items()
            for numbers, found in self.sources[source].locate(each)
        }
