"""A snapshot as a graph of networkx.

A node is called by its type and its id, since ids are unique within a type only; an edge has its
type and its id as its key. Both have `@id`, `@type` and all properties but blobs as attributes;
vectors only on request, because they become lists of Python numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from omnigraph.errors import ExecutionError, LibraryMissingError
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.rows.type_dataset import TypeDataset
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType
from omnigraph.schema.property_types import VectorType

Attributes: TypeAlias = dict[str, Any]  # Any: a value of Python
TYPE_FIELD = "@type"


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
        entities = list(_read_entities(view, type_key, has_vectors=has_vectors))
        ids = [entity[ID_FIELD] for entity in entities]
        names = zip(repeat(type_key.name), ids)
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


def _read_entities(view: View, type_key: TypeKey, *, has_vectors: bool) -> Iterator[Attributes]:
    dataset = TypeDataset(view, type_key)
    properties = view.types[type_key].properties
    names = [
        name
        for name in dataset.schema.names
        if has_vectors
        or name not in properties
        or not isinstance(properties[name].type.value, VectorType)
    ]
    for batch in dataset.to_batches(columns=names):
        try:
            rows = batch.to_pylist()
        except (OverflowError, ValueError) as failure:
            raise ExecutionError(
                f"{type_key.name}: a Date is outside the years of Python's dates: {failure}",
                hint="use to_arrow()",
            ) from failure
        for row in rows:
            row[TYPE_FIELD] = type_key.name
            yield row
