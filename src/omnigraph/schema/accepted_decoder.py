"""Reads the document in which a graph keeps its accepted schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from omnigraph.errors import StoredSchemaError
from omnigraph.format_version import IR_VERSION
from omnigraph.schema.accepted_schema import (
    CONVERTED_COLUMNS,
    DEFAULTS,
    EDGE_KEYS,
    EXPRESSION_CHECKS,
    MERGE_RULES,
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
    Condition,
    ConstraintKind,
    Constraints,
    Default,
    EdgeType,
    Embed,
    InterfaceType,
    MergeRule,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.converted_columns import is_column_of
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)
from omnigraph.schema.schema_shape import MEMBER_CONSTRAINTS, JsonObject, canonicalize_catalog

_KNOWN_FEATURES = frozenset(
    {SYSTEM_COLUMNS, EDGE_KEYS, MERGE_RULES, CONVERTED_COLUMNS, EXPRESSION_CHECKS, DEFAULTS}
)
_CONSTRAINT_KINDS = {shown: kind for kind, shown in MEMBER_CONSTRAINTS.items()}
_Json = Any  # a JSON value of any shape, checked where it is read


class _InvalidDocumentError(Exception):
    """A document that no program wrote like this."""


def decode_accepted(document: JsonObject) -> AcceptedSchema:
    """The accepted schema of a document that `AcceptedSchema.to_json` made.

    Raises `StoredSchemaError` for every other document.
    """
    try:
        _require_known_format(document)
        accepted = AcceptedSchema(
            domain=_require_text(document["domain"]),
            next_identity_id=_require_number(document["next_identity_id"]),
            catalog=_decode_catalog(document),
            identities=_decode_identities(document),
            aliases={
                _require_number(old): _require_number(new)
                for old, new in document.get("aliases", ())
            },
            columns={
                _require_number(number): _require_text(column)
                for number, column in document.get("columns", ())
            },
        )
        _require_sound_identities(accepted)
        _require_known_members(accepted.catalog)
        if _encode_sorted(accepted.to_json()) != _encode_sorted(document):
            raise _InvalidDocumentError("a part of it is missing, repeated or out of place")
    except _InvalidDocumentError as damage:
        _raise_damaged(str(damage), damage)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as failure:
        _raise_damaged("it does not have the form that this program writes", failure)
    return accepted


def _raise_damaged(reason: str, cause: Exception) -> NoReturn:
    raise StoredSchemaError(
        f"the stored schema is damaged: {reason}", hint="restore the graph from a copy"
    ) from cause


def _encode_sorted(document: JsonObject) -> str:
    return json.dumps(document, sort_keys=True)


def _require_known_format(document: JsonObject) -> None:
    version = _require_number(document["ir_version"])
    if version != IR_VERSION:
        which = "newer version of the program" if version > IR_VERSION else "program that made it"
        raise StoredSchemaError(
            f"the stored schema has version {version}; this program reads version {IR_VERSION}",
            hint=f"open the graph with the {which}",
        )
    unknown = sorted(set(map(_require_text, document["features"])) - _KNOWN_FEATURES)
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
        raise _InvalidDocumentError("identities overlap or are unused")
    if not set(accepted.aliases.values()) <= set(given) - set(accepted.aliases):
        raise _InvalidDocumentError("a former identity leads to nothing")
    properties = {
        number
        for key, identity in accepted.identities.items()
        if key.kind is not TypeKind.INTERFACE
        for number in identity.property_ids.values()
    }
    if not all(
        each in properties and is_column_of(each, c) for each, c in accepted.columns.items()
    ):
        raise _InvalidDocumentError("a column belongs to no property")


def _require_known_members(catalog: Catalog) -> None:
    for node in catalog.nodes.values():
        _require_members(node, set(node.properties))
    for edge in catalog.edges.values():
        _require_members(edge, {*edge.properties, SOURCE, TARGET})


def _require_members(type_: NodeType | EdgeType, known: set[str]) -> None:
    unknown = sorted(set(_iter_members(type_)) - known)
    if unknown:
        raise _InvalidDocumentError(f"{type_.name} has no member '{unknown[0]}'")


def _iter_members(type_: NodeType | EdgeType) -> Iterator[str]:
    for _, members in type_.constraints.body:
        yield from members
    yield from (bounds.property for bounds in type_.constraints.ranges)
    yield from (check.property for check in type_.constraints.checks)
    for condition in type_.constraints.conditions:
        yield from condition.members
    for declared in type_.properties.values():
        if declared.embed is not None:
            yield declared.embed.source
        if declared.default is not None:
            yield from declared.default.members


# ---- types ----


def _decode_identities(document: JsonObject) -> dict[TypeKey, TypeIdentity]:
    return {
        TypeKey(kind, described["name"]): TypeIdentity(
            id=_require_number(described["id"]),
            incarnation_id=None
            if kind is TypeKind.INTERFACE
            else _require_number(described["incarnation_id"]),
            property_ids={
                declared["name"]: _require_number(declared["id"])
                for declared in described["properties"]
            },
        )
        for kind, section in SECTIONS.items()
        for described in document[section]
    }


def _decode_catalog(document: JsonObject) -> Catalog:
    interfaces = (
        InterfaceType(_require_text(described["name"]), _decode_properties(described))
        for described in document["interfaces"]
    )
    return canonicalize_catalog(
        Catalog(
            interfaces={interface.name: interface for interface in interfaces},
            nodes={node.name: node for node in map(_decode_node, document["nodes"])},
            edges={edge.name: edge for edge in map(_decode_edge, document["edges"])},
        )
    )


def _decode_node(described: JsonObject) -> NodeType:
    properties = _decode_properties(described)
    return NodeType(
        name=_require_text(described["name"]),
        properties=properties,
        constraints=_decode_constraints(described["constraints"], properties),
        annotations=_decode_annotations(described),
        implements=tuple(map(_decode_name, described["implements"])),
    )


def _decode_edge(described: JsonObject) -> EdgeType:
    properties = _decode_properties(described)
    return EdgeType(
        name=_require_text(described["name"]),
        source=_decode_name(described["source"]),
        target=_decode_name(described["target"]),
        properties=properties,
        cardinality=_decode_cardinality(described["cardinality"]),
        constraints=_decode_constraints(described["constraints"], properties),
        annotations=_decode_annotations(described),
    )


def _decode_cardinality(described: JsonObject) -> Cardinality:
    maximum = described["max"]
    return Cardinality(
        _require_number(described["min"]), None if maximum is None else _require_number(maximum)
    )


def _decode_properties(described: JsonObject) -> dict[str, Property]:
    return {
        _require_text(declared["name"]): Property(
            name=declared["name"],
            type=_decode_type(declared["type"]),
            annotations=_decode_annotations(declared),
            property_constraints=frozenset(map(ConstraintKind, declared["constraints"])),
            embed=_decode_embed(declared["embed"]),
            interfaces=tuple(map(_decode_name, declared["interfaces"])),
            is_injected=_require_flag(declared["injected"]),
            merge=MergeRule(declared["merge"]) if "merge" in declared else None,
            default=_decode_default(declared["default"]) if "default" in declared else None,
        )
        for declared in described["properties"]
    }


def _decode_type(described: JsonObject) -> PropertyType:
    return PropertyType(_decode_value_type(described), _require_flag(described["nullable"]))


def _decode_value_type(described: JsonObject) -> ValueType:
    scalar = described["scalar"]
    if isinstance(scalar, dict):
        return VectorType(_require_number(scalar["Vector"]))
    if described["enum_values"] is not None:
        return EnumType(tuple(map(_require_text, described["enum_values"])))
    return ListType(Scalar(scalar)) if described["list"] else ScalarType(Scalar(scalar))


def _decode_annotations(described: JsonObject) -> tuple[AnnotationValue, ...]:
    return tuple(
        AnnotationValue(
            _require_text(written["name"]),
            _require_text_or_none(written["value"]),
            tuple(
                (name, _require_text(value)) for name, value in written.get("kwargs", {}).items()
            ),
        )
        for written in described["annotations"]
    )


def _decode_embed(described: JsonObject | None) -> Embed | None:
    if described is None:
        return None
    return Embed(_decode_name(described["source"]), _require_text_or_none(described["model"]))


# ---- constraints ----


def _decode_constraints(
    described: list[JsonObject], properties: dict[str, Property]
) -> Constraints:
    contents = [content for constraint in described for content in constraint.items()]
    body = tuple(
        (_CONSTRAINT_KINDS[shown], tuple(map(_decode_name, members)))
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
        raise _InvalidDocumentError("a type has more than one key")
    return Constraints(
        key=keys[0] if keys else None,
        uniques=tuple(members for kind, members in written if kind is ConstraintKind.UNIQUE),
        indexes=tuple(members for kind, members in written if kind is ConstraintKind.INDEX),
        together=tuple(members for kind, members in written if kind is ConstraintKind.TOGETHER),
        ranges=tuple(_decode_range(content) for shown, content in contents if shown == "Range"),
        checks=tuple(
            Check(_decode_name(content["property"]), _require_text(content["pattern"]))
            for shown, content in contents
            if shown == "Check"
        ),
        conditions=tuple(
            Condition(
                _require_text(content["expression"]), tuple(map(_decode_name, content["members"]))
            )
            for shown, content in contents
            if shown == "Condition"
        ),
        body=body,
    )


def _decode_range(content: JsonObject) -> Range:
    return Range(
        _decode_name(content["property"]),
        _decode_bound(content["min"]),
        _decode_bound(content["max"]),
    )


def _decode_bound(described: JsonObject | None) -> int | float | None:
    if described is None:
        return None
    if "Integer" in described:
        return int(described["Integer"])
    return float(described["Float"])


# ---- values ----


def _decode_default(described: JsonObject) -> Default:
    members = tuple(map(_decode_name, described["members"]))
    return Default(_require_text(described["expression"]), members)


def _decode_name(reference: _Json) -> str:
    """The name of a reference: a bare name, or an object of a number and a name."""
    return _require_text(reference["name"] if isinstance(reference, dict) else reference)


def _require_text(value: _Json) -> str:
    if not isinstance(value, str):
        raise _InvalidDocumentError("a text is missing")
    return value


def _require_text_or_none(value: _Json) -> str | None:
    return None if value is None else _require_text(value)


def _require_number(value: _Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _InvalidDocumentError("a number is missing")
    return value


def _require_flag(value: _Json) -> bool:
    if not isinstance(value, bool):
        raise _InvalidDocumentError("a Boolean is missing")
    return value
