"""The canonical shape of a schema: what it means, without names of the past, order or comments.

Two texts with one meaning have one canonical catalog, one JSON document and one hash.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, assert_never

from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    AnnotationValue,
    Catalog,
    Check,
    ConstraintKind,
    Constraints,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)

JsonObject = dict[str, Any]  # Any: a JSON document
_Item = TypeVar("_Item")

# The constraints with a list of members, and their names in JSON.
MEMBER_CONSTRAINTS = {
    ConstraintKind.KEY: "Key",
    ConstraintKind.UNIQUE: "Unique",
    ConstraintKind.INDEX: "Index",
}


def shape_hash(catalog: Catalog) -> str:
    """The hash of the canonical shape."""
    return content_hash(shape_json(catalog))


def shape_json(catalog: Catalog) -> JsonObject:
    """The canonical shape as a JSON document."""
    shape = canonical_catalog(catalog)
    return {
        "interfaces": [
            {"name": type_.name, "properties": _properties_json(type_.properties)}
            for type_ in shape.interfaces.values()
        ],
        "nodes": [_node_json(type_) for type_ in shape.nodes.values()],
        "edges": [_edge_json(type_) for type_ in shape.edges.values()],
    }


def content_hash(document: JsonObject) -> str:
    """`sha256:` and the hash of the compact JSON text."""
    text = _compact(document).encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def canonical_catalog(catalog: Catalog) -> Catalog:
    """The same schema with everything sorted and unique, and without rename hints."""
    return Catalog(
        interfaces={
            name: InterfaceType(name, _canonical_properties(type_.properties))
            for name, type_ in sorted(catalog.interfaces.items())
        },
        nodes={name: _canonical_node(type_) for name, type_ in sorted(catalog.nodes.items())},
        edges={name: _canonical_edge(type_) for name, type_ in sorted(catalog.edges.items())},
    )


def _canonical_node(type_: NodeType) -> NodeType:
    return replace(
        type_,
        properties=_canonical_properties(type_.properties),
        constraints=_canonical_constraints(type_.constraints),
        annotations=_canonical_annotations(type_.annotations),
        implements=tuple(sorted(set(type_.implements))),
        rename_from=None,
    )


def _canonical_edge(type_: EdgeType) -> EdgeType:
    return replace(
        type_,
        properties=_canonical_properties(type_.properties),
        constraints=_canonical_constraints(type_.constraints),
        annotations=_canonical_annotations(type_.annotations),
        rename_from=None,
    )


def _canonical_properties(properties: Mapping[str, Property]) -> dict[str, Property]:
    return {
        name: replace(
            declared,
            annotations=_canonical_annotations(declared.annotations),
            interfaces=tuple(sorted(set(declared.interfaces))),
            rename_from=None,
        )
        for name, declared in sorted(properties.items())
    }


def _canonical_annotations(annotations: Iterable[AnnotationValue]) -> tuple[AnnotationValue, ...]:
    sorted_inside = (
        replace(written, options=tuple(sorted(dict(written.options).items())))
        for written in annotations
    )
    return _unique_by_text(sorted_inside, annotation_json)


def _canonical_constraints(constraints: Constraints) -> Constraints:
    return Constraints(
        key=None if constraints.key is None else canonical_members(constraints.key),
        uniques=tuple(sorted({canonical_members(members) for members in constraints.uniques})),
        indexes=tuple(sorted({canonical_members(members) for members in constraints.indexes})),
        ranges=_unique_by_text(constraints.ranges, range_json),
        checks=_unique_by_text(constraints.checks, check_json),
        body=tuple(sorted({(kind, canonical_members(each)) for kind, each in constraints.body})),
    )


def _unique_by_text(
    items: Iterable[_Item], to_json: Callable[[_Item], JsonObject]
) -> tuple[_Item, ...]:
    texts = {_compact(to_json(item)): item for item in items}
    return tuple(texts[text] for text in sorted(texts))


def canonical_members(members: Iterable[str]) -> tuple[str, ...]:
    """The members of a constraint, each once: `@src`, `@dst`, then properties by name."""
    ends = {SOURCE: 0, TARGET: 1}
    return tuple(sorted(set(members), key=lambda name: (ends.get(name, 2), name)))


def _node_json(type_: NodeType) -> JsonObject:
    return {
        "name": type_.name,
        "annotations": annotations_json(type_.annotations),
        "implements": list(type_.implements),
        "properties": _properties_json(type_.properties),
        "constraints": constraints_json(type_.constraints),
    }


def _edge_json(type_: EdgeType) -> JsonObject:
    return {
        "name": type_.name,
        "source": type_.source,
        "target": type_.target,
        "cardinality": {"min": type_.cardinality.minimum, "max": type_.cardinality.maximum},
        "annotations": annotations_json(type_.annotations),
        "properties": _properties_json(type_.properties),
        "constraints": constraints_json(type_.constraints),
    }


def _properties_json(properties: Mapping[str, Property]) -> list[JsonObject]:
    return [
        {
            "name": declared.name,
            "type": type_json(declared.type),
            "annotations": annotations_json(declared.annotations),
            "constraints": sorted(map(str, declared.property_constraints)),
            "embed": None
            if declared.embed is None
            else {"source": declared.embed.source, "model": declared.embed.model},
            "interfaces": list(declared.interfaces),
            "injected": declared.is_injected,
        }
        for declared in properties.values()
    ]


def type_json(type_: PropertyType) -> JsonObject:
    """The JSON form of a property type."""
    scalar, enum_values = _scalar_json(type_.value)
    return {
        "scalar": scalar,
        "nullable": type_.is_nullable,
        "list": isinstance(type_.value, ListType),
        "enum_values": enum_values,
    }


def _scalar_json(value: ValueType) -> tuple[str | dict[str, int], list[str] | None]:
    match value:
        case ScalarType(scalar):
            return str(scalar), None
        case EnumType(values):
            return str(Scalar.STRING), list(values)
        case VectorType(dimension):
            return {"Vector": dimension}, None
        case ListType(element):
            return str(element), None
        case _:
            assert_never(value)


def annotations_json(annotations: Iterable[AnnotationValue]) -> list[JsonObject]:
    """The JSON forms of annotations, in their order."""
    return [annotation_json(written) for written in annotations]


def annotation_json(written: AnnotationValue) -> JsonObject:
    """The JSON form of an annotation; `kwargs` only when there are options."""
    document: JsonObject = {"name": written.name, "value": written.value}
    if written.options:
        document["kwargs"] = dict(written.options)
    return document


def constraints_json(constraints: Constraints) -> list[JsonObject]:
    """The JSON forms of the body constraints, sorted by their text."""
    documents = [
        *(member_constraint_json(kind, members) for kind, members in constraints.body),
        *(range_json(bounds) for bounds in constraints.ranges),
        *(check_json(check) for check in constraints.checks),
    ]
    return sorted(documents, key=_compact)


def member_constraint_json(kind: ConstraintKind, members: Iterable[str]) -> JsonObject:
    """The JSON form of a key, a uniqueness or an index."""
    return {MEMBER_CONSTRAINTS[kind]: list(members)}


def range_json(bounds: Range) -> JsonObject:
    """The JSON form of a value range."""
    return {
        "Range": {
            "property": bounds.property,
            "min": _bound_json(bounds.minimum),
            "max": _bound_json(bounds.maximum),
        }
    }


def _bound_json(bound: int | float | None) -> JsonObject | None:
    if bound is None:
        return None
    if isinstance(bound, int):
        return {"Integer": bound}
    # JSON has no infinity; a literal too large for a double is one.
    return {"Float": bound if math.isfinite(bound) else str(bound)}


def check_json(check: Check) -> JsonObject:
    """The JSON form of a pattern check."""
    return {"Check": {"property": check.property, "pattern": check.pattern}}


def _compact(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
