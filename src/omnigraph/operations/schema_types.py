"""The types of a state as data, for clients that do not read schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from omnigraph.operations.graph_reads import select_state
from omnigraph.query.query_descriptor import describe_property
from omnigraph.schema.catalog import AnnotationValue, EdgeType, NodeType, Property
from omnigraph.schema.property_types import EnumType

if TYPE_CHECKING:
    from omnigraph.engine import Graph
    from omnigraph.engine.snapshot import EntityKind

JsonObject = dict[str, Any]  # Any: a JSON document
_DESCRIPTION: Final = "description"


def list_types(graph: Graph, *, branch: str | None, snapshot: str | None) -> JsonObject:
    """The types that the actor may read, with how many entities each has: SchemaTypesOutput."""
    state = select_state(graph, branch=branch, snapshot=snapshot).snapshot
    return {
        "graph_commit_id": state.at.commit,
        "types": [
            _describe_type(found, state.count(found.name, _kind_of(found)))
            for _, found in state.list_readable_types()
        ],
    }


def _kind_of(found: NodeType | EdgeType) -> EntityKind:
    return "edge" if isinstance(found, EdgeType) else "node"


def _describe_type(found: NodeType | EdgeType, count: int) -> JsonObject:
    ends = {"source": found.source, "target": found.target} if isinstance(found, EdgeType) else {}
    return {
        "kind": _kind_of(found),
        "name": found.name,
        "entity_count": count,
        **({} if found.key is None else {"key": list(found.key)}),
        **ends,
        **_describe_words(found.annotations),
        "properties": [_describe_property(each, found) for each in found.properties.values()],
    }


def _describe_property(shown: Property, owner: NodeType | EdgeType) -> JsonObject:
    constraints, alone = owner.constraints, (shown.name,)
    value = shown.type.value
    document = describe_property(shown.name, shown.type).to_json() | {"type": str(shown.type)}
    if isinstance(value, EnumType):
        document["values"] = list(value.values)
    if alone in constraints.indexes:
        document["indexed"] = True
    if alone in constraints.uniques:
        document["unique"] = True
    if shown.embed is not None:
        document["embed_source"] = shown.embed.source
    return document | _describe_words(shown.annotations)


def _describe_words(annotations: tuple[AnnotationValue, ...]) -> JsonObject:
    found = [each.value for each in annotations if each.name == _DESCRIPTION and each.value]
    return {"description": found[0]} if found else {}
