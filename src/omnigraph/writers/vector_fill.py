"""Vectors of texts in rows that are written: kept, cleared with their text, or filled.

A vector belongs to its source text. Where the text of an entity stays, its vector stays; where the
text changes and no other vector comes with it, the vector is cleared. `WRITE` then fills what is
null before the rows are checked, and `LATER` leaves it to the embedding builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.embedder import BatchEmbedder, EmbedMode, Vectors
from omnigraph.embedding.model_identity import require_model, require_recorded_model
from omnigraph.errors import EmbeddingError, EmbeddingUnavailableError
from omnigraph.rows.columns import TableShape
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType, Property
from omnigraph.schema.property_types import VectorType
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, TypeChange, WriteMode, combine_column
from omnigraph.writers.key_cache import KeyCache

# From distinct texts and a dimension to their vectors.
AskVectors: TypeAlias = Callable[[list[str], int], Vectors]
_Mask = npt.NDArray[np.bool_]
# Committed vectors that are compared at a time.
_VECTORS_AT_ONCE: Final = 65_536


@dataclass(frozen=True, slots=True)
class EmbeddedColumn:
    """A vector with the text that it comes from."""

    property: Property
    source: str
    column: str
    dimension: int


def list_embedded_columns(
    type_: NodeType | EdgeType, shape: TableShape
) -> tuple[EmbeddedColumn, ...]:
    """The columns of a type that `@embed` fills."""
    return tuple(_iter_embedded_columns(type_, shape))


def _iter_embedded_columns(
    type_: NodeType | EdgeType, shape: TableShape
) -> Iterator[EmbeddedColumn]:
    for name, column in shape.columns.items():
        property_ = type_.properties[name]
        if property_.embed is not None and isinstance(property_.type.value, VectorType):
            source = shape.columns[property_.embed.source]
            yield EmbeddedColumn(property_, source, column, property_.type.value.dimension)


@dataclass(slots=True)
class VectorFill:
    """What one write does about vectors, however often it is prepared.

    What was asked for is kept, since another preparation runs while other writers wait.
    """

    mode: EmbedMode
    embedder: BatchEmbedder
    ask: AskVectors
    _known: dict[tuple[str, str], tuple[pa.Array, Vectors]] = field(default_factory=dict)
    # How many texts the newest preparation left without a vector.
    pending: int = 0

    def fill(self, change: GraphChange, view: View, keys: KeyCache) -> GraphChange:
        """The change with the vectors that its texts have."""
        self.pending = 0
        committed = CommittedState(view, keys, {})
        return {
            type_key: self._fill_type(type_key, each, committed) if each.rows.num_rows else each
            for type_key, each in change.items()
        }

    def _fill_type(
        self, type_key: TypeKey, change: TypeChange, committed: CommittedState
    ) -> TypeChange:
        columns = list_embedded_columns(committed.view.types[type_key], change.shape)
        if not columns:
            return change
        for each in columns:
            require_recorded_model(each.property, type_key.name)
        rows = change.rows
        copies = _find_copies(type_key, change, committed) if self._may_exist(change) else None
        for each in columns:
            if copies is not None and copies.num_rows:
                rows = _follow_texts(rows, each, (type_key, committed, copies))
            rows = self._fill_column(type_key, replace(change, rows=rows), each)
        return change if rows is change.rows else replace(change, rows=rows)

    def _may_exist(self, change: TypeChange) -> bool:
        return change.mode is not WriteMode.INSERT

    def _fill_column(
        self, type_key: TypeKey, change: TypeChange, column: EmbeddedColumn
    ) -> pa.Table:
        rows = change.rows
        texts = combine_column(rows[column.source])
        is_pending = to_numpy(
            pc.and_(rows[column.column].is_null(), rows[column.source].is_valid())
        )
        if not is_pending.any():
            return rows
        if self.mode is not EmbedMode.WRITE:
            self.pending += int(is_pending.sum())
            return rows
        require_model(column.property, self.embedder)
        places = np.flatnonzero(is_pending)
        encoded = texts.take(pa.array(places)).dictionary_encode()
        try:
            vectors = self._ask(type_key, column, encoded.dictionary)
        except EmbeddingError as failure:
            row = None
            if failure.index is not None:
                codes = encoded.indices.to_numpy(zero_copy_only=False)
                row = int(places[np.flatnonzero(codes == failure.index)[0]])
            raise _build_error(failure, type_key, column, change, row) from failure
        chosen = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return set_vectors(rows, column, places, vectors[chosen])

    def _ask(self, type_key: TypeKey, column: EmbeddedColumn, texts: pa.Array) -> Vectors:
        """The vectors of distinct texts; those of an earlier preparation are not asked again."""
        name = (str(type_key), column.column)
        known, vectors = self._known.get(
            name, (pa.array([], texts.type), np.empty((0, column.dimension), np.float32))
        )
        is_new = pc.index_in(texts, value_set=known).is_null()
        if is_new.true_count:
            new = texts.filter(is_new)
            try:
                asked = self.ask(new.to_pylist(), column.dimension)
            except EmbeddingError as failure:
                if failure.index is not None:
                    failure.index = int(np.flatnonzero(to_numpy(is_new))[failure.index])
                raise
            known, vectors = pa.concat_arrays([known, new]), np.concatenate([vectors, asked])
            self._known[name] = known, vectors
        places = pc.index_in(texts, value_set=known).to_numpy(zero_copy_only=False)
        found: Vectors = vectors[places]
        return found


def _find_copies(type_key: TypeKey, change: TypeChange, committed: CommittedState) -> pa.Table:
    if change.known_copies is not None:
        return change.known_copies
    return committed.find_copies(type_key, change.written)


def _follow_texts(
    rows: pa.Table,
    column: EmbeddedColumn,
    place: tuple[TypeKey, CommittedState, pa.Table],
) -> pa.Table:
    """Rows whose texts stay keep their vector; where the text changed, the old vector goes."""
    type_key, committed, copies = place
    found = pc.index_in(
        combine_column(rows[ID_COLUMN]), value_set=combine_column(copies[ID_COLUMN])
    )
    existing = np.flatnonzero(to_numpy(found.is_valid()))
    if not len(existing):
        return rows
    row_ids = combine_column(copies[ROW_ID]).take(found.drop_null()).cast(pa.uint64())
    table = committed.view.open_table(type_key)
    before = combine_column(table.take(row_ids, columns=[column.source])[column.source])
    now = combine_column(rows[column.source]).take(pa.array(existing))
    both_null = pc.and_(now.is_null(), before.is_null())
    is_same = to_numpy(pc.or_(pc.fill_null(pc.equal(now, before), False), both_null))
    has_vector = to_numpy(rows[column.column].is_valid())[existing]
    has_text = to_numpy(now.is_valid())
    # What may be kept, and what may be stale: only these vectors are read.
    asked = np.flatnonzero((is_same & ~has_vector & has_text) | (~is_same & has_vector))
    for start in range(0, len(asked), _VECTORS_AT_ONCE):
        part = asked[start : start + _VECTORS_AT_ONCE]
        stored = table.take(row_ids.take(pa.array(part)), columns=[column.column])[column.column]
        rows = _apply_stored(rows, column, (existing[part], combine_column(stored)))
    return rows


def _apply_stored(
    rows: pa.Table, column: EmbeddedColumn, stored: tuple[npt.NDArray[Any], pa.Array]
) -> pa.Table:
    """Take the stored vector where a row has none, and clear it where the row still has it."""
    places, vectors = stored
    own = combine_column(rows[column.column]).take(pa.array(places))
    is_there, is_stored = to_numpy(own.is_valid()), to_numpy(vectors.is_valid())
    is_kept = ~is_there & is_stored
    is_equal = (_to_matrix(own, column) == _to_matrix(vectors, column)).all(1)
    is_stale = is_there & is_stored & is_equal
    rows = set_vectors(rows, column, places[is_kept], _to_matrix(vectors, column)[is_kept])
    return _clear_vectors(rows, column, places[is_stale])


def _to_matrix(vectors: pa.Array, column: EmbeddedColumn) -> Vectors:
    """Vectors as rows of numbers; a null is a row of zeros."""
    found = np.zeros((len(vectors), column.dimension), np.float32)
    is_valid = to_numpy(vectors.is_valid())
    flat = vectors.drop_null().flatten().to_numpy(zero_copy_only=False)
    found[is_valid] = flat.reshape(-1, column.dimension)
    return found


def set_vectors(
    rows: pa.Table, column: EmbeddedColumn, places: npt.NDArray[Any], vectors: Vectors
) -> pa.Table:
    """Rows with other vectors at some places."""
    if not len(places):
        return rows
    index = rows.schema.get_field_index(column.column)
    field_ = rows.schema.field(index)
    values = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
    new = pa.FixedSizeListArray.from_arrays(values, type=field_.type)
    taken = np.arange(rows.num_rows)
    taken[places] = rows.num_rows + np.arange(len(places))
    both = pa.concat_arrays([combine_column(rows[column.column]), new])
    return rows.set_column(index, field_, both.take(pa.array(taken)))


def _clear_vectors(rows: pa.Table, column: EmbeddedColumn, places: npt.NDArray[Any]) -> pa.Table:
    if not len(places):
        return rows
    index = rows.schema.get_field_index(column.column)
    taken, is_cleared = np.arange(rows.num_rows), np.zeros(rows.num_rows, np.bool_)
    is_cleared[places] = True
    kept = combine_column(rows[column.column]).take(pa.array(taken, mask=is_cleared))
    return rows.set_column(index, rows.schema.field(index), kept)


def _build_error(
    failure: EmbeddingError,
    type_key: TypeKey,
    column: EmbeddedColumn,
    change: TypeChange,
    row: int | None,
) -> EmbeddingError:
    """The failure with the record and the property that it is about."""
    where = f"{type_key.name}.{column.property.name}"
    if row is not None and change.origins is not None:
        where = f"{change.origins.location_of(row)}: {where}"
    elif row is not None:
        where = f"{where} of '{change.rows[ID_COLUMN][row].as_py()}'"
    message = f"{where}: {failure.message}"
    if isinstance(failure, EmbeddingUnavailableError):
        hint = "nothing was written: try again later, or write with embed 'later'"
        return EmbeddingUnavailableError(message, hint=hint)
    return EmbeddingError(message, reason=failure.reason, hint=failure.hint)
