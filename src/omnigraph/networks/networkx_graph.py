"""A snapshot as a graph of networkx.

A node is called by its type and its id, since ids are unique within a type only; an edge has its
type and its id as its key. Both have `@id`, `@type` and all properties but blobs as attributes;
vectors only on request, because they become lists of Python numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Any

from omnigraph.errors import LibraryMissingError
from omnigraph.networks.numbered_graph import Attributes, list_attributes, read_rows
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType


def to_networkx(
    view: View, types: Collection[TypeKey], *, has_vectors: bool = False
) -> Any:  # networkx is optional
    """A `MultiDiGraph` of the nodes and edges of some types.

    The ends of edges are there in any case; without their type, they have no attributes.
    """
    try:
        # Only who asks for it needs it.
        import networkx  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as failure:
        raise LibraryMissingError("networkx") from failure
    graph = networkx.MultiDiGraph()
    for type_key in sorted(types, key=lambda each: (each.kind is TypeKind.EDGE, each.name)):
        rows = read_rows(view, type_key, has_vectors=has_vectors)
        entities = list_attributes(rows, type_key.name)
        names = zip(repeat(type_key.name), [entity[ID_FIELD] for entity in entities])
        type_ = view.types[type_key]
        if isinstance(type_, EdgeType):
            ends = (
                _pop_ends(entities, SOURCE, type_.source),
                _pop_ends(entities, TARGET, type_.target),
            )
            graph.add_edges_from(zip(*ends, names, entities, strict=True))
        else:
            graph.add_nodes_from(zip(names, entities, strict=True))
    return graph


def _pop_ends(edges: Sequence[Attributes], field: str, type_name: str) -> Iterator[tuple[str, str]]:
    return zip(repeat(type_name), [edge.pop(field) for edge in edges])
