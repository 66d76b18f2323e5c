"""Loads: rows by type become a change of the graph, with the id of every entity.

In: an input and a mode. Out: one change per type with rows. Guarantee: required values are there,
ids are those that keys derive, no id is written twice (of many rows that is still to be asked).
The other rules of the schema are checked with the change, against what is committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import (
    VIOLATIONS_SHOWN_MAX,
    LoadError,
    UnusableKeyError,
    WriteRefusedError,
    format_violations,
)
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.entity_ids import compute_entity_ids, format_canonical_texts, generate_ids
from omnigraph.rows.hashing import are_distinct
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import INTEGER_RANGES, PropertyType, Scalar
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.default_values import DefaultValues
from omnigraph.writers.graph_change import (
    NO_COPIES,
    NO_IDS,
    AbsentRows,
    GraphChange,
    TypeChange,
    WriteMode,
)
from omnigraph.writers.inputs.coerced_columns import parse_dates, parse_datetimes
from omnigraph.writers.inputs.input_rows import Dialect, FileOrigins, Input
from omnigraph.writers.inputs.required_values import (
    OrderedViolation,
    build_load_error,
    find_missing_values,
    type_of,
)
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer
from omnigraph.writers.key_violations import (
    ID_AMBIGUOUS,
    ID_MISMATCH,
    OWN_ID_HINT,
    build_duplicate_id,
    build_duplicate_key,
    build_id_mismatch,
    build_unusable_key,
)
from omnigraph.writers.row_staging import AHEAD_ROWS_MIN

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Mask = np.ndarray[Any, np.dtype[np.bool_]]


class LoadMode(Enum):
    """What a load does to the entities that are there."""

    # Every type of the input is replaced by its records.
    OVERWRITE = "overwrite"
    # An id that exists is a conflict.
    APPEND = "append"
    # An id that exists is replaced; what a table has no column for keeps its value.
    MERGE = "merge"
    # The same, and a record of any kind leaves what it does not mention as it is.
    PATCH = "patch"

    @property
    def keeps_entities(self) -> bool:
        """Whether an id that exists is changed, and no entity ends."""
        return self in (LoadMode.MERGE, LoadMode.PATCH)


_WRITE_MODES = {
    LoadMode.OVERWRITE: WriteMode.OVERWRITE,
    LoadMode.APPEND: WriteMode.INSERT,
    LoadMode.MERGE: WriteMode.UPSERT,
    LoadMode.PATCH: WriteMode.UPSERT,
}


@dataclass(frozen=True, slots=True)
class LoadChange:
    """A change, and how many records of each type it came from."""

    change: GraphChange
    nodes: Mapping[str, int]
    edges: Mapping[str, int]


def build_load_change(records: Input, mode: LoadMode, *, fills_vectors: bool = False) -> LoadChange:
    """What a load does to the graph; raises `WriteRefusedError` for wrong records.

    With `fills_vectors`, vectors that come from texts may be missing: they are filled before the
    change is checked.
    """
    missing, count = find_missing_values(
        records.types, records.accepted, fills_vectors=fills_vectors
    )
    if missing:
        raise build_load_error(missing, count)
    renames = LegacyIds()
    change: dict[TypeKey, TypeChange] = {}
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    for type_key, incoming in records.types.items():
        if incoming.rows.num_rows:
            counts = edges if type_key.kind is TypeKind.EDGE else nodes
            counts[type_key.name] = incoming.rows.num_rows
        elif mode is not LoadMode.OVERWRITE:
            continue
        type_ = type_of(records.accepted, type_key)
        rows = _with_renamed_ends(incoming.rows, type_, renames)
        absent = incoming.absent if mode.keeps_entities else {}
        loading = _TypeLoader(type_, incoming.shape, incoming.origins, mode, absent, records.now)
        if incoming.shape.key:
            is_legacy = records.dialect is Dialect.COMPATIBLE and isinstance(type_, NodeType)
            change[type_key] = loading.build_keyed(rows, renames if is_legacy else None)
        else:
            change[type_key] = loading.build_keyless(rows)
    return LoadChange(change, nodes, edges)


def _with_renamed_ends(rows: pa.Table, type_: NodeType | EdgeType, renames: LegacyIds) -> pa.Table:
    """The rows of an edge type at the ids that the nodes of this load now have."""
    if isinstance(type_, NodeType):
        return rows
    for column, node_type in ((SOURCE_COLUMN, type_.source), (TARGET_COLUMN, type_.target)):
        place = rows.schema.get_field_index(column)
        ends = renames.rename_ends(rows[column], node_type)
        rows = rows.set_column(place, rows.schema.field(place), ends)
    return rows


@dataclass(frozen=True, slots=True)
class _TypeLoader:
    """One type of a load."""

    type_: NodeType | EdgeType
    shape: TableShape
    origins: FileOrigins
    mode: LoadMode
    absent: AbsentRows
    now: int | None

    def build_keyed(self, rows: pa.Table, renames: LegacyIds | None) -> TypeChange:
        """Entities whose ids derive from their keys; a given id may only repeat it."""
        try:
            ids = compute_entity_ids(rows, self.shape)
        except UnusableKeyError as failure:
            raise self._build_key_error(failure) from failure
        self._require_agreement(rows, ids, renames)
        change = self._build_change(replace_ids(rows, ids, self.shape), _WRITE_MODES[self.mode])
        if len(ids) >= AHEAD_ROWS_MIN:
            return replace(change, require_distinct=lambda: self._require_distinct(rows, ids))
        self._require_distinct(rows, ids)
        return change

    def _require_distinct(self, rows: pa.Table, ids: pa.ChunkedArray) -> None:
        if (codes := _encode_repeated(ids)) is not None:
            raise self._build_duplicate_key_error(rows, ids, codes)

    def build_keyless(self, rows: pa.Table) -> TypeChange:
        """Entities under the ids they came with, or fresh ones."""
        given = rows[ID_COLUMN]
        if given.null_count == len(given) and self.mode is not LoadMode.OVERWRITE:
            fresh = pa.chunked_array([generate_ids(len(given))])
            # The ids are new: a look-up in the table would find nothing.
            made = replace_ids(rows, fresh, self.shape)
            return self._build_change(made, WriteMode.UPSERT, known=NO_COPIES)
        ids = fill_ids(given)
        made = replace_ids(rows, ids, self.shape)
        codes = _encode_repeated(ids)
        if codes is None:
            return self._build_change(made, _WRITE_MODES[self.mode])
        if self.mode is not LoadMode.MERGE:
            raise self._build_duplicate_id_error(ids, codes)
        last = _select_last_rows(codes)
        return TypeChange(
            shape=self.shape,
            mode=WriteMode.UPSERT,
            rows=made.take(last),
            deleted=NO_IDS,
            batches=(made,),
            origins=self.origins.select_rows(last),
            absent={column: rows[last.to_numpy()] for column, rows in self.absent.items()},
            now=self.now,
        )

    def _build_change(
        self, rows: pa.Table, mode: WriteMode, known: pa.Table | None = None
    ) -> TypeChange:
        absent = self.absent
        if known is not None and absent:
            # Entities that are known to be new have no committed values.
            defaults = DefaultValues.from_type(self.type_, self.shape, self.now)
            rows, absent = defaults.fill_rows(rows, absent), {}
        return TypeChange(
            self.shape,
            mode,
            rows,
            NO_IDS,
            known_copies=known,
            origins=self.origins,
            absent=absent,
            now=self.now,
        )

    def _require_agreement(
        self, rows: pa.Table, ids: pa.ChunkedArray, renames: LegacyIds | None
    ) -> None:
        given = rows[ID_COLUMN]
        if given.null_count == len(given):
            return
        differs = pc.fill_null(pc.not_equal(given, ids), False)
        others = np.flatnonzero(differs.to_numpy())
        if not len(others):
            return
        places = pa.array(others)
        old, new = given.take(places).combine_chunks(), ids.take(places).combine_chunks()
        if renames is None:
            raise self._build_mismatch_error(others, old, new, ID_MISMATCH)
        types = {name: property_.type for name, property_ in self.type_.properties.items()}
        is_legacy = match_key_spellings(old, rows.take(places), self.shape, types)
        if not is_legacy.all():
            wrong = pa.array(~is_legacy)
            raise self._build_mismatch_error(
                others[~is_legacy],
                old.filter(wrong),
                new.filter(wrong),
                ID_MISMATCH,
            )
        ambiguous = renames.add_renames(self.type_.name, old, new)
        if ambiguous.any():
            chosen = pa.array(ambiguous)
            raise self._build_mismatch_error(
                others[ambiguous],
                old.filter(chosen),
                new.filter(chosen),
                ID_AMBIGUOUS,
            )

    def _build_mismatch_error(
        self, rows: Rows, old: pa.Array, new: pa.Array, problem: str
    ) -> LoadError:
        """The error for given ids that cannot stand for what the keys say."""
        found = []
        for place, row in enumerate(rows[:VIOLATIONS_SHOWN_MAX].tolist()):
            violation = build_id_mismatch(
                self.type_.name,
                given=old[place].as_py(),
                derived=new[place].as_py(),
                problem=problem,
                place=self.origins.location_of(row),
            )
            found.append(OrderedViolation(self.origins.order_of(row), violation))
        return build_load_error(found, len(rows))

    def _build_key_error(self, failure: UnusableKeyError) -> LoadError:
        violation = build_unusable_key(
            self.type_.name,
            failure.member,
            failure.value,
            place=self.origins.location_of(failure.row),
        )
        return build_load_error(
            [OrderedViolation(self.origins.order_of(failure.row), violation)], 1
        )

    def _build_duplicate_key_error(
        self, rows: pa.Table, ids: pa.ChunkedArray, codes: Rows
    ) -> WriteRefusedError:
        """The error for keys that several records have."""
        pairs, count = _find_first_pairs(codes)
        made = replace_ids(rows, ids, self.shape)
        violations = [
            build_duplicate_key(
                self.type_,
                self.shape,
                made.slice(second, 1),
                places=(self.origins.location_of(first), self.origins.location_of(second)),
            )
            for first, second in pairs
        ]
        return WriteRefusedError(
            format_violations(violations, count), violations=violations, count=count
        )

    def _build_duplicate_id_error(self, ids: pa.ChunkedArray, codes: Rows) -> WriteRefusedError:
        """The error for given ids that several records have."""
        pairs, count = _find_first_pairs(codes)
        violations = [
            build_duplicate_id(
                self.type_.name,
                ids[second].as_py(),
                places=(self.origins.location_of(first), self.origins.location_of(second)),
            )
            for first, second in pairs
        ]
        return WriteRefusedError(
            format_violations(violations, count),
            violations=violations,
            count=count,
            hint=OWN_ID_HINT,
        )


def replace_ids(rows: pa.Table, ids: pa.ChunkedArray, shape: TableShape) -> pa.Table:
    """Rows under their ids."""
    columns = [ids, *rows.columns[1:]]
    return pa.Table.from_arrays(columns, schema=shape.schema)


def fill_ids(given: pa.ChunkedArray) -> pa.ChunkedArray:
    """The given ids, and fresh ones where there is none."""
    if not given.null_count:
        return given
    if given.null_count == len(given):
        return pa.chunked_array([generate_ids(len(given))], pa.utf8())
    ids = given.combine_chunks()
    return pa.chunked_array(
        [pc.replace_with_mask(ids, ids.is_null(), generate_ids(ids.null_count))]
    )


def _encode_repeated(ids: pa.ChunkedArray) -> Rows | None:
    """A number per row, equal for equal ids; None when all ids differ."""
    if are_distinct(ids):
        return None
    codes = pc.index_in(ids, value_set=pc.unique(ids))
    return np.asarray(codes.to_numpy(), np.int64)


def _select_last_rows(codes: Rows) -> pa.Array:
    """The last row of every number, in the order of rows."""
    _, places = np.unique(codes[::-1], return_index=True)
    return pa.array(np.sort(len(codes) - 1 - places))


def _find_first_pairs(codes: Rows) -> tuple[list[tuple[int, int]], int]:
    """The first two rows of each repeated number, as many as are listed, and how many there are."""
    order = np.argsort(codes, kind="stable")
    is_same = codes[order][1:] == codes[order][:-1]
    is_second = is_same & ~np.concatenate(([False], is_same[:-1]))
    seconds = np.flatnonzero(is_second)
    pairs = np.stack([order[seconds], order[seconds + 1]], axis=1)
    pairs = pairs[np.argsort(pairs[:, 1])][:VIOLATIONS_SHOWN_MAX]
    return [(int(first), int(second)) for first, second in pairs], len(seconds)


class LegacyIds:
    """Which old ids stand for which derived ones, by node type."""

    def __init__(self) -> None:
        self._renames: dict[str, tuple[pa.Array, pa.Array]] = {}

    def add_renames(self, type_name: str, old: pa.Array, new: pa.Array) -> _Mask:
        """Remember old ids and what each stands for; the mask says which stand for several."""
        pairs = pa.table({"old": old, "new": new}).group_by(["old", "new"]).aggregate([])
        times = pairs.group_by("old").aggregate([([], "count_all")])
        ambiguous = times.filter(pc.greater(times["count_all"], 1))["old"]
        self._renames[type_name] = (
            pairs["old"].combine_chunks(),
            pairs["new"].combine_chunks(),
        )
        found = pc.is_in(old, value_set=ambiguous.combine_chunks())
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)

    def rename_ends(self, ends: pa.ChunkedArray, type_name: str) -> pa.ChunkedArray:
        """The ends of edges at a node type, under the ids its nodes now have."""
        if type_name not in self._renames:
            return ends
        old, new = self._renames[type_name]
        places = pc.index_in(ends, value_set=old)
        return pc.coalesce(new.take(places.combine_chunks()), ends)


def match_key_spellings(
    given: pa.Array, rows: pa.Table, shape: TableShape, types: Mapping[str, PropertyType]
) -> _Mask:
    """Which of the given ids are a member of their row's key, in any spelling of its value."""
    spells = np.zeros(len(given), np.bool_)
    for member, column in shape.key.items():
        values = rows[column].combine_chunks()
        spells |= _match_usual_spelling(given, values, types[member])
    odd = np.flatnonzero(~spells)
    # What is left is spelled as no writer spells it, or wrong.
    for member, column in shape.key.items():
        read = make_coercer(types[member], is_strict=True)
        values = _to_integers(rows[column].combine_chunks()).take(pa.array(odd)).to_pylist()
        for row, text, value in zip(
            odd, given.take(pa.array(odd)).to_pylist(), values, strict=True
        ):
            spells[row] |= _is_spelling(text, value, read)
    return spells


