"""What is wrong with table files as a whole: found before any unit is given to a worker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa

from omnigraph.errors import LoadError
from omnigraph.schema.accepted import TypeKey
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.unit_reading import UnitReading, read_unit
from omnigraph.writers.bulk.units import Format, Unit
from omnigraph.writers.bulk.writing import Written
from omnigraph.writers.inputs.reading import Numbers
from omnigraph.writers.inputs.tables import named_type

# Files that are looked at: others that are wrong are found by who reads them.
HEADS_MAX: Final = 16
# What has a type as a whole, which somebody says; of the others, lines tell theirs.
_TABLES: Final = (Format.PARQUET, Format.ORC, Format.CSV)


def wrong_heads(units: Sequence[Unit]) -> list[tuple[Unit, Written]]:
    """The first unit of each table file whose type or columns cannot be those of its rows."""
    found: list[tuple[Unit, Written]] = []
    for unit in _heads(units):
        reading = _looked_at(unit)
        if reading.problems:
            told = tuple(reading.problems)
            wrong = Written(0, is_complete=False, types={}, problems=told, count=reading.refused)
            found.append((replace(unit, number=len(found)), wrong))
    return found


def _heads(units: Sequence[Unit]) -> list[Unit]:
    """The first units of some table files, without rows."""
    heads: dict[str, Unit] = {}
    for unit in units:
        if unit.piece.format in _TABLES and len(heads) < HEADS_MAX:
            piece = replace(unit.piece, end=unit.piece.start)
            heads.setdefault(unit.piece.name, replace(unit, piece=piece))
    return list(heads.values())


def _looked_at(unit: Unit) -> UnitReading:
    stores = stores_of(unit.job.place)
    if unit.piece.format is not Format.CSV:
        return read_unit(unit, stores, _ignore)
    # Its columns are found with its rows.
    reading = UnitReading(stores.schema(unit.job).accepted, unit, _ignore)
    reading.begin(unit.piece.name, noun="row")
    with suppress(LoadError):
        named_type(reading)
    return reading


def _ignore(_type: TypeKey, _rows: pa.Table, _numbers: Numbers) -> None:
    """There are no rows."""
