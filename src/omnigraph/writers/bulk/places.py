"""Where the records of all units are, for people: the file of each and its number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.writers.bulk.units import InputSplit, noun_of
from omnigraph.writers.inputs.data import FileOrigins, InputFile

_Integers = npt.NDArray[np.int64]


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

    def key_of(self, number: int) -> tuple[int, int]:
        """The unit of a record of a load that has one file, and its number there."""
        unit = int(np.searchsorted(self.split_offsets, number)) - 1
        return unit, number - int(self.split_offsets[unit])

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
