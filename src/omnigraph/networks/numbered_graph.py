"""Nodes numbered from 0 type by type, edges as pairs of numbers, and properties as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.type_dataset import TypeDataset
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType
from omnigraph.schema.property_types import VectorType

TYPE_FIELD = "@type"
Attributes: TypeAlias = dict[str, Any]  # Any: a value of Python
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """The nodes of a type: `rows` has `@id` and the properties; `first` is the number of the first.

    Nodes of a type that was not asked for have only their ids.
    """

    type_name: str
    rows: pa.Table
    first: int


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """The edges of a type: their ends as numbers, `@id` and the properties."""

    type_name: str
    ends: tuple[str, str]
    sources: Numbers
    targets: Numbers
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class NumberedGraph:
    """The nodes and edges of some types."""

    nodes: tuple[NodeColumns, ...]
    edges: tuple[EdgeColumns, ...]

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return sum(each.rows.num_rows for each in self.nodes)


def number_graph(view: View, types: Collection[TypeKey], *, has_vectors: bool) -> NumberedGraph:
    """The nodes and edges of some types; ends of edges are there whatever their types are."""
    edges = [key for key in sorted(types, key=str) if key.kind is TypeKind.EDGE]
    tables = {key.name: read_rows(view, key, has_vectors=has_vectors) for key in edges}
    nodes: dict[str, NodeColumns] = {}
    first = 0
    for name, rows in _iter_node_rows(view, types, tables, has_vectors=has_vectors):
        nodes[name] = NodeColumns(name, rows, first)
        first += rows.num_rows
    found = []
    for key in edges:
        type_ = view.types[key]
        assert isinstance(type_, EdgeType), "an edge type is under the key of one"
        ends, rows = (type_.source, type_.target), tables[key.name]
        sources, targets = (
            _number_ends(rows[column], nodes[end])
            for column, end in zip((SOURCE, TARGET), ends, strict=True)
        )
        rows = rows.drop([SOURCE, TARGET])
        found.append(EdgeColumns(key.name, ends, sources, targets, rows))
    return NumberedGraph(tuple(nodes.values()), tuple(found))


def read_rows(view: View, type_key: TypeKey, *, has_vectors: bool) -> pa.Table:
    """All entities of a type, with all properties but blobs."""
    dataset, properties = TypeDataset(view, type_key), view.types[type_key].properties
    names = [
        name
        for name in dataset.schema.names
        if has_vectors
        or name not in properties
        or not isinstance(properties[name].type.value, VectorType)
    ]
    return dataset.to_table(columns=names)


def list_attributes(rows: pa.Table, type_name: str) -> list[Attributes]:
    """The rows as dictionaries of Python values, each with its type."""
    typed = rows.append_column(TYPE_FIELD, pa.repeat(type_name, rows.num_rows))
    try:
        found: list[Attributes] = typed.to_pylist()
    except (OverflowError, ValueError) as failure:
        raise build_date_error(type_name, failure) from failure
    return found


def build_date_error(type_name: str, failure: Exception) -> ExecutionError:
    """The error for a date that Python has no value for."""
    return ExecutionError(
        f"{type_name}: a Date is outside the years of Python's dates: {failure}",
        hint="use to_arrow()",
    )


def _iter_node_rows(
    view: View,
    types: Collection[TypeKey],
    edges: dict[str, pa.Table],
    *,
    has_vectors: bool,
) -> Iterator[tuple[str, pa.Table]]:
    """The nodes of the wanted types, and the ids of others at which edges end."""
    wanted = {key.name for key in types if key.kind is TypeKind.NODE}
    ends: dict[str, list[pa.ChunkedArray]] = {}
    for name, rows in edges.items():
        type_ = view.catalog.edges[name]
        for end, column in ((type_.source, SOURCE), (type_.target, TARGET)):
            if end not in wanted:
                ends.setdefault(end, []).append(rows[column])
    for name in sorted({*wanted, *ends}):
        if name in wanted:
            key = TypeKey(TypeKind.NODE, name)
            yield name, read_rows(view, key, has_vectors=has_vectors)
        else:
            ids = pa.chunked_array([part for each in ends[name] for part in each.chunks], pa.utf8())
            yield name, pa.table({ID_FIELD: pc.unique(ids)})


def _number_ends(ends: pa.ChunkedArray, nodes: NodeColumns) -> Numbers:
    numbers = pc.index_in(ends, value_set=nodes.rows[ID_FIELD].combine_chunks())
    assert not numbers.null_count, "an edge ends at nodes of its snapshot"
    return np.asarray(numbers.to_numpy(), np.int64) + nodes.first


def join_numbers(parts: Sequence[Numbers]) -> Numbers:
    """Numbers one after the other; of none, none."""
    return np.concatenate([np.zeros(0, np.int64), *parts])
