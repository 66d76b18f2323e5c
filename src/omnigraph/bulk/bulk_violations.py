"""Suspected rows judged by their texts, in the words of every other write.

The rows that share a suspected hash are few. They are read back, and examined by the rules that
validate any change, with all that those rules ask of the other rows of the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.constraint_checks import ConstraintCheckResult
from omnigraph.bulk.hash_files import (
    NO_HASHES,
    HashFile,
    read_hashes,
    union_hashes,
    write_hashes,
)
from omnigraph.bulk.key_join import compute_row_hashes
from omnigraph.bulk.split_writer import (
    IDS,
    SOURCES,
    StagedRows,
    ends_name_of,
    read_row_numbers,
    tuples_name_of,
)
from omnigraph.bulk.splits import LoadJob, Stores, get_stores
from omnigraph.bulk.staged_load import StagedLoad
from omnigraph.bulk.task_runner import Runner
from omnigraph.bulk.task_tracking import read_task_rows, write_task_rows
from omnigraph.errors import KeyConflictError, Violation
from omnigraph.rows.columns import SOURCE_COLUMN, build_table_shape
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.sorted_search import are_among
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import NO_IDS, TypeChange, WriteMode
from omnigraph.writers.inputs.required_values import type_of
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.key_violations import build_duplicate_id, build_duplicate_key
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.validate.cardinality_rule import count_edges
from omnigraph.writers.validate.findings import CheckStage, Positions, RuleSubject
from omnigraph.writers.validate.image_after import ImageAfter
from omnigraph.writers.validate.reference_rule import build_dangling_finding, ends_of
from omnigraph.writers.validate.unique_groups import UniqueGroup, groups_of
from omnigraph.writers.validate.uniqueness_rule import (
    build_tuple_violation,
    encode_tuples,
    find_conflicting_rows,
    match_codes,
    select_late_rows,
)

# Suspected hashes of one name that are examined; a load with more of them is refused anyway.
SUSPECTS_MAX: Final = 100_000
_MODES: Final = {
    LoadMode.OVERWRITE: WriteMode.OVERWRITE,
    LoadMode.APPEND: WriteMode.INSERT,
    LoadMode.MERGE: WriteMode.UPSERT,
}
_EXEMPT: Final = -1

# The unit of what no record of the load can be blamed for.
NO_SPLIT: Final = -1

_REJECTED: Final = "its record was rejected"

# The number of a row in its unit, and the unit.
NUMBER: Final = "@number"
SPLIT: Final = "@unit"
_ROW: Final = "@row"


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be written: the unit, the number in it, and why.

    `missing_node` is the node type and the id that an edge needs and that does not exist; `earlier`
    the split and the number of the row that has the same id.
    """

    stage: CheckStage
    split: int
    number: int
    violation: Violation
    missing_node: tuple[str, str] | None = None
    earlier: tuple[int, int] | None = None


def add_rejected_reason(judged: RejectedRow) -> RejectedRow:
    """An edge that lacks a node, because the record of that was rejected."""
    violation = judged.violation
    message = f"{violation.message}: {_REJECTED}"
    return replace(judged, violation=replace(violation, message=message))


@dataclass
class ValidationResult:
    """All rows that cannot be written, and those that a later record of their type replaces.

    `unseen` is how many suspected hashes were not examined.
    """

    rejected: list[RejectedRow] = field(default_factory=list)
    replaced: list[tuple[TypeKey, int, int]] = field(default_factory=list)
    unchecked: int = 0


@dataclass(frozen=True)
class Validation:
    """What judging needs; `is_complete` asks for every row to leave out, not for one per rule."""

    load: StagedLoad
    view: View
    keys: KeyCache
    runner: Runner
    is_complete: bool


