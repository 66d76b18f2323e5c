"""Maps the types and properties of one schema to those of another, by identity.

Numbers decide: within a graph nothing else ever gets the same one. What two branches added
separately and a merge joined has one of both numbers, and the other one as an alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey

_NOTHING: Mapping[str, str] = {}
_Named = TypeVar("_Named", str, TypeKey)


@dataclass(frozen=True)
class IdentityMap:
    """The types that two schemas share, by their names in the older one, with their names now."""

    types: Mapping[TypeKey, TypeKey]
    _properties: Mapping[TypeKey, Mapping[str, str]] = field(default_factory=dict)

    def properties_of(self, old_key: TypeKey) -> Mapping[str, str]:
        """The properties that a type keeps, by their old names, with their names now."""
        return self._properties.get(old_key, _NOTHING)


def map_identities(
    old: AcceptedSchema, new: AcceptedSchema, *, by_name: bool = False
) -> IdentityMap:
    """The types and properties that continue from one schema to another.

    With `by_name`, a type or property that neither schema knows by number continues under its own
    name: two branches may have added the same thing.
    """
    types = dict(
        _pair_names(
            _collect_type_numbers(old),
            _collect_type_numbers(new),
            _NumberMatcher(old, new),
            by_name,
        )
    )
    properties = {
        key: dict(
            _pair_names(
                old.identities[key].property_ids,
                new.identities[new_key].property_ids,
                _NumberMatcher(old, new),
                by_name,
            )
        )
        for key, new_key in types.items()
    }
    return IdentityMap(types, properties)


def group_aliases(accepted: AcceptedSchema) -> dict[int, frozenset[int]]:
    """Every number in use that has aliases, with them."""
    found: dict[int, set[int]] = {}
    for alias, number in accepted.aliases.items():
        found.setdefault(number, set()).add(alias)
    return {number: frozenset(aliases) for number, aliases in found.items()}


class _NumberMatcher:
    """Compares the numbers of two schemas, each with its aliases."""

    def __init__(self, old: AcceptedSchema, new: AcceptedSchema) -> None:
        self._former = group_aliases(old)
        self._aliases = new.aliases

    def iter_new_numbers(self, number: int) -> Iterator[int]:
        """The numbers that an old one may have in the new schema."""
        for each in (number, *sorted(self._former.get(number, ()))):
            yield self._aliases.get(each, each)


def _collect_type_numbers(accepted: AcceptedSchema) -> dict[TypeKey, int]:
    return {key: identity.id for key, identity in accepted.identities.items()}


def _pair_names(
    old: Mapping[_Named, int], new: Mapping[_Named, int], numbers: _NumberMatcher, by_name: bool
) -> Iterator[tuple[_Named, _Named]]:
    names = {number: name for name, number in new.items()}
    missing, taken = [], set()
    for name, number in old.items():
        now = next(
            (names[each] for each in numbers.iter_new_numbers(number) if each in names), None
        )
        if now is None:
            missing.append(name)
        else:
            taken.add(now)
            yield name, now
    if by_name:
        yield from _pair_same_names(missing, new, taken)


def _pair_same_names(
    missing: Iterable[_Named], new: Mapping[_Named, int], taken: set[_Named]
) -> Iterator[tuple[_Named, _Named]]:
    for name in missing:
        if name in new and name not in taken:
            yield name, name
