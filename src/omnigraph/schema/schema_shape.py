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
    Condition,
    ConstraintKind,
    Constraints,
    Default,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.property_types import (
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
    ConstraintKind.TOGETHER: "Together",
}


def hash_shape(catalog: Catalog) -> str:
    """The hash of the canonical shape."""
    return hash_document(encode_shape(catalog))


def encode_shape(catalog: Catalog) -> JsonObject:
    """The canonical shape as a JSON document."""
    shape = canonicalize_catalog(catalog)
    return {
        "interfaces": [
            {"name": type_.name, "properties": _encode_properties(type_.properties)}
            for type_ in shape.interfaces.values()
        ],
        "nodes": [_encode_node(type_) for type_ in shape.nodes.values()],
        "edges": [_encode_edge(type_) for type_ in shape.edges.values()],
    }


def hash_document(document: JsonObject) -> str:
    """`sha256:` and the hash of the compact JSON text."""
    text = _encode_compact(document).encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def canonicalize_catalog(catalog: Catalog) -> Catalog:
    """The same schema with everything sorted and unique, and without rename hints."""
    return Catalog(
        interfaces={
            name: InterfaceType(name, _canonicalize_properties(type_.properties))
            for name, type_ in sorted(catalog.interfaces.items())
        },
        nodes={name: _canonicalize_node(type_) for name, type_ in sorted(catalog.nodes.items())},
        edges={name: _canonicalize_edge(type_) for name, type_ in sorted(catalog.edges.items())},
    )


def _canonicalize_node(type_: NodeType) -> NodeType:
    return replace(
        type_,
        properties=_canonicalize_properties(type_.properties),
        constraints=_canonicalize_constraints(type_.constraints),
        annotations=_canonicalize_annotations(type_.annotations),
        implements=tuple(sorted(set(type_.implements))),
        rename_from=None,
    )


def _canonicalize_edge(type_: EdgeType) -> EdgeType:
    return replace(
        type_,
        properties=_canonicalize_properties(type_.properties),
        constraints=_canonicalize_constraints(type_.constraints),
        annotations=_canonicalize_annotations(type_.annotations),
        rename_from=None,
    )


def _canonicalize_properties(properties: Mapping[str, Property]) -> dict[str, Property]:
    return {
        name: replace(
            declared,
            annotations=_canonicalize_annotations(declared.annotations),
            interfaces=tuple(sorted(set(declared.interfaces))),
            rename_from=None,
        )
        for name, declared in sorted(properties.items())
    }


def _canonicalize_annotations(
    annotations: Iterable[AnnotationValue],
) -> tuple[AnnotationValue, ...]:
    sorted_inside = (
        replace(written, options=tuple(sorted(dict(written.options).items())))
        for written in annotations
    )
    return _deduplicate_by_text(sorted_inside, encode_annotation)


def _canonicalize_constraints(constraints: Constraints) -> Constraints:
    return Constraints(
        key=None if constraints.key is None else canonicalize_members(constraints.key),
        uniques=tuple(sorted({canonicalize_members(members) for members in constraints.uniques})),
        together=tuple(sorted(set(map(canonicalize_members, constraints.together)))),
        indexes=tuple(sorted({canonicalize_members(members) for members in constraints.indexes})),
        ranges=_deduplicate_by_text(constraints.ranges, encode_range),
        checks=_deduplicate_by_text(constraints.checks, encode_check),
        conditions=_deduplicate_by_text(constraints.conditions, encode_condition),
        body=tuple(sorted({(kind, canonicalize_members(each)) for kind, each in constraints.body})),
    )


def _deduplicate_by_text(
    items: Iterable[_Item], to_json: Callable[[_Item], JsonObject]
) -> tuple[_Item, ...]:
    texts = {_encode_compact(to_json(item)): item for item in items}
    return tuple(texts[text] for text in sorted(texts))


def canonicalize_members(members: Iterable[str]) -> tuple[str, ...]:
    """The members of a constraint, each once: `@src`, `@dst`, then properties by name."""
    ends = {SOURCE: 0, TARGET: 1}
    return tuple(sorted(set(members), key=lambda name: (ends.get(name, 2), name)))


