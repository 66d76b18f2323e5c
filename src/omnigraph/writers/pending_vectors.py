"""Vectors that are still to be made: which texts wait for one, and the commit that brings them.

A text waits if it is there and its vector is null. What was asked for is compared with the text
that the entity has when the vectors are committed: a text that changed meanwhile waits again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.embedder import Vectors
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning import Signature, Transaction
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import NO_IDS, TypeChange, WriteMode, combine_column
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.prepare import Request, prepare_transaction
from omnigraph.writers.row_staging import RowStaging
from omnigraph.writers.vector_fill import EmbeddedColumn, list_embedded_columns, set_vectors

# So many texts are in memory at a time; the rest waits for the next look.
PENDING_ROWS_MAX: Final = 262_144


@dataclass(frozen=True, slots=True)
class PendingTexts:
    """Entities of one type whose vector of one property is to be made, and their texts."""

    type_key: TypeKey
    column: EmbeddedColumn
    ids: pa.Array
    texts: pa.Array

    def select(self, start: int, count: int) -> PendingTexts:
        """Some of them."""
        return PendingTexts(
            self.type_key, self.column, self.ids.slice(start, count), self.texts.slice(start, count)
        )


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """How many entities have a vector of a property, and how many wait for one."""

    type_key: TypeKey
    column: EmbeddedColumn
    ready: int
    pending: int


def iter_embedded_properties(
    view: View, types: Collection[str] | None = None
) -> Iterator[tuple[TypeKey, EmbeddedColumn]]:
    """The embedded properties of a view whose model is recorded, of all types or of some."""
    for type_key, type_ in view.types.items():
        if types is not None and type_key.name not in types:
            continue
        for column in list_embedded_columns(type_, view.get_shape(type_key)):
            if column.property.embed is not None and column.property.embed.model is not None:
                yield type_key, column


def count_vectors(view: View, types: Collection[str] | None = None) -> Iterator[VectorCounts]:
    """How far the vectors of each embedded property are."""
    for type_key, column in iter_embedded_properties(view, types):
        table = view.open_table(type_key)
        ready = pending = 0
        if table.count():
            ready = table.scan(columns=[ID_COLUMN], filter=f"{column.column} IS NOT NULL").num_rows
            pending = table.scan(columns=[ID_COLUMN], filter=_format_filter(column)).num_rows
        yield VectorCounts(type_key, column, ready, pending)


def find_pending(view: View, types: Collection[str] | None = None) -> Iterator[PendingTexts]:
    """The texts of a view that wait for a vector, of each property up to a bound."""
    for type_key, column in iter_embedded_properties(view, types):
        table = view.open_table(type_key)
        if not table.count():
            continue
        rows, parts = 0, []
        for batch in table.scan_batches(
            columns=[ID_COLUMN, column.source], filter=_format_filter(column)
        ):
            parts.append(batch)
            rows += batch.num_rows
            if rows >= PENDING_ROWS_MAX:
                break
        if rows:
            found = pa.Table.from_batches(parts)
            ids, texts = (combine_column(found[name]) for name in (ID_COLUMN, column.source))
            yield PendingTexts(type_key, column, ids, texts)


def _format_filter(column: EmbeddedColumn) -> str:
    return f"{column.column} IS NULL AND {column.source} IS NOT NULL"


def build_vector_commit(
    view: View,
    keys: KeyCache,
    found: tuple[PendingTexts, Vectors],
    *,
    staging: RowStaging,
    signature: Signature,
) -> Transaction | None:
    """The commit that gives entities the vectors of their texts, as far as these still wait."""
    pending, vectors = found
    change = _build_change(view, keys, pending, vectors)
    if change is None:
        return None
    return prepare_transaction(
        {pending.type_key: change}, view, keys, staging=staging, request=Request(signature)
    )


def _build_change(
    view: View, keys: KeyCache, pending: PendingTexts, vectors: Vectors
) -> TypeChange | None:
    type_key, column = pending.type_key, pending.column
    if type_key not in view.types or column not in list_embedded_columns(
        view.types[type_key], view.get_shape(type_key)
    ):
        # Another schema is in force: the next look finds what waits under it.
        return None
    shape, table = view.get_shape(type_key), view.open_table(type_key)
    copies = CommittedState(view, keys, {}).find_copies(type_key, pending.ids)
    rows = table.take(combine_column(copies[ROW_ID]).cast(pa.uint64()), columns=shape.schema.names)
    rows = rows.select(shape.schema.names).cast(shape.schema)
    places = pc.index_in(combine_column(rows[ID_COLUMN]), value_set=pending.ids)
    is_same = pc.equal(rows[column.source], pending.texts.take(places))
    is_waiting = pc.and_(pc.fill_null(is_same, False), rows[column.column].is_null())
    chosen = np.flatnonzero(to_numpy(is_waiting))
    if not len(chosen):
        return None
    kept = pa.array(chosen)
    given = vectors[places.take(kept).to_numpy(zero_copy_only=False)]
    return TypeChange(
        shape=shape,
        mode=WriteMode.UPSERT,
        rows=set_vectors(rows.take(kept), column, np.arange(len(chosen)), given),
        deleted=NO_IDS,
        known_copies=copies.take(kept),
    )
