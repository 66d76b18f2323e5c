"""What is wrong with table files as a whole: found before any unit is given to a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.unit_reading import read_head
from omnigraph.writers.bulk.units import Format, Unit
from omnigraph.writers.bulk.writing import Written

# Files that are looked at: others that are wrong are found by who reads them.
HEADS_MAX: Final = 16
# What has a type as a whole, which somebody says; of the others, lines tell theirs.
_TABLES: Final = (Format.PARQUET, Format.ORC, Format.CSV)


def wrong_heads(units: Sequence[Unit]) -> list[tuple[Unit, Written]]:
    """The first unit of each table file whose type or columns cannot be those of its rows."""
    found: list[tuple[Unit, Written]] = []
    for unit in _heads(units):
        reading = read_head(unit, stores_of(unit.job.place))
        if reading.problems:
            told = tuple(reading.problems)
            wrong = Written(0, is_complete=False, types={}, problems=told, count=reading.refused)
            found.append((replace(unit, number=len(found)), wrong))
    return found


def _heads(units: Sequence[Unit]) -> list[Unit]:
    """The first units of some table files."""
    heads: dict[tuple[str, str | None], Unit] = {}
    for unit in units:
        if unit.piece.format in _TABLES and len(heads) < HEADS_MAX:
            heads.setdefault((unit.piece.name, unit.piece.type), unit)
    return list(heads.values())