def _encode_node(type_: NodeType) -> JsonObject:
    return {
        "name": type_.name,
        "annotations": encode_annotations(type_.annotations),
        "implements": list(type_.implements),
        "properties": _encode_properties(type_.properties),
        "constraints": encode_constraints(type_.constraints),
    }


def _encode_edge(type_: EdgeType) -> JsonObject:
    return {
        "name": type_.name,
        "source": type_.source,
        "target": type_.target,
        "cardinality": {"min": type_.cardinality.minimum, "max": type_.cardinality.maximum},
        "annotations": encode_annotations(type_.annotations),
        "properties": _encode_properties(type_.properties),
        "constraints": encode_constraints(type_.constraints),
    }


def _encode_properties(properties: Mapping[str, Property]) -> list[JsonObject]:
    return [
        {
            "name": declared.name,
            "type": encode_type(declared.type),
            "annotations": encode_annotations(declared.annotations),
            "constraints": sorted(map(str, declared.property_constraints)),
            "embed": None
            if declared.embed is None
            else {"source": declared.embed.source, "model": declared.embed.model},
            "interfaces": list(declared.interfaces),
            "injected": declared.is_injected,
            # Most have none: their documents do not mention it.
            **({} if declared.merge is None else {"merge": str(declared.merge)}),
            **({} if declared.default is None else {"default": encode_default(declared.default)}),
        }
        for declared in properties.values()
    ]


def encode_default(default: Default) -> JsonObject:
    """The JSON form of a default."""
    return {"expression": default.text, "members": list(default.members)}


def encode_type(type_: PropertyType) -> JsonObject:
    """The JSON form of a property type."""
    scalar, enum_values = _encode_scalar(type_.value)
    return {
        "scalar": scalar,
        "nullable": type_.is_nullable,
        "list": isinstance(type_.value, ListType),
        "enum_values": enum_values,
    }


def _encode_scalar(value: ValueType) -> tuple[str | dict[str, int], list[str] | None]:
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


def encode_annotations(annotations: Iterable[AnnotationValue]) -> list[JsonObject]:
    """The JSON forms of annotations, in their order."""
    return [encode_annotation(written) for written in annotations]


def encode_annotation(written: AnnotationValue) -> JsonObject:
    """The JSON form of an annotation; `kwargs` only when there are options."""
    document: JsonObject = {"name": written.name, "value": written.value}
    if written.options:
        document["kwargs"] = dict(written.options)
    return document


def encode_constraints(constraints: Constraints) -> list[JsonObject]:
    """The JSON forms of the body constraints, sorted by their text."""
    documents = [
        *(encode_member_constraint(kind, members) for kind, members in constraints.body),
        *(encode_range(bounds) for bounds in constraints.ranges),
        *(encode_check(check) for check in constraints.checks),
        *(encode_condition(condition) for condition in constraints.conditions),
    ]
    return sorted(documents, key=_encode_compact)


def encode_member_constraint(kind: ConstraintKind, members: Iterable[str]) -> JsonObject:
    """The JSON form of a key, a uniqueness or an index."""
    return {MEMBER_CONSTRAINTS[kind]: list(members)}


def encode_range(bounds: Range) -> JsonObject:
    """The JSON form of a value range."""
    return {
        "Range": {
            "property": bounds.property,
            "min": _encode_bound(bounds.minimum),
            "max": _encode_bound(bounds.maximum),
        }
    }


def _encode_bound(bound: int | float | None) -> JsonObject | None:
    if bound is None:
        return None
    if isinstance(bound, int):
        return {"Integer": bound}
    # JSON has no infinity; a literal too large for a double is one.
    return {"Float": bound if math.isfinite(bound) else str(bound)}


def encode_check(check: Check) -> JsonObject:
    """The JSON form of a pattern check."""
    return {"Check": {"property": check.property, "pattern": check.pattern}}


def encode_condition(condition: Condition) -> JsonObject:
    """The JSON form of a check of an expression."""
    return {"Condition": {"expression": condition.text, "members": list(condition.members)}}


def _encode_compact(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
