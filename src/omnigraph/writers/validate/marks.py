"""Marks: what entities hold that another write may have looked up, as short names.

A write reads a mark when its cascade or its validation asks who has an edge end or a unique tuple,
and holds it when it writes or ends such an entity. The two meet because both are made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.footprint import WHOLE, ReadSet, make_mark
from omnigraph.versioning.idset import EMPTY, IdSet
from omnigraph.writers.limits import DEFERRED_MARKS_MAX, MARKS_MAX
from omnigraph.writers.validate.groups import groups_of

END_KINDS: Final = {SOURCE_COLUMN: "src", TARGET_COLUMN: "dst"}


def marks_of(shape: TableShape, type_: NodeType | EdgeType, rows: pa.Table) -> IdSet | None:
    """The marks that rows of a type hold, as far as their columns tell; None for too many rows."""
    if rows.num_rows > MARKS_MAX:
        return None
    marks: list[str] = []
    if isinstance(type_, EdgeType):
        for column, kind in END_KINDS.items():
            marks += encode_marks(kind, [rows[column]])
    # The key is no mark: who shares it shares the id.
    if type_.constraints.uniques:
        for group in groups_of(shape, type_):
            if not group.has_key and set(group.columns) <= set(rows.column_names):
                marks += encode_marks(
                    group.mark_kind, group.format_mark_texts(group.select_bound_columns(rows))
                )
    return IdSet(marks) if marks else EMPTY


def build_edge_reads(column: str, nodes: pa.Array) -> ReadSet:
    """Every edge that has one of the nodes at an end column, whether or not it exists."""
    if len(nodes) > MARKS_MAX:
        return WHOLE
    return ReadSet(marks=IdSet(encode_marks(END_KINDS[column], [nodes])))


def encode_marks(kind: str, texts: Sequence[pa.Array | pa.ChunkedArray]) -> list[str]:
    """The marks of tuples, given the texts of each member."""
    assert len(texts[0]) <= DEFERRED_MARKS_MAX
    columns = [each.to_pylist() for each in texts]
    return [make_mark(kind, *members) for members in zip(*columns, strict=True)]
