"""What the numbers of a graph's schemas mean: on all branches and at all commits the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.schema.accepted import AcceptedSchema, TypeKey, properties_of, types_of
from omnigraph.schema.continuity import group_aliases
from omnigraph.schema.types import EnumType, PropertyType


@dataclass(frozen=True, slots=True)
class _IdMeaning:
    """What a number stands for: an element, what it holds, and the numbers of its owner."""

    name: str
    content: str
    owners: frozenset[int] = frozenset()

    def is_compatible_with(self, other: _IdMeaning) -> bool:
        """Whether two schemas can mean the same element, which may have been renamed."""
        is_same_owner = self.owners == other.owners or bool(self.owners & other.owners)
        return self.content == other.content and is_same_owner


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
                _format_path(key, declared.name), _describe_type(declared.type), frozenset(numbers)
            )
            for number in (own, *sorted(former.get(own, ()))):
                yield number, meaning


def _format_path(key: TypeKey, name: str) -> str:
    return f"{key}.{name}"


def _describe_type(type_: PropertyType) -> str:
    """What a property holds; an enum may grow."""
    return "enum" if isinstance(type_.value, EnumType) else str(type_.value)
