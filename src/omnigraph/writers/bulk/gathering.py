"""The task that reads back, from what a unit wrote, the rows that share a wanted hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.columns import SOURCE_COLUMN, table_shape
from omnigraph.execution.hashing import Hashes
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.pins import Pin, Staged
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.hashes import HashFile, are_among, read_all
from omnigraph.writers.bulk.notes import write_rows
from omnigraph.writers.bulk.probing import row_hashes
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.units import Job
from omnigraph.writers.bulk.writing import (
    IDS,
    SOURCES,
    Portion,
    ends_at,
    read_numbers,
    tuples_of,
)
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.validate.groups import Group, groups_of
from omnigraph.writers.validate.references import ends_of

# The number of a row in its unit, and the unit.
NUMBER: Final = "@number"
UNIT: Final = "@unit"
_ROW: Final = "@row"


@dataclass(frozen=True, slots=True)
class Gather:
    """A question to a unit: its rows of a type that share one of the wanted hashes, by name.

    `pin` is a version that nobody sees, in which the staged rows can be read.
    """

    job: Job
    unit: int
    type_key: TypeKey
    portions: tuple[Portion, ...]
    pin: Pin
    wanted: Mapping[str, HashFile]


def gather(question: Gather) -> str | None:
    """The path of an object with the rows: their columns that rules compare, unit and number."""
    stores = stores_of(question.job.place)
    wanted = [
        (hashed, read_all(stores.notes, [file]))
        for name, file in question.wanted.items()
        for hashed in _hashed(question, stores, name)
    ]
    found = []
    for portion in question.portions:
        rows = _compared_rows(question, portion, stores)
        is_wanted = np.zeros(rows.num_rows, np.bool_)
        for hashed, hashes in wanted:
            is_wanted |= _sharing(rows, hashed, hashes)
        if is_wanted.any():
            found.append(rows.filter(pa.array(is_wanted)))
    if not found:
        return None
    return write_rows(stores.notes, question.job.folder, pa.concat_tables(found))


def compared_columns(question: Gather, stores: Stores) -> list[str]:
    """The columns that rules compare between rows: the id, ends, keys and unique members."""
    accepted = stores.schema(question.job).accepted
    type_, shape = type_of(accepted, question.type_key), table_shape(accepted, question.type_key)
    ends = list(ends_of(type_)) if isinstance(type_, EdgeType) else []
    grouped = [column for group in groups_of(shape, type_) for column in group.columns]
    return list(dict.fromkeys([ID_COLUMN, *ends, *shape.key.values(), *grouped]))


def _compared_rows(question: Gather, portion: Portion, stores: Stores) -> pa.Table:
    table = stores.tables.open(question.pin)
    files = Staged.from_json(portion.staged).files
    rows = table.rows_of_files(files, columns=compared_columns(question, stores))
    count = rows.num_rows
    numbers = pa.array(read_numbers(stores, portion))
    rows = rows.append_column(UNIT, pa.array(np.full(count, question.unit)))
    return rows.append_column(NUMBER, numbers)


def _hashed(question: Gather, stores: Stores, name: str) -> list[str | Group]:
    """What a name of hashes stands for in the rows of a type."""
    if name == IDS:
        return [ID_COLUMN]
    if name == SOURCES:
        return [SOURCE_COLUMN]
    accepted = stores.schema(question.job).accepted
    type_ = type_of(accepted, question.type_key)
    shape = table_shape(accepted, question.type_key)
    ends = ends_of(type_) if isinstance(type_, EdgeType) else {}
    columns: list[str | Group] = [
        column for column, node_key in ends.items() if ends_at(node_key) == name
    ]
    return columns + [group for group in groups_of(shape, type_) if tuples_of(group) == name]


def _sharing(rows: pa.Table, hashed: str | Group, wanted: Hashes) -> npt.NDArray[np.bool_]:
    if isinstance(hashed, str):
        return are_among(row_hashes(rows, hashed), wanted)
    numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    bound = hashed.bound_rows(numbered)
    found = np.zeros(rows.num_rows, np.bool_)
    found[bound[_ROW].to_numpy()[are_among(row_hashes(bound, hashed), wanted)]] = True
    return found