def validate_suspects(examined: ConstraintCheckResult, validation: Validation) -> ValidationResult:
    """Which suspected rows are wrong indeed, and what is wrong with them."""
    judgement = ValidationResult()
    wanted = _select_hashes(examined, judgement)
    gathered = _run_fetch_tasks(wanted, validation)
    change = {
        type_key: _build_change(gathered.get(type_key), type_key, validation)
        for type_key in validation.load.list_types(validation.view)
    }
    judges = {
        type_key: _TypeValidator(validation, examined, type_key, rows)
        for type_key, rows in gathered.items()
    }
    for type_key, judge in judges.items():
        judgement.rejected += judge.check_ids()
        judgement.replaced += [(type_key, *key) for key in judge.replaced]
        change[type_key] = judge.build_change()
    image = ImageAfter(change, CommittedState(validation.view, validation.keys, change))
    for judge in judges.values():
        judgement.rejected += judge.check_rules(image)
    return judgement


def _select_hashes(
    examined: ConstraintCheckResult, judgement: ValidationResult
) -> dict[TypeKey, dict[str, Hashes]]:
    wanted: dict[TypeKey, dict[str, Hashes]] = {}
    for type_key, by_name in examined.suspects.items():
        for name, hashes in by_name.items():
            judgement.unchecked += max(len(hashes) - SUSPECTS_MAX, 0)
            wanted.setdefault(type_key, {})[name] = hashes[:SUSPECTS_MAX]
    if wanted:
        for type_key, hashes in examined.required_ids.items():
            of_type = wanted.setdefault(type_key, {})
            of_type[IDS] = union_hashes([of_type.get(IDS, NO_HASHES), hashes])
    return wanted


def _run_fetch_tasks(
    wanted: dict[TypeKey, dict[str, Hashes]], validation: Validation
) -> dict[TypeKey, pa.Table]:
    """The rows that share a wanted hash, in the order of the input."""
    load = validation.load
    notes = get_stores(load.job.location).objects
    questions: list[FetchTask] = []
    for type_key, by_name in wanted.items():
        if not load.count_rows(type_key):
            continue
        files = {
            name: write_hashes(notes, load.job.folder, [hashes], parts=1, is_sorted=True)
            for name, hashes in by_name.items()
        }
        version = load.build_version(type_key)
        for number, written in enumerate(load.results):
            # Without the hashes, which are not asked for: every task is sent all questions.
            portions = tuple(
                replace(portion, hashes={}) for portion in written.types.get(str(type_key), ())
            )
            if portions:
                questions.append(FetchTask(load.job, number, type_key, portions, version, files))
    answers = (
        validation.runner.run(questions, fetch_suspect_rows, stage="explain") if questions else []
    )
    found: dict[TypeKey, list[pa.Table]] = {}
    for question, path in zip(questions, answers, strict=True):
        if path is not None:
            found.setdefault(question.type_key, []).append(read_task_rows(notes, path))
    order = [type_key for type_key in validation.view.types if type_key in found]
    return {type_key: pa.concat_tables(found[type_key]).combine_chunks() for type_key in order}


def _build_change(rows: pa.Table | None, type_key: TypeKey, validation: Validation) -> TypeChange:
    shape, mode = validation.view.get_shape(type_key), _MODES[validation.load.job.mode]
    if rows is None:
        return TypeChange(shape, mode, shape.schema.empty_table(), NO_IDS)
    units, numbers = rows[SPLIT].to_numpy(), rows[NUMBER].to_numpy()
    origins = validation.load.locations.build_origins(units, numbers)
    own = rows.select([name for name in rows.column_names if name not in (SPLIT, NUMBER)])
    return TypeChange(shape, mode, own, NO_IDS, origins=origins)


