"""Reads the document in which a graph keeps its accepted schema."""

from __future__ import annotations

from typing import Any

from omnigraph.errors import StoredSchemaError
from omnigraph.schema.accepted import (
    EDGE_KEYS,
    IR_VERSION,
    SECTIONS,
    SYSTEM_COLUMNS,
    AcceptedSchema,
    TypeIdentity,
    TypeKey,
    TypeKind,
)
from omnigraph.schema.catalog import (
    AnnotationValue,
    Cardinality,
    Catalog,
    Check,
    Constraints,
    EdgeType,
    Embed,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.shape import MEMBER_CONSTRAINTS, JsonObject, canonical_catalog
from omnigraph.schema.types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)

# The versions before feature sets, and the features each of them stood for.
_IMPLIED_FEATURES: dict[int, tuple[str, ...]] = {2: (), 4: (EDGE_KEYS,)}
_KNOWN_FEATURES = frozenset({SYSTEM_COLUMNS, EDGE_KEYS})
_CONSTRAINT_NAMES = {shown: name for name, shown in MEMBER_CONSTRAINTS.items()}


def accepted_from_json(document: JsonObject) -> AcceptedSchema:
    """The accepted schema of a document that `AcceptedSchema.to_json` made."""
    try:
        _require_known_format(document)
        accepted = AcceptedSchema(
            domain=document["domain"],
            next_identity_id=document["next_identity_id"],
            catalog=_catalog(document),
            identities=_identities(document),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as failure:
        raise StoredSchemaError(f"the stored schema is damaged: {failure!r}") from failure
    _require_sound_identities(accepted)
    return accepted


def _require_known_format(document: JsonObject) -> None:
    version = document["ir_version"]
    implied = _IMPLIED_FEATURES.get(version)
    if version != IR_VERSION and implied is None:
        raise StoredSchemaError(
            f"the stored schema has version {version}, which this program does not read",
            hint="open the graph with a newer version of the program",
        )
    features = document["features"] if implied is None else implied
    unknown = sorted(set(features) - _KNOWN_FEATURES)
    if unknown:
        raise StoredSchemaError(
            f"the stored schema needs unknown features: {', '.join(unknown)}",
            hint="open the graph with a newer version of the program",
        )


def _require_sound_identities(accepted: AcceptedSchema) -> None:
    given = [
        number
        for identity in accepted.identities.values()
        for number in (identity.id, identity.incarnation_id, *identity.property_ids.values())
        if number is not None
    ]
    within = all(0 < number < accepted.next_identity_id for number in given)
    if not within or len(set(given)) != len(given):
        raise StoredSchemaError("the stored schema is damaged: identities overlap or are unused")


def _identities(document: JsonObject) -> dict[TypeKey, TypeIdentity]:
    return {
        TypeKey(kind, described["name"]): TypeIdentity(
            id=described["id"],
            incarnation_id=None if kind is TypeKind.INTERFACE else described["incarnation_id"],
            property_ids={declared["name"]: declared["id"] for declared in described["properties"]},
        )
        for kind, section in SECTIONS.items()
        for described in document[section]
    }


def _catalog(document: JsonObject) -> Catalog:
    return canonical_catalog(
        Catalog(
            interfaces={
                described["name"]: InterfaceType(described["name"], _properties(described))
                for described in document["interfaces"]
            },
            nodes={described["name"]: _node(described) for described in document["nodes"]},
            edges={described["name"]: _edge(described) for described in document["edges"]},
        )
    )


def _node(described: JsonObject) -> NodeType:
    properties = _properties(described)
    return NodeType(
        name=described["name"],
        properties=properties,
        constraints=_constraints(described["constraints"], properties),
        annotations=_annotations(described),
        implements=tuple(map(_name, described["implements"])),
    )


def _edge(described: JsonObject) -> EdgeType:
    properties = _properties(described)
    cardinality = described["cardinality"]
    return EdgeType(
        name=described["name"],
        source=_name(described["source"]),
        target=_name(described["target"]),
        properties=properties,
        cardinality=Cardinality(cardinality["min"], cardinality["max"]),
        constraints=_constraints(described["constraints"], properties),
        annotations=_annotations(described),
    )


def _properties(described: JsonObject) -> dict[str, Property]:
    return {
        declared["name"]: Property(
            name=declared["name"],
            type=_type(declared["type"]),
            annotations=_annotations(declared),
            property_constraints=frozenset(declared["constraints"]),
            embed=_embed(declared["embed"]),
            interfaces=tuple(map(_name, declared["interfaces"])),
            is_injected=declared["injected"],
        )
        for declared in described["properties"]
    }


def _type(described: JsonObject) -> PropertyType:
    return PropertyType(_value_type(described), described["nullable"])


def _value_type(described: JsonObject) -> ValueType:
    scalar = described["scalar"]
    if isinstance(scalar, dict):
        return VectorType(scalar["Vector"])
    if described["enum_values"] is not None:
        return EnumType(tuple(described["enum_values"]))
    return ListType(Scalar(scalar)) if described["list"] else ScalarType(Scalar(scalar))


def _annotations(described: JsonObject) -> tuple[AnnotationValue, ...]:
    return tuple(
        AnnotationValue(written["name"], written["value"], tuple(written.get("kwargs", {}).items()))
        for written in described["annotations"]
    )


def _embed(described: JsonObject | None) -> Embed | None:
    return None if described is None else Embed(_name(described["source"]), described["model"])


def _constraints(described: list[JsonObject], properties: dict[str, Property]) -> Constraints:
    contents = [content for constraint in described for content in constraint.items()]
    body = tuple(
        (_CONSTRAINT_NAMES[shown], tuple(map(_name, members)))
        for shown, members in contents
        if shown in _CONSTRAINT_NAMES
    )
    written = body + tuple(
        (name, (declared.name,))
        for declared in properties.values()
        for name in declared.property_constraints
    )
    keys = [members for name, members in written if name == "key"]
    return Constraints(
        key=keys[0] if keys else None,
        uniques=tuple(members for name, members in written if name == "unique"),
        indexes=tuple(members for name, members in written if name == "index"),
        ranges=tuple(_range(content) for shown, content in contents if shown == "Range"),
        checks=tuple(
            Check(_name(content["property"]), content["pattern"])
            for shown, content in contents
            if shown == "Check"
        ),
        body=body,
    )


def _range(content: JsonObject) -> Range:
    return Range(_name(content["property"]), _bound(content["min"]), _bound(content["max"]))


def _bound(described: JsonObject | None) -> int | float | None:
    if described is None:
        return None
    return int(described["Integer"]) if "Integer" in described else float(described["Float"])


def _name(reference: Any) -> str:  # Any: a JSON value, a bare name or a number with its name
    return str(reference["name"]) if isinstance(reference, dict) else str(reference)
