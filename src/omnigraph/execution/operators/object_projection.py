"""Nodes, edges and paths as results: objects of what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch, find_bound_rows
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.query.typed_tree import EdgeValue, PathPart, PathValue
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.path_columns import build_lists, select_path_part, split_lists
from omnigraph.rows.result_types import (
    ID_FIELD,
    SOURCE_FIELD,
    TARGET_FIELD,
    TYPE_FIELD,
    fit_result_values,
    is_shown,
)

_NUMBER_BITS: Final = 32
_NUMBER_MASK: Final = np.int64(2**_NUMBER_BITS - 1)


def project_path(
    value: PathValue, kind: pa.DataType, batch: Batch, context: ExecutionContext
) -> pa.Array:
    """A column of paths, or of the nodes or the edges of paths."""
    paths = flatten_chunks(evaluate_rows(value, batch, context))
    match value.type.part:
        case PathPart.NODES:
            return _build_objects(
                paths, kind, value.type.node_types, EntityReader(context, is_edge=False)
            )
        case PathPart.EDGES:
            return _build_objects(
                paths, kind, value.type.edge_types, EntityReader(context, is_edge=True)
            )
        case PathPart.WHOLE:
            pass
    nodes, edges = (
        flatten_chunks(select_path_part(paths, part)) for part in (PathPart.NODES, PathPart.EDGES)
    )
    node_kind, edge_kind = (kind.field(name).type for name in ("nodes", "edges"))
    _, lengths = split_lists(edges)
    fields = [
        _build_objects(
            nodes, node_kind, value.type.node_types, EntityReader(context, is_edge=False)
        ),
        _build_objects(
            edges, edge_kind, value.type.edge_types, EntityReader(context, is_edge=True)
        ),
        pa.array(lengths, pa.int64()),
    ]
    mask = paths.is_null() if paths.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)


def project_nodes(
    ids: pa.Array, type_name: str, kind: pa.DataType, context: ExecutionContext
) -> pa.Array:
    """Nodes of one type, or lists of them, for their ids."""
    if not pa.types.is_list(kind):
        return _build_nodes(ids, type_name, kind, context)
    counts = np.asarray(pc.fill_null(pc.list_value_length(ids), 0))
    items = _build_nodes(ids.flatten(), type_name, kind.value_type, context)
    return build_lists(items, counts, ids).cast(kind)


def _build_nodes(
    ids: pa.Array, type_name: str, kind: pa.DataType, context: ExecutionContext
) -> pa.Array:
    context.budget.check_interrupts()
    numbers = context.source.get_nodes(type_name).find(ids.drop_null())
    reader = EntityReader(context, is_edge=False)
    found = _build_structs(numbers.astype(np.int64), kind, (type_name,), reader)
    return _arrange_structs(found, np.asarray(ids.is_valid()))


def project_edge(
    value: EdgeValue, kind: pa.DataType, batch: Batch, context: ExecutionContext
) -> pa.Array:
    """A column of edges; null where an optional block has left them out."""
    bound, is_bound = batch.edges[value.variable], find_bound_rows(batch, value.variable)
    places = np.array([value.type.edge_types.index(name) for name in bound.types], np.int64)
    codes = places.take(bound.type_indices[is_bound])
    items = (codes << _NUMBER_BITS) | bound.dense_ids[is_bound]
    found = _build_structs(items, kind, value.type.edge_types, EntityReader(context, is_edge=True))
    return _arrange_structs(found, is_bound)


def _arrange_structs(found: pa.Array, is_there: npt.NDArray[np.bool_]) -> pa.Array:
    """Objects for the rows that have one."""
    if is_there.all():
        return found
    return found.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


@dataclass(frozen=True, slots=True)
class EntityReader:
    """Fetches fields of nodes, or of edges."""

    context: ExecutionContext
    is_edge: bool

    def fetch_field(self, type_name: str, name: str, at: DenseIds) -> pa.Array | None:
        """The values of a field; None if objects of the type have no such property."""
        source, catalog = self.context.source, self.context.view.catalog
        if not self.is_edge:
            nodes, own = source.get_nodes(type_name), catalog.nodes[type_name].properties
            if name == ID_FIELD:
                return nodes.fetch_ids(at)
            return nodes.fetch_values(name, at) if name in own and is_shown(own[name]) else None
        edges, type_ = source.get_edges(type_name), catalog.edges[type_name]
        if name == ID_FIELD:
            return edges.fetch_ids(at)
        if name == SOURCE_FIELD:
            return source.get_nodes(type_.source).fetch_ids(edges.fetch_sources(at))
        if name == TARGET_FIELD:
            return source.get_nodes(type_.target).fetch_ids(edges.fetch_targets(at))
        own = type_.properties
        return edges.fetch_values(name, at) if name in own and is_shown(own[name]) else None


def _build_objects(
    lists: pa.ListArray,
    kind: pa.DataType,
    types: tuple[str, ...],
    reader: EntityReader,
) -> pa.ListArray:
    """Lists of objects for lists of the numbers of entities, with their types above them."""
    items, counts = split_lists(lists)
    return build_lists(_build_structs(items, kind.value_type, types, reader), counts, lists).cast(
        kind
    )


def _build_structs(
    items: npt.NDArray[np.int64],
    kind: pa.DataType,
    types: tuple[str, ...],
    reader: EntityReader,
) -> pa.StructArray:
    """Objects for the numbers of entities, with their types above them."""
    codes = items >> _NUMBER_BITS
    numbers = (items & _NUMBER_MASK).astype(np.int32)
    places = [np.flatnonzero(codes == code) for code in range(len(types))]

    def collect(field: pa.Field) -> pa.Array:
        def fetch(type_name: str, at: npt.NDArray[np.int64]) -> pa.Array:
            if field.name == TYPE_FIELD:
                return pa.array([type_name], pa.utf8()).take(pa.array(np.zeros(len(at), np.int64)))
            values = reader.fetch_field(type_name, field.name, numbers.take(at))
            if values is None:
                return pa.nulls(len(at), field.type)
            return fit_result_values(flatten_chunks(values), field.type)

        return _merge_types(types, places, fetch, field.type)

    fields = [collect(field) for field in kind]
    return pa.StructArray.from_arrays(fields, fields=list(kind))


def _merge_types(
    types: tuple[str, ...],
    places: list[npt.NDArray[np.int64]],
    fetch: Callable[[str, npt.NDArray[np.int64]], pa.Array],
    kind: pa.DataType,
) -> pa.Array:
    """The values of entities of several types, in the order of the entities."""
    parts = [fetch(name, at) for name, at in zip(types, places, strict=True) if len(at)]
    if not parts:
        return pa.array([], kind)
    if len(parts) == 1:
        return parts[0]
    where = np.concatenate(places)
    order = np.empty(len(where), np.int64)
    order[where] = np.arange(len(where))
    return pa.concat_arrays(parts).take(pa.array(order))
