"""A snapshot as a graph of igraph: properties are attributes of all vertices or all edges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import LibraryMissingError
from omnigraph.networks.numbered_graph import (
    TYPE_FIELD,
    EdgeColumns,
    NodeColumns,
    build_date_error,
    join_numbers,
    number_graph,
)
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey


def to_igraph(
    view: View, types: Collection[TypeKey], *, has_vectors: bool = False
) -> Any:  # igraph is optional
    """A directed `Graph` of the nodes and edges of some types, numbered type by type.

    Vertices and edges have `@id`, `@type` and the properties of all types; None where their type
    has no such property.
    """
    try:
        # Only who asks for it needs it.
        import igraph  # noqa: PLC0415
    except ImportError as failure:
        raise LibraryMissingError("igraph") from failure
    found = number_graph(view, types, has_vectors=has_vectors)
    sources = join_numbers([edges.sources for edges in found.edges])
    targets = join_numbers([edges.targets for edges in found.edges])
    return igraph.Graph(
        n=found.node_count,
        edges=np.column_stack([sources, targets]),
        directed=True,
        vertex_attrs=_collect_attributes(found.nodes),
        edge_attrs=_collect_attributes(found.edges),
    )


def _collect_attributes(parts: Sequence[NodeColumns | EdgeColumns]) -> dict[str, list[Any]]:
    """A value of each attribute for each row of all types; Any: a value of Python."""
    names = dict.fromkeys(name for part in parts for name in part.rows.column_names)
    found: dict[str, list[Any]] = {TYPE_FIELD: [], **{name: [] for name in names}}
    for part in parts:
        found[TYPE_FIELD] += [part.type_name] * part.rows.num_rows
        for name in names:
            found[name] += _list_values(part, name)
    return found


def _list_values(part: NodeColumns | EdgeColumns, name: str) -> list[Any]:
    if name not in part.rows.column_names:
        return [None] * part.rows.num_rows
    column: pa.ChunkedArray = part.rows[name]
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError) as failure:
        raise build_date_error(part.type_name, failure) from failure
