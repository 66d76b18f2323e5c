"""What is wrong with table files as a whole: found before any unit is given to a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omnigraph.writers.bulk.stores import get_stores
from omnigraph.writers.bulk.unit_reading import read_split_header
from omnigraph.writers.bulk.units import Format, InputSplit
from omnigraph.writers.bulk.writing import SplitResult

# Files that are looked at: others that are wrong are found by who reads them.
HEADERS_MAX: Final = 16
# What has a type as a whole, which somebody says; of the others, lines tell theirs.
_TABLE_FORMATS: Final = (Format.PARQUET, Format.ORC, Format.CSV)


def check_headers(units: Sequence[InputSplit]) -> list[tuple[InputSplit, SplitResult]]:
    """The first unit of each table file whose type or columns cannot be those of its rows."""
    found: list[tuple[InputSplit, SplitResult]] = []
    for unit in _select_header_splits(units):
        reading = read_split_header(unit, get_stores(unit.job.location))
        if reading.problems:
            told = tuple(reading.problems)
            wrong = SplitResult(
                0, is_complete=False, types={}, problems=told, problem_count=reading.refused
            )
            found.append((replace(unit, number=len(found)), wrong))
    return found


def _select_header_splits(units: Sequence[InputSplit]) -> list[InputSplit]:
    """The first units of some table files."""
    heads: dict[tuple[str, str | None], InputSplit] = {}
    for unit in units:
        if unit.file_range.format in _TABLE_FORMATS and len(heads) < HEADERS_MAX:
            heads.setdefault((unit.file_range.name, unit.file_range.type), unit)
    return list(heads.values())
