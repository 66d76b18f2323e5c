"""The task that reads back, from what a unit wrote, the rows that share a wanted hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.columns import SOURCE_COLUMN, build_table_shape
from omnigraph.execution.hashing import Hashes
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.pins import Pin, Staged
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.hashes import HashFile, are_among, read_hashes
from omnigraph.writers.bulk.notes import write_task_rows
from omnigraph.writers.bulk.probing import compute_row_hashes
from omnigraph.writers.bulk.stores import Stores, get_stores
from omnigraph.writers.bulk.units import LoadJob
from omnigraph.writers.bulk.writing import (
    IDS,
    SOURCES,
    StagedRows,
    ends_name_of,
    read_row_numbers,
    tuples_name_of,
)
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.validate.groups import UniqueGroup, groups_of
from omnigraph.writers.validate.references import ends_of

# The number of a row in its unit, and the unit.
NUMBER: Final = "@number"
SPLIT: Final = "@unit"
_ROW: Final = "@row"


@dataclass(frozen=True, slots=True)
class FetchTask:
    """A question to a unit: its rows of a type that share one of the wanted hashes, by name.

    `pin` is a version that nobody sees, in which the staged rows can be read.
    """

    job: LoadJob
    split: int
    type_key: TypeKey
    portions: tuple[StagedRows, ...]
    pin: Pin
    wanted: Mapping[str, HashFile]


def fetch_suspect_rows(question: FetchTask) -> str | None:
    """The path of an object with the rows: their columns that rules compare, unit and number."""
    stores = get_stores(question.job.location)
    wanted = [
        (hashed, read_hashes(stores.objects, [file]))
        for name, file in question.wanted.items()
        for hashed in _resolve_hash_name(question, stores, name)
    ]
    found = []
    for portion in question.portions:
        rows = _read_compared_rows(question, portion, stores)
        is_wanted = np.zeros(rows.num_rows, np.bool_)
        for hashed, hashes in wanted:
            is_wanted |= _match_hashes(rows, hashed, hashes)
        if is_wanted.any():
            found.append(rows.filter(pa.array(is_wanted)))
    if not found:
        return None
    return write_task_rows(stores.objects, question.job.folder, pa.concat_tables(found))


def list_compared_columns(question: FetchTask, stores: Stores) -> list[str]:
    """The columns that rules compare between rows: the id, ends, keys and unique members."""
    accepted = stores.get_schema(question.job).accepted
    type_, shape = (
        type_of(accepted, question.type_key),
        build_table_shape(accepted, question.type_key),
    )
    ends = list(ends_of(type_)) if isinstance(type_, EdgeType) else []
    grouped = [column for group in groups_of(shape, type_) for column in group.columns]
    return list(dict.fromkeys([ID_COLUMN, *ends, *shape.key.values(), *grouped]))


def _read_compared_rows(question: FetchTask, portion: StagedRows, stores: Stores) -> pa.Table:
    table = stores.tables.open(question.pin)
    files = Staged.from_json(portion.staged).list_files
    rows = table.scan_files(files, columns=list_compared_columns(question, stores))
    count = rows.num_rows
    numbers = pa.array(read_row_numbers(stores, portion))
    rows = rows.append_column(SPLIT, pa.array(np.full(count, question.split)))
    return rows.append_column(NUMBER, numbers)


def _resolve_hash_name(question: FetchTask, stores: Stores, name: str) -> list[str | UniqueGroup]:
    """What a name of hashes stands for in the rows of a type."""
    if name == IDS:
        return [ID_COLUMN]
    if name == SOURCES:
        return [SOURCE_COLUMN]
    accepted = stores.get_schema(question.job).accepted
    type_ = type_of(accepted, question.type_key)
    shape = build_table_shape(accepted, question.type_key)
    ends = ends_of(type_) if isinstance(type_, EdgeType) else {}
    columns: list[str | UniqueGroup] = [
        column for column, node_key in ends.items() if ends_name_of(node_key) == name
    ]
    return columns + [group for group in groups_of(shape, type_) if tuples_name_of(group) == name]


def _match_hashes(
    rows: pa.Table, hashed: str | UniqueGroup, wanted: Hashes
) -> npt.NDArray[np.bool_]:
    if isinstance(hashed, str):
        return are_among(compute_row_hashes(rows, hashed), wanted)
    numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    bound = hashed.filter_bound_rows(numbered)
    found = np.zeros(rows.num_rows, np.bool_)
    found[bound[_ROW].to_numpy()[are_among(compute_row_hashes(bound, hashed), wanted)]] = True
    return found
