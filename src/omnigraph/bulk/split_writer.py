"""The task that does most of a load: read a unit, check its rows, write them, note their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.hash_files import HashFile, hash_tuples, write_hashes
from omnigraph.bulk.row_checks import IdentifiedRows, RecordProblem, RowChecks
from omnigraph.bulk.split_reader import (
    PORTION_BYTES,
    SplitSink,
    read_split,
    read_split_header,
)
from omnigraph.bulk.splits import Format, InputSplit, Stores, get_stores
from omnigraph.bulk.task_tracking import (
    read_task_object,
    record_staged,
    require_running_load,
    write_note,
)
from omnigraph.changes.row_comparison import compare_columns
from omnigraph.rows.columns import SOURCE_COLUMN, build_table_shape
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.rows.view import table_types_of
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.schema.catalog import Cardinality, EdgeType, NodeType
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.schema_store import StoredSchema
from omnigraph.writers.committed_values import read_values, with_committed_values
from omnigraph.writers.default_values import DefaultValues
from omnigraph.writers.graph_change import AbsentRows, combine_column
from omnigraph.writers.inputs.input_rows import AbsentColumns, Missing
from omnigraph.writers.inputs.row_sink import RowNumbers
from omnigraph.writers.validate.reference_rule import ends_of
from omnigraph.writers.validate.unique_groups import UniqueGroup, groups_of

# The names of hashes: of ids, of sources with all their repetitions, of ends at a node type, and
# of the tuples of a group.
IDS: Final = "ids"
_ENDS: Final = "ends:"
SOURCES: Final = "sources"

# Files that are examined: others that are wrong are found by who reads them.
HEADERS_MAX: Final = 16

# What has one type, which the caller names; of the others, each line names its own.
_TABLE_FORMATS: Final = (Format.PARQUET, Format.ORC, Format.CSV)


def ends_name_of(node_key: TypeKey) -> str:
    """The name of the hashes of ends at a node type."""
    return f"{_ENDS}{node_key}"


def tuples_name_of(group: UniqueGroup) -> str:
    """The name of the hashes of the tuples of a group."""
    return f"tuples:{','.join(group.columns)}"


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of one type that a unit wrote at once: `staged` as a text, and hashes of what they hold.

    `numbers` are those of the rows: the path of an object, or the first of consecutive ones.
    """

    rows: int
    staged: str
    numbers: str | int
    hashes: Mapping[str, HashFile]


@dataclass(frozen=True, slots=True)
class UnchangedRows:
    """Rows of one type that a unit did not write, because they are committed: hashes of ids."""

    rows: int
    ids: HashFile


@dataclass(frozen=True, slots=True)
class SplitResult:
    """What became of a unit. `lines` is how far the numbers of the next unit are shifted.

    `count` is how many problems there are, of which some are listed. A unit that is not complete
    could not be read to its end. `kept` are the types whose rows hold values of committed ones,
    because the unit has no columns for them: such rows are true of the pinned versions only.
    """

    lines: int
    is_complete: bool
    types: Mapping[str, tuple[StagedRows, ...]]
    problems: tuple[RecordProblem, ...]
    problem_count: int
    patched_types: frozenset[str] = frozenset()
    unchanged: Mapping[str, tuple[UnchangedRows, ...]] = field(default_factory=dict)
    # How many records were mapped to rows.
    records: int = 0


def write_split(unit: InputSplit) -> SplitResult:
    """Read a unit and write its good rows."""
    stores = get_stores(unit.job.location)
    writer = SplitWriter(unit, stores)
    reading = read_split(unit, stores, writer.write_rows, writer.check_rejected_rows)
    return writer.build_result(reading)


