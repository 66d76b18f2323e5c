"""What must be unique in a type: its key and every `@unique`, as columns of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.entity_ids import format_canonical_texts
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType, NodeType
from omnigraph.versioning.footprint import WHOLE, ReadSet, make_mark
from omnigraph.versioning.id_sets import EMPTY, IdSet
from omnigraph.writers.graph_change import DEFERRED_MARKS_MAX, MARKS_MAX
from omnigraph.writers.validate.findings import list_shown_values, shorten_value

END_KINDS: Final = {SOURCE_COLUMN: "src", TARGET_COLUMN: "dst"}


@dataclass(frozen=True, slots=True)
class UniqueGroup:
    """Members that no two entities may share.

    `has_key` says that the key is among them: then entities that share them have one id, and only
    the input of one write can hold them twice.
    """

    members: tuple[str, ...]
    columns: tuple[str, ...]
    has_key: bool

    @property
    def spelling(self) -> str:
        """The members as messages spell them."""
        return self.members[0] if len(self.members) == 1 else f"({', '.join(self.members)})"

    @property
    def mark_kind(self) -> str:
        """What the marks of its tuples are about; a rename does not change it."""
        return f"unique:{','.join(sorted(self.columns))}"

    def format_texts(self, bound: pa.Table) -> list[pa.Array]:
        """The canonical texts of each member, for rows that are bound by the group."""
        return [format_canonical_texts(bound[column].combine_chunks()) for column in self.columns]

    def list_shown_texts(self, bound: pa.Table) -> list[str]:
        """What each row has in the members, for people: times as JSON has them."""
        columns = [
            list_shown_values(bound[column])
            if pa.types.is_temporal(bound[column].type)
            else [shorten_value(each) for each in texts.to_pylist()]
            for column, texts in zip(self.columns, self.format_texts(bound), strict=True)
        ]
        return [", ".join(each) for each in zip(*columns, strict=True)]

    def format_mark_texts(self, bound: pa.Table) -> list[pa.Array]:
        """The same, in the order that marks list them."""
        by_column = dict(zip(self.columns, self.format_texts(bound), strict=True))
        return [by_column[column] for column in sorted(self.columns)]

    def select_bound_columns(self, rows: pa.Table) -> pa.Table:
        """The columns of the group without exempt rows."""
        return self.filter_bound_rows(rows.select(self.columns))

    def filter_bound_rows(self, rows: pa.Table) -> pa.Table:
        """All columns without exempt rows: a member is null, or no usable number."""
        for column in self.columns:
            if (is_usable := _find_usable(rows[column])) is not None:
                rows = rows.filter(is_usable)
        return rows


def groups_of(shape: TableShape, type_: NodeType | EdgeType) -> tuple[UniqueGroup, ...]:
    """The uniques of a type and then its key; a group of the same members appears once."""
    key = frozenset(type_.key or ())
    columns = {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN} | dict(shape.columns)
    members = dict.fromkeys((*type_.constraints.uniques, *filter(None, [type_.key])))
    return tuple(
        UniqueGroup(each, tuple(columns[name] for name in each), bool(key) and key <= set(each))
        for each in members
    )


def _find_usable(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Which values can be compared as texts; None means all of them."""
    if pa.types.is_floating(values.type):
        return pc.fill_null(pc.is_finite(values), fill_value=False)
    return values.is_valid() if values.null_count else None


def marks_of(shape: TableShape, type_: NodeType | EdgeType, rows: pa.Table) -> IdSet | None:
    """The marks that rows of a type hold, as far as their columns show; None for too many rows."""
    if rows.num_rows > MARKS_MAX:
        return None
    marks: list[str] = []
    if isinstance(type_, EdgeType):
        for column, kind in END_KINDS.items():
            marks += encode_marks(kind, [rows[column]])
    # The key is not a mark: entities that share it share the id.
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