class _TypeValidator:
    """The suspected rows of one type."""

    def __init__(
        self,
        validation: Validation,
        examined: ConstraintCheckResult,
        type_key: TypeKey,
        rows: pa.Table,
    ) -> None:
        self._validation = validation
        self._examined = examined
        self._type_key = type_key
        self._type = validation.view.types[type_key]
        self._rows = rows
        self._is_kept = np.ones(rows.num_rows, np.bool_)
        is_keyless = not validation.view.get_shape(type_key).key
        self._may_repeat = is_keyless and validation.load.job.mode is LoadMode.MERGE
        self.replaced: list[tuple[int, int]] = []

    def check_ids(self) -> Iterator[RejectedRow]:
        """Ids that several rows have, and ids that an append meets in the table."""
        yield from self._check_repeated_ids()
        copies = self._examined.copies.get(self._type_key)
        if copies is None or self._validation.load.job.mode is not LoadMode.APPEND:
            return
        is_there = pc.is_in(self._rows[ID_COLUMN], value_set=copies[ID_COLUMN].combine_chunks())
        for row in np.flatnonzero(is_there.to_numpy()).tolist():
            entity_id, place = self._rows[ID_COLUMN][row].as_py(), self._location_of(row)
            violation = KeyConflictError.build_violation(self._type_key.name, entity_id, place)
            yield self._reject_row(CheckStage.EXISTS, row, violation)

    def build_change(self) -> TypeChange:
        """The rows as the rules see them: of several with one id, the one that counts."""
        kept = self._rows.filter(pa.array(self._is_kept))
        return _build_change(kept, self._type_key, self._validation)

    def check_rules(self, image: ImageAfter) -> list[RejectedRow]:
        """What the rules of the schema say of the rows."""
        change = image.change[self._type_key]
        subject = RuleSubject(self._type_key, self._type, change)
        found: list[RejectedRow] = []
        for group in groups_of(change.shape, self._type):
            if not group.has_key and self._type.constraints.uniques:
                found += self._check_unique_group(subject, group, image)
        if isinstance(self._type, EdgeType):
            found += self._check_ends(subject, self._type)
            found += self._check_cardinality(subject, image)
        return found

    def _check_repeated_ids(self) -> Iterator[RejectedRow]:
        ids = self._rows[ID_COLUMN].combine_chunks()
        codes = np.asarray(ids.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)
        places = np.arange(len(codes))
        counting = places[::-1] if self._may_repeat else places
        # The first row of each id counts, or the last one where a later record replaces it.
        _, found = np.unique(codes[counting], return_index=True)
        counts = counting[found][codes]
        others = np.flatnonzero(counts != places)
        self._is_kept[others] = False
        if self._may_repeat:
            self.replaced = [self._key_of(row) for row in others.tolist()]
            return
        if not self._validation.is_complete:
            _, firsts = np.unique(codes[others], return_index=True)
            others = np.sort(others[firsts])
        for row in others.tolist():
            first = int(counts[row])
            violation = self._build_duplicate_violation(row, first)
            rejected = self._reject_row(CheckStage.DUPLICATE, row, violation)
            yield replace(rejected, earlier=self._key_of(first))

    def _build_duplicate_violation(self, row: int, first: int) -> Violation:
        places = (self._location_of(first), self._location_of(row))
        shape = self._validation.view.get_shape(self._type_key)
        if shape.key:
            return build_duplicate_key(self._type, shape, self._rows.slice(row, 1), places=places)
        given = self._rows[ID_COLUMN][row].as_py()
        return build_duplicate_id(self._type_key.name, given, places=places)

    def _check_unique_group(
        self, subject: RuleSubject, group: UniqueGroup, image: ImageAfter
    ) -> Iterator[RejectedRow]:
        """Tuples that several records of the load have, or a committed entity keeps."""
        change = _build_change(self._select_unique_scope(), self._type_key, self._validation)
        scope = replace(subject, change=change)
        codes, kinds = encode_tuples([change.rows], group.columns)
        is_shared = np.bincount(codes[codes != _EXEMPT], minlength=kinds) > 1
        is_reported = match_codes(codes, is_shared)
        inside = select_late_rows(codes, is_shared)
        if self._validation.is_complete:
            holding = np.flatnonzero(is_reported)
            _, firsts = np.unique(codes[holding], return_index=True)
            inside = np.delete(holding, firsts)
        held = np.empty(0, np.int64)
        if image.keeps_committed(self._type_key):
            held = find_conflicting_rows(scope, group, image)
            held = held if self._validation.is_complete else held[~is_reported[held]]
        rows = self._select_unique_scope()
        for row in dict.fromkeys([*inside.tolist(), *held.tolist()]):
            violation = build_tuple_violation(scope, group, change.rows, row)
            unit, number = rows[SPLIT][row].as_py(), rows[NUMBER][row].as_py()
            yield RejectedRow(CheckStage.GRAPH, unit, number, violation)

    def _select_unique_scope(self) -> pa.Table:
        """Records that a later one replaces count too; those with a key of another one do not."""
        if self._may_repeat:
            return self._rows
        return self._rows.filter(pa.array(self._is_kept))

    def _check_ends(self, subject: RuleSubject, type_: EdgeType) -> Iterator[RejectedRow]:
        suspects = self._examined.suspects.get(self._type_key, {})
        scope = replace(subject, change=_build_change(self._rows, self._type_key, self._validation))
        for column, node_key in ends_of(type_).items():
            missing = suspects.get(ends_name_of(node_key), NO_HASHES)
            # No row has the hash, so no row has the id.
            is_missing = are_among(hash_any_texts(self._rows[column]), missing)
            found = build_dangling_finding(scope, column, node_key.name, np.flatnonzero(is_missing))
            for row in found.rows.tolist():
                lacks = (node_key.name, self._rows[column][row].as_py())
                yield replace(
                    self._reject_row(CheckStage.GRAPH, row, found.build_violation(row)),
                    missing_node=lacks,
                )

    def _check_cardinality(self, subject: RuleSubject, image: ImageAfter) -> Iterator[RejectedRow]:
        suspects = self._examined.suspects.get(self._type_key, {})
        if SOURCES not in suspects:
            return
        found = count_edges(subject, image)
        assert found is not None, "only bounded types are counted"
        kept = np.flatnonzero(self._is_kept)
        sources = subject.change.rows[SOURCE_COLUMN]
        for place in np.flatnonzero(found.is_bad).tolist():
            name = found.sources[place]
            is_suspected = are_among(hash_any_texts(pa.array([name.as_py()])), suspects[SOURCES])
            if not is_suspected.all():
                continue
            own = kept[np.flatnonzero(pc.equal(sources, name).to_numpy())]
            if not len(own):
                yield RejectedRow(
                    CheckStage.GRAPH, NO_SPLIT, 0, found.build_violation(subject, place)
                )
            for row in self._select_excess(
                own, int(found.counts[place]), found.bounds.maximum
            ).tolist():
                yield self._reject_row(CheckStage.GRAPH, row, found.build_violation(subject, place))

    def _select_excess(self, own: Positions, count: int, maximum: int | None) -> Positions:
        """The edges of a source to leave out; one of them stands for all if not all are asked."""
        if not self._validation.is_complete:
            return own[:1]
        return own[-(count - maximum) :] if maximum is not None and count > maximum else own

    def _reject_row(self, step: CheckStage, row: int, violation: Violation) -> RejectedRow:
        unit, number = self._key_of(row)
        return RejectedRow(step, unit, number, violation)

    def _key_of(self, row: int) -> tuple[int, int]:
        return self._rows[SPLIT][row].as_py(), self._rows[NUMBER][row].as_py()

    def _location_of(self, row: int) -> str:
        return self._validation.load.locations.location_of(*self._key_of(row))


@dataclass(frozen=True, slots=True)
class FetchTask:
    """A question to a unit: its rows of a type that share one of the wanted hashes, by name.

    `pin` is a version that is not visible, in which the staged rows can be read.
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