class SplitWriter:
    """The types of a unit, each with its writer."""

    def __init__(self, unit: InputSplit, stores: Stores) -> None:
        self._unit = unit
        self._stores = stores
        self._schema = stores.get_schema(unit.job)
        self._types = table_types_of(self._schema.catalog)
        self.writers: dict[TypeKey, _TypeWriter] = {}

    def write_rows(
        self, type_key: TypeKey, rows: pa.Table, numbers: RowNumbers, absent: AbsentColumns, /
    ) -> None:
        """Write the good ones of some rows."""
        self._get_writer(type_key).write(rows, numbers, absent)

    def check_rejected_rows(
        self, type_key: TypeKey, rows: pa.Table, numbers: RowNumbers, /
    ) -> None:
        """Report what else is wrong with refused records."""
        self._get_writer(type_key).checks.check_rejected_rows(rows, numbers)

    def build_result(self, reading: SplitSink, *, records: int = 0) -> SplitResult:
        """What became of the unit when all was read; `records` were, if they were mapped."""
        writers, unit = self.writers, self._unit
        problems = [
            *reading.problems,
            *(problem for writer in writers.values() for problem in writer.checks.problems),
        ]
        left_out = set(unit.excluded)
        listed = [problem for problem in problems if problem.number not in left_out]
        return SplitResult(
            lines=reading.lines,
            is_complete=reading.is_complete,
            types={str(type_key): tuple(writer.portions) for type_key, writer in writers.items()},
            problems=tuple(sorted(listed, key=lambda each: each.number)[: unit.job.problems_max]),
            problem_count=reading.refused
            + sum(writer.checks.count for writer in writers.values())
            - (len(problems) - len(listed)),
            patched_types=frozenset(
                str(type_key) for type_key, writer in writers.items() if writer.keeps
            ),
            unchanged={str(type_key): tuple(each.unchanged) for type_key, each in writers.items()},
            records=records,
        )

    @property
    def accepted(self) -> AcceptedSchema:
        """The schema that the unit is written with."""
        return self._schema.accepted

    def _get_writer(self, type_key: TypeKey) -> _TypeWriter:
        if type_key not in self.writers:
            type_ = self._types[type_key]
            self.writers[type_key] = _TypeWriter(
                self._unit, self._stores, self._schema, type_key, type_
            )
        return self.writers[type_key]


