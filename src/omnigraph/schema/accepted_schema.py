"""The schema in force on a graph: a catalog, and the numbers that identify what it names.

Names are labels. A type, a property and a table incarnation are the same thing for as long as their
number stays the same, whatever they are called. Plain data; `schema_identity` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.format_version import IR_VERSION
from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    Catalog,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
)
from omnigraph.schema.converted_columns import name_first_column
from omnigraph.schema.schema_shape import JsonObject, encode_shape, hash_document

SYSTEM_COLUMNS = "system-columns"
EDGE_KEYS = "edge-keys"
MERGE_RULES = "merge-rules"
CONVERTED_COLUMNS = "converted-columns"
EXPRESSION_CHECKS = "expression-checks"
DEFAULTS = "defaults"

DeclaredType = InterfaceType | NodeType | EdgeType


class TypeKind(StrEnum):
    """What a type declares, in the order in which identities are given and changes planned."""

    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"

    # That of an enum calls Python code, and tables are looked up by kinds all the time.
    __hash__ = str.__hash__


# Where the types of each kind stand in a document.
SECTIONS = {TypeKind.INTERFACE: "interfaces", TypeKind.NODE: "nodes", TypeKind.EDGE: "edges"}


@dataclass(frozen=True, slots=True)
class TypeKey:
    """A kind and a name; shown as `node:City`."""

    kind: TypeKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class TypeIdentity:
    """The numbers of one type; an interface has no table and so no incarnation."""

    id: int
    incarnation_id: int | None
    property_ids: Mapping[str, int]


@dataclass(frozen=True)
class AcceptedSchema:
    """A canonical catalog (everything sorted by name) with the identity of each type in it.

    `aliases` are the numbers that types and properties had on branches that were merged into this
    one, each with the number that it has here. `columns` are those of properties, by number, whose
    values were converted to another type; all others are in the columns that they were born with.
    """

    domain: str
    next_identity_id: int
    catalog: Catalog
    identities: Mapping[TypeKey, TypeIdentity]
    aliases: Mapping[int, int] = field(default_factory=dict)
    columns: Mapping[int, str] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        """What a reader must know to use this schema, sorted."""
        found = {SYSTEM_COLUMNS}
        if any(edge.key is not None for edge in self.catalog.edges.values()):
            found.add(EDGE_KEYS)
        properties = [each for _, type_ in types_of(self.catalog) for each in properties_of(type_)]
        has_rules = any(declared.merge is not None for declared in properties)
        if any(declared.default is not None for declared in properties):
            found.add(DEFAULTS)
        nodes, edges = self.catalog.nodes.values(), self.catalog.edges.values()
        constraints = [type_.constraints for types in (nodes, edges) for type_ in types]
        if has_rules or any(each.together for each in constraints):
            found.add(MERGE_RULES)
        if self.columns:
            found.add(CONVERTED_COLUMNS)
        if any(each.conditions for each in constraints):
            found.add(EXPRESSION_CHECKS)
        return tuple(sorted(found))

    def find_property_id(self, owner: TypeKey, name: str) -> int | None:
        """The number of a property, or None when the type has no such property."""
        return self.identities[owner].property_ids.get(name)

    def find_column(self, number: int) -> str:
        """The column that holds the values of a property."""
        return self.columns.get(number) or name_first_column(number)

    def to_json(self) -> JsonObject:
        """The document a graph keeps; references carry both number and name."""
        return {
            "ir_version": IR_VERSION,
            "features": list(self.features),
            "domain": self.domain,
            "next_identity_id": self.next_identity_id,
            # Most graphs have none: their documents do not mention them.
            **({"aliases": list(map(list, sorted(self.aliases.items())))} if self.aliases else {}),
            **({"columns": list(map(list, sorted(self.columns.items())))} if self.columns else {}),
            **_encode_with_identities(self),
        }


def types_of(catalog: Catalog) -> Iterator[tuple[TypeKey, DeclaredType]]:
    """Every type of a catalog by kind, then by name."""
    kinds: tuple[tuple[TypeKind, Mapping[str, DeclaredType]], ...] = (
        (TypeKind.INTERFACE, catalog.interfaces),
        (TypeKind.NODE, catalog.nodes),
        (TypeKind.EDGE, catalog.edges),
    )
    for kind, types in kinds:
        for name in sorted(types):
            yield TypeKey(kind, name), types[name]


def properties_of(type_: DeclaredType) -> Iterator[Property]:
    """Every property of a type, by name."""
    for name in sorted(type_.properties):
        yield type_.properties[name]


def hash_accepted(accepted: AcceptedSchema) -> str:
    """The hash of the whole accepted schema: equal only within one identity domain."""
    return hash_document(accepted.to_json())


def list_key_members(
    accepted: AcceptedSchema, type_name: str, *, kind: TypeKind | None = None
) -> tuple[str, ...]:
    """The key members in the order a physical id lists them; empty for a keyless type.

    Ends come first, then properties by their number, so a rename never changes an id. Without a
    kind, a node of that name wins over an edge.
    """
    if kind is None:
        kind = TypeKind.NODE if type_name in accepted.catalog.nodes else TypeKind.EDGE
    types = accepted.catalog.nodes if kind is TypeKind.NODE else accepted.catalog.edges
    ids = accepted.identities[TypeKey(kind, type_name)].property_ids
    members = types[type_name].key or ()
    ends = tuple(end for end in (SOURCE, TARGET) if end in members)
    return ends + tuple(sorted((name for name in members if name not in ends), key=ids.__getitem__))


def _encode_with_identities(accepted: AcceptedSchema) -> JsonObject:
    document = encode_shape(accepted.catalog)
    for kind, section in SECTIONS.items():
        for described in document[section]:
            _identify_type(described, kind, accepted)
    return document


def _identify_type(described: JsonObject, kind: TypeKind, accepted: AcceptedSchema) -> None:
    identity = accepted.identities[TypeKey(kind, described["name"])]
    described["id"] = identity.id
    if identity.incarnation_id is not None:
        described["incarnation_id"] = identity.incarnation_id
    for end in ("source", "target"):
        if end in described:
            described[end] = _encode_type_reference(TypeKind.NODE, described[end], accepted)
    if "implements" in described:
        described["implements"] = _encode_interface_references(described["implements"], accepted)
    for declared in described["properties"]:
        _identify_property(declared, identity, accepted)
    for constraint in described.get("constraints", ()):
        _identify_members(constraint, identity)


def _identify_property(declared: JsonObject, owner: TypeIdentity, accepted: AcceptedSchema) -> None:
    declared["id"] = owner.property_ids[declared["name"]]
    declared["interfaces"] = _encode_interface_references(declared["interfaces"], accepted)
    if declared["embed"] is not None:
        declared["embed"]["source"] = _encode_property_reference(declared["embed"]["source"], owner)
    if "default" in declared:
        members = declared["default"]["members"]
        declared["default"]["members"] = [
            _encode_property_reference(each, owner) for each in members
        ]


def _identify_members(constraint: JsonObject, owner: TypeIdentity) -> None:
    for name, content in constraint.items():
        if isinstance(content, list):
            constraint[name] = [_encode_property_reference(member, owner) for member in content]
        elif "members" in content:
            members = content["members"]
            content["members"] = [_encode_property_reference(each, owner) for each in members]
        else:
            content["property"] = _encode_property_reference(content["property"], owner)


def _encode_interface_references(names: list[str], accepted: AcceptedSchema) -> list[JsonObject]:
    return [_encode_type_reference(TypeKind.INTERFACE, name, accepted) for name in names]


def _encode_type_reference(kind: TypeKind, name: str, accepted: AcceptedSchema) -> JsonObject:
    return {"id": accepted.identities[TypeKey(kind, name)].id, "name": name}


def _encode_property_reference(name: str, owner: TypeIdentity) -> JsonObject | str:
    # Edge ends are not properties, and an interface may name a text that only its nodes have.
    found = owner.property_ids.get(name)
    return name if found is None else {"id": found, "name": name}
