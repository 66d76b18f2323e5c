"""The changes between two views: candidates whose images differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.change_candidates import find_candidates
from omnigraph.changes.row_comparison import Mask, compare_rows, compare_stored_rows
from omnigraph.changes.rows_by_id import fetch_keys, sort_by_id
from omnigraph.changes.type_pairs import TypePair, pair_types
from omnigraph.errors import HistoryGoneError
from omnigraph.execution.type_scan import build_rows_schema, list_physical_columns
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.json_encoding import TEXT, concatenate_texts, quote_json_strings
from omnigraph.rows.json_export import encode_properties
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.first_parents import is_on_line
from omnigraph.versioning.lineage import Lineage

# Of so many candidates the columns to be compared are read with the first look.
READ_ALONG_MAX: Final = 1024
_KEYS: Final = pa.schema([pa.field(ID_COLUMN, pa.utf8()), pa.field(ROW_ID, pa.uint64())])
Json: TypeAlias = Any  # Any: whatever `json.loads` gives


class Op(IntEnum):
    """What happened to an entity, in the order in which changes of one entity are listed."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2

    @property
    def word(self) -> str:
        """What documents call it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted; None means all. A type counts by its old and its new name."""

    kinds: frozenset[TypeKind] | None = None
    types: frozenset[str] | None = None
    ops: frozenset[Op] | None = None

    def accepts_type(self, pair: TypePair) -> bool:
        """Whether changes of a type may be wanted."""
        names = {key.name for key in (pair.old, pair.new) if key is not None}
        is_kind = self.kinds is None or pair.kind in self.kinds
        return is_kind and (self.types is None or not names.isdisjoint(self.types))


ALL_CHANGES: Final = ChangeFilter()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entities were inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """How many entities changed."""
        return self.inserted + self.updated + self.deleted

    def to_json(self) -> Mapping[str, int]:
        """The counts by name."""
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}


@dataclass(frozen=True)
class TypeDifference:
    """The entities of one type that changed, in the order of ids.

    `old_rows` and `new_rows` are their row ids in the two tables, null where they are not there.
    Their images are read when they are asked for: slice a large difference first.
    """

    old: View
    new: View
    pair: TypePair
    ids: pa.Array
    ops: npt.NDArray[np.int8]
    old_rows: pa.Array
    new_rows: pa.Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def type_key(self) -> TypeKey:
        """What the type is called now, or was called before it ended."""
        return self.pair.type_key

    @property
    def kind(self) -> TypeKind:
        """Whether its entities are nodes or edges."""
        return self.pair.kind

    @property
    def counts(self) -> Counts:
        """How many entities were inserted, updated and deleted."""
        return Counts(*np.bincount(self.ops, minlength=len(Op)).tolist())

    @cached_property
    def before(self) -> pa.Table:
        """The old rows of updated and deleted entities: physical columns, in the order of ids."""
        return _fetch_rows(self.old, self.pair.old, self.old_rows.drop_null())

    @cached_property
    def after(self) -> pa.Table:
        """The new rows of inserted and updated entities: physical columns, in the order of ids."""
        return _fetch_rows(self.new, self.pair.new, self.new_rows.drop_null())

    def slice(self, start: int, length: int | None = None) -> TypeDifference:
        """A part of it, without its images."""
        stop = len(self) if length is None else min(start + length, len(self))
        return self._take_changes(np.arange(start, max(start, stop)))

    def filter_ops(self, ops: frozenset[Op] | None) -> TypeDifference:
        """The changes of some kinds."""
        if ops is None:
            return self
        return self._take_changes(np.flatnonzero(np.isin(self.ops, [int(op) for op in ops])))

    def _take_changes(self, places: npt.NDArray[np.intp]) -> TypeDifference:
        chosen = pa.array(places)
        return TypeDifference(
            self.old,
            self.new,
            self.pair,
            ids=self.ids.take(chosen),
            ops=self.ops[places],
            old_rows=self.old_rows.take(chosen),
            new_rows=self.new_rows.take(chosen),
        )


def compute_differences(
    old: View, new: View, lineage: Lineage, wanted: ChangeFilter = ALL_CHANGES
) -> Iterator[TypeDifference]:
    """The types with changes: nodes before edges, then by the opaque id of the type."""
    pairs = [pair for pair in pair_types(old, new, lineage) if wanted.accepts_type(pair)]
    is_line = are_copies_shared(old, new, lineage)
    for pair, ids in find_candidates(old, new, lineage, pairs=pairs):
        found = compute_difference(old, new, pair, ids, shares_copies=is_line).filter_ops(
            wanted.ops
        )
        if len(found):
            yield found


def compute_difference(
    old: View, new: View, pair: TypePair, ids: pa.Array, *, shares_copies: bool = False
) -> TypeDifference:
    """Which of some entities of a type are not the same at two views.

    Where copies are shared, an equal row id proves that a row is the same; see
    `are_copies_shared`.
    """
    light = [column for column in pair.columns if not column.is_heavy]
    # Of a few, whatever may be needed is read at once.
    is_few = len(ids) <= READ_ALONG_MAX
    before = _fetch_keys(old, pair.old, ids, [c.old for c in light if c.old] if is_few else [])
    after = _fetch_keys(new, pair.new, ids, [c.new for c in light] if is_few else [])
    in_new = pc.index_in(before[ID_COLUMN], value_set=after[ID_COLUMN])
    is_gone = to_numpy(in_new.is_null())
    is_new = np.ones(after.num_rows, np.bool_)
    is_new[to_numpy(in_new.drop_null())] = False
    # Both are in the order of ids, so those that are in both stand in the same order.
    stayed = before.filter(pa.array(~is_gone)), after.filter(pa.array(~is_new))
    known = compare_rows(*stayed, light) if is_few and pair.old and pair.new else None
    is_changed = _are_changed(old, new, pair, stayed, known=known, shares_copies=shares_copies)
    parts = [
        _build_part(Op.INSERT, None, after.filter(pa.array(is_new))),
        _build_part(Op.UPDATE, *(rows.filter(pa.array(is_changed)) for rows in stayed)),
        _build_part(Op.DELETE, before.filter(pa.array(is_gone)), None),
    ]
    found = sort_by_id(pa.concat_tables(parts)).combine_chunks()
    columns = {name: _combine_chunks(found[name]) for name in found.column_names}
    return TypeDifference(
        old,
        new,
        pair,
        ids=columns[ID_COLUMN],
        ops=to_numpy(columns["op"]).astype(np.int8),
        old_rows=columns["old_row"],
        new_rows=columns["new_row"],
    )