class _TypeWriter:
    """One type of a unit, portion by portion: only one of them is in memory."""

    def __init__(
        self,
        unit: InputSplit,
        stores: Stores,
        schema: StoredSchema,
        type_key: TypeKey,
        type_: NodeType | EdgeType,
    ) -> None:
        self._unit = unit
        self._stores = stores
        self._type_key = type_key
        self._type = type_
        self._shape = build_table_shape(schema.accepted, type_key)
        self.checks = RowChecks(type_key, type_, self._shape, unit.job.problems_max)
        self._left_out = np.array(unit.excluded, np.int64)
        self.portions: list[StagedRows] = []
        self.unchanged: list[UnchangedRows] = []
        # Whether committed values were asked for.
        self.keeps = False

    def write(self, rows: pa.Table, numbers: RowNumbers, absent: AbsentColumns) -> None:
        """Write the good ones of some rows; absent columns keep committed values."""
        if len(self._left_out):
            is_kept = ~np.isin(numbers, self._left_out)
            rows, numbers = rows.filter(pa.array(is_kept)), numbers[is_kept]
        is_patch = self._unit.job.mode.keeps_entities
        found = self._leave_out_missing(self.checks.identify_rows(rows, numbers, absent))
        for each in self._fill_committed_values(found, absent) if is_patch and absent else (found,):
            ready = self.checks.filter_valid(each)
            if is_patch and self._unit.job.skips_unchanged:
                ready = self._drop_unchanged(ready)
            if ready.rows.num_rows:
                self._stage_rows(ready)

    def _leave_out_missing(self, found: IdentifiedRows) -> IdentifiedRows:
        """The rows of entities that exist, if the load patches no others; these may be errors."""
        missing = self._unit.job.terms.missing
        if missing is Missing.INSERT:
            return found
        # Another version of the table may have other entities.
        self.keeps = True
        ids = combine_column(found.rows[ID_COLUMN])
        known = self._stores.tables.open(self._pin).find(ID_COLUMN, ids, columns=[ID_COLUMN])
        is_there = pc.is_in(ids, value_set=combine_column(known[ID_COLUMN]))
        if missing is Missing.ERROR:
            return self.checks.reject_missing(found, is_there)
        kept = np.asarray(is_there)
        return IdentifiedRows(found.rows.filter(is_there), found.numbers[kept], found.is_fresh)

    @property
    def _pin(self) -> Pin:
        return self._unit.job.pins[str(self._type_key)]

    def _fill_committed_values(
        self, found: IdentifiedRows, absent: AbsentColumns
    ) -> Iterator[IdentifiedRows]:
        """Rows with the committed values of absent columns, in parts that fit into memory."""
        self.keeps = True
        rows, table = found.rows, self._stores.tables.open(self._pin)
        copies = table.find(ID_COLUMN, combine_column(rows[ID_COLUMN]))
        everywhere = np.ones(rows.num_rows, np.bool_)
        masks = dict.fromkeys(sorted(absent), everywhere)
        start, unfit = 0, list[tuple[pa.Array, str]]()
        filled = with_committed_values(
            rows, masks, table, copies, spend=_ignore_size, fill_new=partial(self._fill_new, unfit)
        )
        for part in batch_tables(filled):
            end = start + part.num_rows
            ready = IdentifiedRows(part, found.numbers[start:end], found.is_fresh)
            yield self.checks.reject_unfit(ready, unfit)
            start = end

    def _fill_new(
        self, unfit: list[tuple[pa.Array, str]], rows: pa.Table, absent: AbsentRows
    ) -> pa.Table:
        """Rows with the defaults of what new ones lack; the ids of those without one are noted."""
        defaults = DefaultValues.from_type(self._type, self._shape, self._unit.job.terms.now)
        return defaults.fill_rows(
            rows,
            absent,
            reject=lambda mask, name: unfit.append(
                (combine_column(rows[ID_COLUMN].filter(pa.array(mask))), name)
            ),
        )

    def _drop_unchanged(self, ready: IdentifiedRows) -> IdentifiedRows:
        """The rows that are not committed as they are; of the others the ids are noted."""
        if ready.is_fresh or not self._pin.rows:
            return ready
        is_same = find_unchanged_rows(ready.rows, self._stores.tables.open(self._pin))
        if not is_same.any():
            return ready
        self.keeps = True
        same = ready.rows.filter(pa.array(is_same))
        job, hashes = self._unit.job, [hash_any_texts(same[ID_COLUMN])]
        file = write_hashes(
            self._stores.objects, job.folder, hashes, parts=job.parts, is_sorted=True
        )
        self.unchanged.append(UnchangedRows(same.num_rows, file))
        rows = ready.rows.filter(pa.array(~is_same))
        return IdentifiedRows(rows, ready.numbers[~is_same], ready.is_fresh)

    def _stage_rows(self, ready: IdentifiedRows) -> None:
        notes, folder = self._stores.objects, self._unit.job.folder
        require_running_load(notes, folder)
        staged = self._stores.tables.write(self._pin, ready.rows)
        staged = replace(staged, after_sweep=self._unit.job.after_sweep)
        record_staged(notes, folder, staged)
        kept = self._encode_numbers(ready.numbers)
        hashes = self._write_hashes(ready.rows, is_fresh=ready.is_fresh)
        self.portions.append(StagedRows(len(ready.numbers), staged.to_json(), kept, hashes))

    def _encode_numbers(self, numbers: RowNumbers) -> str | int:
        if (np.diff(numbers) == 1).all():
            return int(numbers[0])
        data = numbers.astype(np.int64).tobytes()
        return write_note(self._stores.objects, self._unit.job.folder, data, kind="numbers")

    def _write_hashes(self, rows: pa.Table, *, is_fresh: bool) -> dict[str, HashFile]:
        """The hashes of what other rows, written anywhere, are compared with, in files."""
        job, notes = self._unit.job, self._stores.objects
        return {
            name: write_hashes(
                notes, job.folder, found, parts=job.parts, is_sorted=not name.startswith(_ENDS)
            )
            for name, found in self._compute_hashes(rows, is_fresh=is_fresh).items()
        }

    def _compute_hashes(self, rows: pa.Table, *, is_fresh: bool) -> dict[str, list[Hashes]]:
        type_ = self._type
        found: dict[str, list[Hashes]] = {}
        if not is_fresh:
            found[IDS] = [hash_any_texts(rows[ID_COLUMN])]
        if isinstance(type_, EdgeType):
            ends = {column: hash_any_texts(rows[column]) for column in ends_of(type_)}
            for column, node_key in ends_of(type_).items():
                found.setdefault(ends_name_of(node_key), []).append(ends[column])
            if type_.cardinality != Cardinality():
                found[SOURCES] = [ends[SOURCE_COLUMN]]
        if type_.constraints.uniques:
            for group in groups_of(self._shape, type_):
                if not group.has_key:
                    found[tuples_name_of(group)] = [
                        hash_tuples(group.format_texts(group.select_bound_columns(rows)))
                    ]
        return found