def _match_usual_spelling(given: pa.Array, values: pa.Array, type_: PropertyType) -> _Mask:
    spells = pc.equal(given, format_canonical_texts(values))
    if type_.scalar is Scalar.DATE:
        texts = parse_dates(given).values.cast(pa.int32())
        spells = pc.or_(spells, pc.fill_null(pc.equal(texts, _to_integers(values)), False))
    elif type_.scalar in INTEGER_RANGES:
        # Writers pad numbers with zeros; JSON has no such numbers.
        padless = pc.replace_substring_regex(given, "^(-?)0+([0-9])", r"\1\2")
        spells = pc.or_(spells, pc.equal(padless, format_canonical_texts(values)))
    elif type_.scalar is Scalar.DATETIME:
        texts = parse_datetimes(given, is_strict=True).values
        spells = pc.or_(spells, pc.fill_null(pc.equal(texts, _to_integers(values)), False))
    return np.asarray(pc.fill_null(spells, False).to_numpy(zero_copy_only=False), np.bool_)


def _to_integers(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_date64(values.type) else values


def _is_spelling(text: str, value: Any, read: Any) -> bool:
    candidates: list[Any] = [text]
    with suppress(ValueError, RecursionError):
        candidates.append(json.loads(text))
    for candidate in candidates:
        with suppress(MisfitError):
            if read(candidate) == value:
                return True
    return False
