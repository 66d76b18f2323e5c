"""Reads the document in which a graph keeps its accepted schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

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
    SOURCE,
    TARGET,
    AnnotationValue,
    Cardinality,
    Catalog,
    Check,
    ConstraintKind,
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

_KNOWN_FEATURES = frozenset({SYSTEM_COLUMNS, EDGE_KEYS})
_CONSTRAINT_KINDS = {shown: kind for kind, shown in MEMBER_CONSTRAINTS.items()}
_Json = Any  # a JSON value of any shape, checked where it is read


class _Damaged(Exception):
    """A document that no program wrote like this."""


def accepted_from_json(document: JsonObject) -> AcceptedSchema:
    """The accepted schema of a document that `AcceptedSchema.to_json` made.

    Raises `StoredSchemaError` for every other document.
    """
    try:
        _require_known_format(document)
        accepted = AcceptedSchema(
            domain=_text(document["domain"]),
            next_identity_id=_number(document["next_identity_id"]),
            catalog=_catalog(document),
            identities=_identities(document),
            aliases={_number(old): _number(new) for old, new in document.get("aliases", ())},
        )
        _require_sound_identities(accepted)
        _require_known_members(accepted.catalog)
        if _sorted_text(accepted.to_json()) != _sorted_text(document):
            raise _Damaged("a part of it is missing, repeated or out of place")
    except _Damaged as damage:
        _refuse_damage(str(damage), damage)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as failure:
        _refuse_damage("it does not have the form that this program writes", failure)
    return accepted


def _refuse_damage(reason: str, cause: Exception) -> NoReturn:
    raise StoredSchemaError(
        f"the stored schema is damaged: {reason}", hint="restore the graph from a copy"
    ) from cause


def _sorted_text(document: JsonObject) -> str:
    return json.dumps(document, sort_keys=True)


def _require_known_format(document: JsonObject) -> None:
    version = _number(document["ir_version"])
    if version != IR_VERSION:
        which = "newer version of the program" if version > IR_VERSION else "program that made it"
        raise StoredSchemaError(
            f"the stored schema has version {version}; this program reads version {IR_VERSION}",
            hint=f"open the graph with the {which}",
        )
    unknown = sorted(set(map(_text, document["features"])) - _KNOWN_FEATURES)
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
    given += accepted.aliases
    within = all(0 < number < accepted.next_identity_id for number in given)
    if not within or len(set(given)) != len(given):
        raise _Damaged("identities overlap or are unused")
    if not set(accepted.aliases.values()) <= set(given) - set(accepted.aliases):
        raise _Damaged("a former identity leads to nothing")


def _require_known_members(catalog: Catalog) -> None:
    for node in catalog.nodes.values():
        _require_members(node, set(node.properties))
    for edge in catalog.edges.values():
        _require_members(edge, {*edge.properties, SOURCE, TARGET})


def _require_members(type_: NodeType | EdgeType, known: set[str]) -> None:
    unknown = sorted(set(_members(type_)) - known)
    if unknown:
        raise _Damaged(f"{type_.name} has no member '{unknown[0]}'")


def _members(type_: NodeType | EdgeType) -> Iterator[str]:
    for _, members in type_.constraints.body:
        yield from members
    yield from (bounds.property for bounds in type_.constraints.ranges)
    yield from (check.property for check in type_.constraints.checks)
    for declared in type_.properties.values():
        if declared.embed is not None:
            yield declared.embed.source


# ---- types ----


def _identities(document: JsonObject) -> dict[TypeKey, TypeIdentity]:
    return {
        TypeKey(kind, described["name"]): TypeIdentity(
            id=_number(described["id"]),
            incarnation_id=None
            if kind is TypeKind.INTERFACE
            else _number(described["incarnation_id"]),
            property_ids={
                declared["name"]: _number(declared["id"]) for declared in described["properties"]
            },
        )
        for kind, section in SECTIONS.items()
        for described in document[section]
    }


def _catalog(document: JsonObject) -> Catalog:
    interfaces = (
        InterfaceType(_text(described["name"]), _properties(described))
        for described in document["interfaces"]
    )
    return canonical_catalog(
        Catalog(
            interfaces={interface.name: interface for interface in interfaces},
            nodes={node.name: node for node in map(_node, document["nodes"])},
            edges={edge.name: edge for edge in map(_edge, document["edges"])},
        )
    )


def _node(described: JsonObject) -> NodeType:
    properties = _properties(described)
    return NodeType(
        name=_text(described["name"]),
        properties=properties,
        constraints=_constraints(described["constraints"], properties),
        annotations=_annotations(described),
        implements=tuple(map(_name, described["implements"])),
    )


def _edge(described: JsonObject) -> EdgeType:
    properties = _properties(described)
    return EdgeType(
        name=_text(described["name"]),
        source=_name(described["source"]),
        target=_name(described["target"]),
        properties=properties,
        cardinality=_cardinality(described["cardinality"]),
        constraints=_constraints(described["constraints"], properties),
        annotations=_annotations(described),
    )


def _cardinality(described: JsonObject) -> Cardinality:
    maximum = described["max"]
    return Cardinality(_number(described["min"]), None if maximum is None else _number(maximum))


def _properties(described: JsonObject) -> dict[str, Property]:
    return {
        _text(declared["name"]): Property(
            name=declared["name"],
            type=_type(declared["type"]),
            annotations=_annotations(declared),
            property_constraints=frozenset(map(ConstraintKind, declared["constraints"])),
            embed=_embed(declared["embed"]),
            interfaces=tuple(map(_name, declared["interfaces"])),
            is_injected=_flag(declared["injected"]),
        )
        for declared in described["properties"]
    }


def _type(described: JsonObject) -> PropertyType:
    return PropertyType(_value_type(described), _flag(described["nullable"]))


def _value_type(described: JsonObject) -> ValueType:
    scalar = described["scalar"]
    if isinstance(scalar, dict):
        return VectorType(_number(scalar["Vector"]))
    if described["enum_values"] is not None:
        return EnumType(tuple(map(_text, described["enum_values"])))
    return ListType(Scalar(scalar)) if described["list"] else ScalarType(Scalar(scalar))


def _annotations(described: JsonObject) -> tuple[AnnotationValue, ...]:
    return tuple(
        AnnotationValue(
            _text(written["name"]),
            _text_or_none(written["value"]),
            tuple((name, _text(value)) for name, value in written.get("kwargs", {}).items()),
        )
        for written in described["annotations"]
    )


def _embed(described: JsonObject | None) -> Embed | None:
    if described is None:
        return None
    return Embed(_name(described["source"]), _text_or_none(described["model"]))


# ---- constraints ----


def _constraints(described: list[JsonObject], properties: dict[str, Property]) -> Constraints:
    contents = [content for constraint in described for content in constraint.items()]
    body = tuple(
        (_CONSTRAINT_KINDS[shown], tuple(map(_name, members)))
        for shown, members in contents
        if shown in _CONSTRAINT_KINDS
    )
    written = body + tuple(
        (kind, (declared.name,))
        for declared in properties.values()
        for kind in declared.property_constraints
    )
    keys = [members for kind, members in written if kind is ConstraintKind.KEY]
    if len(keys) > 1:
        raise _Damaged("a type has more than one key")
    return Constraints(
        key=keys[0] if keys else None,
        uniques=tuple(members for kind, members in written if kind is ConstraintKind.UNIQUE),
        indexes=tuple(members for kind, members in written if kind is ConstraintKind.INDEX),
        ranges=tuple(_range(content) for shown, content in contents if shown == "Range"),
        checks=tuple(
            Check(_name(content["property"]), _text(content["pattern"]))
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
    if "Integer" in described:
        return int(described["Integer"])
    return float(described["Float"])


# ---- values ----


def _name(reference: _Json) -> str:
    """The name of a reference: a bare name, or an object of a number and a name."""
    return _text(reference["name"] if isinstance(reference, dict) else reference)


def _text(value: _Json) -> str:
    if not isinstance(value, str):
        raise _Damaged("a text is missing")
    return value


def _text_or_none(value: _Json) -> str | None:
    return None if value is None else _text(value)


def _number(value: _Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Damaged("a number is missing")
    return value


def _flag(value: _Json) -> bool:
    if not isinstance(value, bool):
        raise _Damaged("a Boolean is missing")
    return value
