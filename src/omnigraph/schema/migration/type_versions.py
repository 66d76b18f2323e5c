"""A type before and after a migration, paired by its identity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.schema.accepted_schema import (
    AcceptedSchema,
    DeclaredType,
    TypeKey,
    TypeKind,
    properties_of,
    types_of,
)
from omnigraph.schema.catalog import Property


@dataclass(frozen=True, slots=True)
class TypeVersion:
    """One type in one schema, with names turned into identities."""

    key: TypeKey
    type: DeclaredType
    schema: AcceptedSchema

    def member_id_of(self, name: str) -> int | str:
        """The identity of a property; other members, such as `@src`, stand for themselves."""
        found = self.schema.find_property_id(self.key, name)
        return name if found is None else found

    def type_id_of(self, kind: TypeKind, name: str) -> int:
        """The identity of another type."""
        return self.schema.identities[TypeKey(kind, name)].id

    def index_properties(self) -> dict[int, Property]:
        """Every property by identity, in the order of names."""
        ids = self.schema.identities[self.key].property_ids
        return {ids[declared.name]: declared for declared in properties_of(self.type)}


@dataclass(frozen=True, slots=True)
class TypePair:
    """A type before and after the migration; `key` is its new name.

    With `may_convert`, values may get a type that is not a wider one.
    """

    old: TypeVersion
    new: TypeVersion
    may_convert: bool = False

    @property
    def key(self) -> TypeKey:
        """The type as it will be called."""
        return self.new.key

    def format_entity(self, property_name: str | None = None) -> str:
        """The type, or one of its properties, as an unsupported change names it."""
        return str(self.key) if property_name is None else f"{self.key}.{property_name}"


def iter_type_versions(schema: AcceptedSchema, kind: TypeKind) -> Iterator[tuple[int, TypeVersion]]:
    """Every type of a kind with its identity, by name."""
    for key, type_ in types_of(schema.catalog):
        if key.kind is kind:
            yield schema.identities[key].id, TypeVersion(key, type_, schema)