def are_copies_shared(old: View, new: View, lineage: Lineage) -> bool:
    """Whether a row id means one copy of one entity at both views.

    So it is along a line without merges: each line gives out row ids of its own. What happened in
    records that were collected is not known.
    """
    ours, theirs = old.snapshot, new.snapshot
    earlier, later = (ours, theirs) if ours.seq <= theirs.seq else (theirs, ours)
    try:
        return is_on_line(later, earlier.ref) and not lineage.has_merges(later, earlier.seq)
    except HistoryGoneError:
        return False


def _fetch_keys(
    view: View, type_key: TypeKey | None, ids: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """The rows of those ids that exist, in one chunk."""
    if type_key is None:
        return _KEYS.empty_table()
    return fetch_keys(view, type_key, ids, columns=columns).combine_chunks()


def _are_changed(
    old: View,
    new: View,
    pair: TypePair,
    stayed: tuple[pa.Table, pa.Table],
    *,
    known: Mask | None,
    shares_copies: bool,
) -> Mask:
    """Which of those that are in both do not hold the same."""
    ours, theirs = (_combine_chunks(rows[ROW_ID]) for rows in stayed)
    is_open = np.ones(len(ours), np.bool_)
    if shares_copies and _is_one_table(old, new, pair):
        is_open = to_numpy(ours) != to_numpy(theirs)
    if pair.old is None or pair.new is None or not is_open.any():
        return np.zeros(len(ours), np.bool_)
    places = pa.array(np.flatnonzero(is_open))
    is_changed = np.zeros(len(ours), np.bool_)
    is_changed[is_open] = compare_stored_rows(
        (old.open_table(pair.old), ours.take(places)),
        (new.open_table(pair.new), theirs.take(places)),
        pair.columns,
        known=None if known is None else known[is_open],
    )
    return is_changed


def _is_one_table(old: View, new: View, pair: TypePair) -> bool:
    pins = old.snapshot.pins.get(str(pair.old)), new.snapshot.pins.get(str(pair.new))
    return pins[0] is not None and pins[1] is not None and pins[0].path == pins[1].path


def _build_part(op: Op, before: pa.Table | None, after: pa.Table | None) -> pa.Table:
    """The changes of one kind."""
    known = after if after is not None else before
    assert known is not None, "a change has an image"
    nulls = pa.chunked_array([pa.nulls(known.num_rows, pa.uint64())])
    return pa.table(
        {
            ID_COLUMN: known[ID_COLUMN],
            "op": pa.chunked_array([pa.repeat(pa.scalar(int(op), pa.int8()), known.num_rows)]),
            "old_row": nulls if before is None else before[ROW_ID],
            "new_row": nulls if after is None else after[ROW_ID],
        }
    )


def _fetch_rows(view: View, type_key: TypeKey | None, row_ids: pa.Array) -> pa.Table:
    if type_key is None:
        return pa.table({})
    shape = view.get_shape(type_key)
    names = list_physical_columns(shape, None)
    return (
        view.open_table(type_key).take(row_ids, columns=names).cast(build_rows_schema(shape, names))
    )


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def encode_images(rows: pa.Table, shape: TableShape) -> pa.Array:
    """The image of each row: all its `properties`, also nulls, and for edges its `endpoints`."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    members = encode_properties(columns, shape, with_nulls=True)
    parts: list[pa.Array | str] = ['{"properties":{', *members, "}"]
    if shape.type_key.kind is TypeKind.EDGE:
        parts += [',"endpoints":{"from":', quote_json_strings(columns[SOURCE_COLUMN])]
        parts += [',"to":', quote_json_strings(columns[TARGET_COLUMN]), "}"]
    # One part is a column, so that there are as many texts as rows.
    every_row = pa.repeat(pa.scalar("", TEXT), rows.num_rows)
    return concatenate_texts(every_row, *parts, "}")


def encode_difference_images(difference: TypeDifference) -> tuple[pa.Array, pa.Array]:
    """The images before and after each change as JSON text; null where there is none."""
    has_before, has_after = difference.ops != Op.INSERT, difference.ops != Op.DELETE
    before = _align_images(difference, has_before, is_old=True)
    return before, _align_images(difference, has_after, is_old=False)


def _align_images(difference: TypeDifference, has_image: Any, *, is_old: bool) -> pa.Array:
    type_key = difference.pair.old if is_old else difference.pair.new
    if type_key is None or not has_image.any():
        return pa.nulls(len(difference), TEXT)
    view = difference.old if is_old else difference.new
    rows = difference.before if is_old else difference.after
    texts = encode_images(rows, view.get_shape(type_key))
    places = np.cumsum(has_image) - 1
    return texts.take(pa.array(places, mask=~has_image))


def decode_images(texts: pa.Array) -> list[Json]:
    """Images as objects; None where there is none."""
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]
