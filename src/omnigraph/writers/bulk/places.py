"""Where the records of all units are, for people: the file of each and its number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.writers.bulk.units import Unit, noun_of
from omnigraph.writers.inputs.data import File, FileOrigins

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """The files of a load, and where the numbers of each unit begin in its file."""

    files: tuple[File, ...]
    file_of: _Numbers
    begin_of: _Numbers

    def place(self, unit: int, number: int) -> str:
        """Where a record is; 0 stands for the file as a whole."""
        file, begin = self.files[int(self.file_of[unit])], int(self.begin_of[unit])
        return file.place(begin + number if number else 0)

    def order(self, unit: int, number: int) -> tuple[int, int]:
        """A file and a number in it, to sort by."""
        return int(self.file_of[unit]), int(self.begin_of[unit]) + number

    def key(self, number: int) -> tuple[int, int]:
        """The unit of a record of a load that has one file, and its number there."""
        unit = int(np.searchsorted(self.begin_of, number)) - 1
        return unit, number - int(self.begin_of[unit])

    def origins(self, units: _Numbers, numbers: _Numbers) -> FileOrigins:
        """Where rows came from, given the unit and the number of each."""
        first = self.files[0]
        return FileOrigins(
            first.name,
            pa.array(self.begin_of[units] + numbers),
            first.noun,
            self.files,
            pa.array(self.file_of[units].astype(np.int32)),
        )


def places_of(units: Sequence[Unit], lines: Sequence[int]) -> Places:
    """The places of units that have so many lines or rows each."""
    names: dict[str, int] = {}
    files: list[File] = []
    file_of, begin_of = [], []
    done: list[int] = []
    for unit, count in zip(units, lines, strict=True):
        piece = unit.piece
        if piece.name not in names:
            names[piece.name] = len(files)
            files.append(File(piece.name, noun_of(piece.format)))
            done.append(0)
        file = names[piece.name]
        file_of.append(file)
        begin_of.append(done[file])
        done[file] += count
    return Places(tuple(files), np.array(file_of, np.int64), np.array(begin_of, np.int64))
