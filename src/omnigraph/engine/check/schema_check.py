"""Reads each schema object once, and reports once the ones that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.engine.check.check_problems import Problems
from omnigraph.rows.view import table_types_of
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, properties_of, types_of
from omnigraph.schema.catalog import Property
from omnigraph.schema.identity_map import group_aliases
from omnigraph.schema.property_types import EnumType, Scalar
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.schema_store import Schemas, StoredSchema


class SchemaCheck:
    """The schemas that the records of a graph name."""

    def __init__(self, objects: Objects, problems: Problems) -> None:
        self._schemas = Schemas(objects)
        self._problems = problems
        self._numbers = SchemaIds()
        self._read: dict[str, StoredSchema | None] = {}
        self._types: dict[str, frozenset[str]] = {}

    def get(self, digest: str) -> StoredSchema | None:
        """A schema, or None when it cannot be read, which is reported."""
        if digest not in self._read:
            place = layout.build_schema_path(digest)
            stored = self._problems.attempt("schema", place, lambda: self._schemas.get(digest))
            self._read[digest] = stored
            for message in () if stored is None else self._numbers.find_conflicts(stored.accepted):
                self._problems.add("schema", place, message)
        return self._read[digest]

    def list_type_keys(self, digest: str) -> frozenset[str] | None:
        """The keys of the types that a schema gives tables to."""
        stored = self.get(digest)
        if stored is None:
            return None
        if digest not in self._types:
            self._types[digest] = frozenset(map(str, table_types_of(stored.catalog)))
        return self._types[digest]


@dataclass(frozen=True, slots=True)
class _IdMeaning:
    """What a number stands for: an element, what it holds, and the numbers of its owner."""

    name: str
    content: str
    owners: frozenset[int] = frozenset()
    # Whether what it holds may have been converted from another type, or to one.
    is_convertible: bool = False

    def is_compatible_with(self, other: _IdMeaning) -> bool:
        """Whether two schemas can mean the same element, which may have been renamed."""
        is_same_owner = self.owners == other.owners or bool(self.owners & other.owners)
        is_converted = self.is_convertible and other.is_convertible
        return (self.content == other.content or is_converted) and is_same_owner


class SchemaIds:
    """Collects what numbers mean, schema after schema."""

    def __init__(self) -> None:
        self._known: dict[int, _IdMeaning] = {}
        self._domain: str | None = None

    def find_conflicts(self, accepted: AcceptedSchema) -> Iterator[str]:
        """What the numbers of a schema mean otherwise than those of the schemas before it."""
        if self._domain not in (None, accepted.domain):
            yield f"its identity domain is {accepted.domain}, not {self._domain}"
        self._domain = self._domain or accepted.domain
        for number, meaning in _iter_meanings(accepted):
            known = self._known.setdefault(number, meaning)
            if known is not meaning and not known.is_compatible_with(meaning):
                yield (
                    f"number {number} is {meaning.name} ({meaning.content}),"
                    f" and {known.name} ({known.content}) in another schema"
                )


def _iter_meanings(accepted: AcceptedSchema) -> Iterator[tuple[int, _IdMeaning]]:
    former = group_aliases(accepted)
    for key, type_ in types_of(accepted.catalog):
        identity = accepted.identities[key]
        numbers = {identity.id, *former.get(identity.id, ())}
        for number in numbers:
            yield number, _IdMeaning(str(key), f"{key.kind} type")
        for declared in properties_of(type_):
            own = identity.property_ids[declared.name]
            meaning = _IdMeaning(
                _format_path(key, declared.name),
                _describe_content(declared),
                frozenset(numbers),
                is_convertible=declared.type.scalar not in (None, Scalar.BLOB),
            )
            for number in (own, *sorted(former.get(own, ()))):
                yield number, meaning


def _format_path(key: TypeKey, name: str) -> str:
    return f"{key}.{name}"


def _describe_content(declared: Property) -> str:
    """What a property holds; an enum may grow, and other models make vectors of other lengths."""
    if declared.embed is not None and declared.embed.model is not None:
        return "Vector of a text"
    value = declared.type.value
    return "enum" if isinstance(value, EnumType) else str(value)
