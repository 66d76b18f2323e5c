"""What a graph stores: entities by type and id. A stored entity is never changed in place."""

from collections.abc import Callable
from typing import Self

from model.expressions import Entity
from omnigraph.ids import generate_ulid
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_values import encode_composite_id, format_canonical
from omnigraph.schema.schema_identity import (
    AcceptedSchema,
    TypeKind,
    accept_schema,
    list_key_members,
)

Type = NodeType | EdgeType
Table = dict[str, Entity]


class Store:
    """A schema and the entities that live by it."""

    def __init__(
        self, schema: AcceptedSchema | Catalog, *, new_id: Callable[[], str] = generate_ulid
    ) -> None:
        self.accepted = accept_schema(schema).schema if isinstance(schema, Catalog) else schema
        self.catalog, self.new_id = self.accepted.catalog, new_id
        self.nodes: dict[str, Table] = {name: {} for name in self.catalog.nodes}
        self.edges: dict[str, Table] = {name: {} for name in self.catalog.edges}

    def copy(self) -> Self:
        """The same graph, to change on its own."""
        other = type(self)(self.accepted, new_id=self.new_id)
        other.nodes = {name: dict(table) for name, table in self.nodes.items()}
        other.edges = {name: dict(table) for name, table in self.edges.items()}
        return other

    def table(self, type_: Type) -> Table:
        """The entities of a type, by id."""
        return (self.edges if isinstance(type_, EdgeType) else self.nodes)[type_.name]

    def entity(self, type_: Type, values: Entity, *, id_: str | None = None) -> Entity:
        """A new entity; its id comes from its key, or is the given one, or a fresh one."""
        if type_.key is not None:
            kind = TypeKind.EDGE if isinstance(type_, EdgeType) else TypeKind.NODE
            members = list_key_members(self.accepted, type_.name, kind=kind)
            texts = identifying_texts(type_, members, values)
            id_ = texts[0] if len(texts) == 1 else encode_composite_id(texts)
        id_ = self.new_id() if id_ is None else id_
        return {"@id": id_, "@type": type_.name, **dict.fromkeys(type_.properties), **values}


def types_of(catalog: Catalog) -> list[Type]:
    """Every type, nodes first."""
    return [*catalog.nodes.values(), *catalog.edges.values()]


def identifying_texts(type_: Type, members: tuple[str, ...], entity: Entity) -> tuple[str, ...]:
    """What two entities of a type must not share; empty if a member is null."""
    if None in [entity[name] for name in members]:
        return ()
    types = {name: property_.type for name, property_ in type_.properties.items()}
    return tuple(
        format_canonical(entity[name], types[name]) if name in types else entity[name]
        for name in members
    )
