"""A load whose units have been written: what there is of each type, and where to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.bulk.hash_files import HashFile
from omnigraph.bulk.mapped_records import RecordReader
from omnigraph.bulk.split_writer import SplitResult
from omnigraph.bulk.splits import InputSplit, LoadJob, get_stores, noun_of
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.input_rows import FileOrigins, InputFile

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StagedLoad:
    """The units of a load and what each of them wrote."""

    job: LoadJob
    splits: tuple[InputSplit, ...]
    results: tuple[SplitResult, ...]

    @cached_property
    def locations(self) -> RecordLocations:
        """Where the records are."""
        return build_locations(self.splits, [written.lines for written in self.results])

    @property
    def has_problems(self) -> bool:
        """Whether records were refused when the units were written."""
        return any(each.problem_count for each in self.results)

    def list_types(self, view: View) -> list[TypeKey]:
        """The types that occur, also without rows: nodes by name, then edges by name."""
        found = {name for written in self.results for name in written.types}
        return [type_key for type_key in view.types if str(type_key) in found]

    def count_rows(self, type_key: TypeKey) -> int:
        """How many rows of a type there are."""
        name = str(type_key)
        found = (portion for each in self.results for portion in each.types.get(name, ()))
        return sum(portion.rows for portion in found)

    def list_hash_files(self, type_key: TypeKey, name: str) -> tuple[HashFile, ...]:
        """The files of the hashes of a name, one of each portion that has any."""
        found = (each.types.get(str(type_key), ()) for each in self.results)
        return tuple(
            portion.hashes[name]
            for portions in found
            for portion in portions
            if name in portion.hashes
        )

    def count_records(self) -> Mapping[str, int]:
        """How many records of each source were mapped to rows, by however many rules."""
        counts: dict[RecordReader, int] = {}
        for split, written in zip(self.splits, self.results, strict=True):
            if split.file_range.mapped is not None:
                counts[split.file_range.mapped.reader] = written.records
        found: Counter[str] = Counter()
        for reader, count in counts.items():
            found[reader.source] += count
        return found

    def count_unchanged(self) -> int:
        """How many rows were not written, because they are committed as they are."""
        parts = (part for each in self.results for part in each.unchanged.values())
        return sum(rows.rows for part in parts for rows in part)

    def list_unchanged_files(self, type_key: TypeKey) -> tuple[HashFile, ...]:
        """The files of the hashes of the ids of such rows of a type."""
        found = (each.unchanged.get(str(type_key), ()) for each in self.results)
        return tuple(rows.ids for portions in found for rows in portions)

    def list_staged(self, type_key: TypeKey) -> tuple[Staged, ...]:
        """The rows of a type, in the order of the input."""
        return self._staged.get(str(type_key), ())

    def build_version(self, type_key: TypeKey) -> Pin:
        """A version that is not visible, in which the rows of a type can be read."""
        name = str(type_key)
        if name not in self._versions:
            tables = get_stores(self.job.location).tables
            self._versions[name] = tables.append(self.job.pins[name], self.list_staged(type_key))
        return self._versions[name]

    def read_columns(self, type_key: TypeKey, columns: list[str]) -> pa.Table:
        """Some columns of all rows of a type, in the order of the input."""
        files = [name for part in self.list_staged(type_key) for name in part.list_files]
        table = get_stores(self.job.location).tables.open(self.build_version(type_key))
        return table.scan_files(files, columns=columns)

    def read_ids(self, type_key: TypeKey) -> pa.Array:
        """The ids of all rows of a type, as large strings: there may be gigabytes of them."""
        return join_texts(self.read_columns(type_key, [ID_COLUMN])[ID_COLUMN])

    @cached_property
    def _staged(self) -> Mapping[str, tuple[Staged, ...]]:
        found: dict[str, list[Staged]] = {}
        for written in self.results:
            for name, portions in written.types.items():
                parts = (Staged.from_json(portion.staged) for portion in portions)
                found.setdefault(name, []).extend(parts)
        return {name: tuple(parts) for name, parts in found.items()}

    @cached_property
    def _versions(self) -> dict[str, Pin]:
        return {}


def join_texts(texts: pa.ChunkedArray) -> pa.Array:
    """Texts in one array of large strings, which may hold more than two gigabytes."""
    return texts.cast(pa.large_string()).combine_chunks()


@dataclass(frozen=True)
class RecordLocations:
    """The files of a load, and where the numbers of each unit begin in its file."""

    files: tuple[InputFile, ...]
    split_files: _Integers
    split_offsets: _Integers

    def location_of(self, unit: int, number: int) -> str:
        """Where a record is; 0 stands for the file as a whole."""
        file, begin = self.files[int(self.split_files[unit])], int(self.split_offsets[unit])
        return file.location_of(begin + number if number else 0)

    def order_of(self, unit: int, number: int) -> tuple[int, int]:
        """A file and a number in it, to sort by."""
        return int(self.split_files[unit]), int(self.split_offsets[unit]) + number

    def build_origins(self, units: _Integers, numbers: _Integers) -> FileOrigins:
        """Where rows came from, given the unit and the number of each."""
        first = self.files[0]
        return FileOrigins(
            first.name,
            pa.array(self.split_offsets[units] + numbers),
            first.noun,
            self.files,
            pa.array(self.split_files[units].astype(np.int32)),
        )


def build_locations(units: Sequence[InputSplit], lines: Sequence[int]) -> RecordLocations:
    """The places of units that have so many lines or rows each."""
    names: dict[str, int] = {}
    files: list[InputFile] = []
    file_of, begin_of = [], []
    done: list[int] = []
    for unit, count in zip(units, lines, strict=True):
        piece = unit.file_range
        if piece.name not in names:
            names[piece.name] = len(files)
            files.append(InputFile(piece.name, noun_of(piece.format)))
            done.append(0)
        file = names[piece.name]
        file_of.append(file)
        begin_of.append(done[file])
        done[file] += count
    return RecordLocations(tuple(files), np.array(file_of, np.int64), np.array(begin_of, np.int64))
