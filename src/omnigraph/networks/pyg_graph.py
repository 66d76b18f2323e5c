"""A snapshot as a `HeteroData` of PyTorch Geometric: numbers, booleans and vectors as tensors.

Each type has its ids in `@id`; edges have `edge_index`, whose numbers count the nodes of a type
from 0. Numbers with nulls are floats with NaN, and so are the vectors of nodes that have none.
Texts, times, lists and enums are not tensors: what a model needs of them is for the caller to
encode, from `to_arrow`, in the same order of ids.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError, InvalidArgumentError, LibraryMissingError
from omnigraph.networks.numbered_graph import EdgeColumns, NodeColumns, Numbers, number_graph
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
EDGE_INDEX = "edge_index"


@dataclass(frozen=True, slots=True)
class TypeArrays:
    """The entities of a type: their ids, what is an array of them, and their ends if it is edges.

    `key` is what `HeteroData` calls the type.
    """

    key: str | tuple[str, str, str]
    ids: list[str]
    arrays: Mapping[str, Array]


def to_pyg(view: View, types: Collection[TypeKey]) -> Any:  # PyTorch Geometric is optional
    """A `HeteroData` of the nodes and edges of some types."""
    try:
        # Only who asks for it needs them.
        import torch  # type: ignore[import-not-found]  # noqa: PLC0415
        from torch_geometric.data import (  # type: ignore[import-not-found]  # noqa: PLC0415
            HeteroData,
        )
    except ImportError as failure:
        raise LibraryMissingError("torch torch_geometric") from failure
    data = HeteroData()
    for each in build_arrays(view, types):
        store = data[each.key]
        store[ID_FIELD] = each.ids
        if isinstance(each.key, str):
            store.num_nodes = len(each.ids)
        for name, values in each.arrays.items():
            store[name] = torch.from_numpy(values)
    return data


def build_arrays(view: View, types: Collection[TypeKey]) -> list[TypeArrays]:
    """The arrays of all types, nodes first."""
    graph = number_graph(view, types, has_vectors=True)
    first = {nodes.type_name: nodes.first for nodes in graph.nodes}
    found = [
        TypeArrays(nodes.type_name, nodes.rows[ID_FIELD].to_pylist(), _convert_columns(nodes))
        for nodes in graph.nodes
    ]
    for edges in graph.edges:
        source, target = edges.ends
        index: Numbers = np.stack([edges.sources - first[source], edges.targets - first[target]])
        arrays = _convert_columns(edges)
        if EDGE_INDEX in arrays:
            raise InvalidArgumentError(
                "types", f"{edges.type_name}.{EDGE_INDEX} has the name of the ends of edges"
            )
        key = (source, edges.type_name, target)
        ids = edges.rows[ID_FIELD].to_pylist()
        found.append(TypeArrays(key, ids, {EDGE_INDEX: index, **arrays}))
    return found


def _convert_columns(part: NodeColumns | EdgeColumns) -> dict[str, Array]:
    found = {}
    for name in part.rows.column_names:
        try:
            values = _to_array(part.rows[name].combine_chunks())
        except pa.ArrowInvalid as failure:
            raise ExecutionError(
                f"{part.type_name}.{name}: no tensor holds its values: {failure}",
                hint="tensors have integers below 2**63, with nulls up to 2**53; use to_arrow()",
            ) from failure
        if values is not None:
            found[name] = values
    return found


def _to_array(values: pa.Array) -> Array | None:
    kind = values.type
    if pa.types.is_fixed_size_list(kind):
        numbers = np.full((len(values), kind.list_size), np.nan, np.float32)
        is_valid = values.is_valid().to_numpy(zero_copy_only=False)
        numbers[is_valid] = values.flatten().to_numpy().reshape(-1, kind.list_size)
        return numbers
    if pa.types.is_unsigned_integer(kind):
        # PyTorch computes with signed numbers.
        values = pc.cast(values, pa.int64())
        kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    if values.null_count:
        return np.array(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    # A copy that can be written to, as tensors are.
    return np.array(values.to_numpy(zero_copy_only=False))
