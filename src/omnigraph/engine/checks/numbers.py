"""What the numbers of a graph's schemas mean: on all branches and at all commits the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.schema.accepted import AcceptedSchema, TypeKey, properties_of, types_of
from omnigraph.schema.continuity import former_numbers
from omnigraph.schema.types import EnumType, PropertyType


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a number stands for: an element, what it holds, and the numbers of its owner."""

    name: str
    holds: str
    owners: frozenset[int] = frozenset()

    def agrees(self, other: _Meaning) -> bool:
        """Whether two schemas can mean the same element, which may have been renamed."""
        is_same_owner = self.owners == other.owners or bool(self.owners & other.owners)
        return self.holds == other.holds and is_same_owner


class Numbers:
    """Collects what numbers mean, schema after schema."""

    def __init__(self) -> None:
        self._known: dict[int, _Meaning] = {}
        self._domain: str | None = None

    def differing(self, accepted: AcceptedSchema) -> Iterator[str]:
        """What the numbers of a schema mean otherwise than those of the schemas before it."""
        if self._domain not in (None, accepted.domain):
            yield f"its identity domain is {accepted.domain}, not {self._domain}"
        self._domain = self._domain or accepted.domain
        for number, meaning in _meanings(accepted):
            known = self._known.setdefault(number, meaning)
            if known is not meaning and not known.agrees(meaning):
                yield (
                    f"number {number} is {meaning.name} ({meaning.holds}),"
                    f" and {known.name} ({known.holds}) in another schema"
                )


def _meanings(accepted: AcceptedSchema) -> Iterator[tuple[int, _Meaning]]:
    former = former_numbers(accepted)
    for key, type_ in types_of(accepted.catalog):
        identity = accepted.identities[key]
        numbers = {identity.id, *former.get(identity.id, ())}
        for number in numbers:
            yield number, _Meaning(str(key), f"{key.kind} type")
        for declared in properties_of(type_):
            own = identity.property_ids[declared.name]
            meaning = _Meaning(_path(key, declared.name), _held(declared.type), frozenset(numbers))
            for number in (own, *sorted(former.get(own, ()))):
                yield number, meaning


def _path(key: TypeKey, name: str) -> str:
    return f"{key}.{name}"


def _held(type_: PropertyType) -> str:
    """What a property holds; an enum may grow."""
    return "enum" if isinstance(type_.value, EnumType) else str(type_.value)