def find_unchanged_rows(rows: pa.Table, table: Table) -> npt.NDArray[np.bool_]:
    """Which rows are committed with the very same values; of rows with blobs none is compared."""
    is_same = np.zeros(rows.num_rows, np.bool_)
    columns = [name for name in rows.column_names if name != ID_COLUMN]
    if any(is_blob(table.schema.field(name)) for name in columns):
        return is_same
    ids = combine_column(rows[ID_COLUMN])
    copies = table.find(ID_COLUMN, ids)
    places = pc.index_in(ids, value_set=combine_column(copies[ID_COLUMN]))
    matched = np.flatnonzero(np.asarray(places.is_valid()))
    row_ids = combine_column(copies[ROW_ID]).take(places.drop_null())
    start = 0
    for part in read_values(table, row_ids, columns, spend=_ignore_size):
        found = matched[start : start + part.num_rows]
        own, differs = rows.take(pa.array(found)), np.zeros(part.num_rows, np.bool_)
        for name in columns:
            differs |= compare_columns(own[name], part[name].cast(own[name].type))
        is_same[found] = ~differs
        start += part.num_rows
    return is_same


def batch_tables(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables put together until they are as many bytes as may wait in memory."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(part)
        if sum(each.nbytes for each in waiting) >= PORTION_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _ignore_size(_size: int) -> None:
    """Portions bound what is in memory."""


def read_row_numbers(stores: Stores, portion: StagedRows) -> RowNumbers:
    """The numbers of the rows of a portion in their unit."""
    if isinstance(portion.numbers, int):
        return np.arange(portion.numbers, portion.numbers + portion.rows, dtype=np.int64)
    return np.frombuffer(read_task_object(stores.objects, portion.numbers), np.int64)


def check_headers(units: Sequence[InputSplit]) -> list[tuple[InputSplit, SplitResult]]:
    """The first unit of each table file whose type or columns cannot be those of its rows."""
    found: list[tuple[InputSplit, SplitResult]] = []
    for unit in _select_header_splits(units):
        reading = read_split_header(unit, get_stores(unit.job.location))
        if reading.problems:
            listed = tuple(reading.problems)
            wrong = SplitResult(
                0, is_complete=False, types={}, problems=listed, problem_count=reading.refused
            )
            found.append((replace(unit, number=len(found)), wrong))
    return found


def _select_header_splits(units: Sequence[InputSplit]) -> list[InputSplit]:
    """The first units of some table files."""
    heads: dict[tuple[str, str | None], InputSplit] = {}
    for unit in units:
        found = unit.file_range
        # Lines of records that name their types have nothing in common.
        has_header = found.format in _TABLE_FORMATS or (
            found.format is Format.JSONL and found.type is not None
        )
        if has_header and found.mapped is None and len(heads) < HEADERS_MAX:
            heads.setdefault((found.name, found.type), unit)
    return list(heads.values())
