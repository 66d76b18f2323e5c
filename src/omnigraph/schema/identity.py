"""Stable identity: numbers for the types, properties and tables of a schema.

In: the catalog of a text, and the accepted schema it replaces, if any. Out: an accepted schema with
old numbers kept, new ones drawn from one counter that never goes back, and findings about rename
hints. Guarantee: equal catalogs get equal numbers, whatever the order of their declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

from omnigraph.diagnostics import Finding, Severity
from omnigraph.ids import generate_ulid
from omnigraph.schema.accepted import (
    AcceptedSchema,
    TypeIdentity,
    TypeKey,
    TypeKind,
    hash_accepted,
    list_key_members,
    properties_of,
    types_of,
)
from omnigraph.schema.accepted_reader import decode_accepted
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.resolution import check_inert_hints, resolve_identities
from omnigraph.schema.shape import canonicalize_catalog

__all__ = [
    "Acceptance",
    "AcceptedSchema",
    "Evolution",
    "TypeIdentity",
    "TypeKey",
    "TypeKind",
    "accept_schema",
    "decode_accepted",
    "evolve_schema",
    "hash_accepted",
    "list_key_members",
]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The first schema of a graph, and the rename hints that mean nothing there."""

    schema: AcceptedSchema
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Evolution:
    """The next schema of a graph, or None when a finding is an error."""

    schema: AcceptedSchema | None
    findings: tuple[Finding, ...]


def accept_schema(
    catalog: Catalog, *, domain: str | None = None, new_id: Callable[[], str] = generate_ulid
) -> Acceptance:
    """Give every type and property of a new graph its identity; without a domain, a new one."""
    nothing = AcceptedSchema(new_id() if domain is None else domain, 1, Catalog(), {})
    schema = number_schema(nothing, catalog, {}, numbers_from=nothing.next_identity_id)
    return Acceptance(schema, tuple(check_inert_hints(catalog)))


def evolve_schema(
    accepted: AcceptedSchema, desired: Catalog, *, numbers_from: int | None = None
) -> Evolution:
    """Keep the identity of what continues, by name or by rename hint, and number the rest.

    New numbers start at the counter of the accepted schema, or at `numbers_from` above it.
    """
    resolution = resolve_identities(accepted, desired)
    if any(finding.severity is Severity.ERROR for finding in resolution.findings):
        return Evolution(None, resolution.findings)
    first = max(accepted.next_identity_id, numbers_from or 0)
    return Evolution(
        number_schema(accepted, desired, resolution.kept, numbers_from=first), resolution.findings
    )


def number_schema(
    accepted: AcceptedSchema,
    desired: Catalog,
    kept: Mapping[TypeKey, TypeIdentity],
    *,
    numbers_from: int,
) -> AcceptedSchema:
    """The schema of a catalog after another one, where some identities are kept."""
    numbers = count(numbers_from)
    types = dict(types_of(desired))
    ids = {key: kept[key].id if key in kept else next(numbers) for key in types}
    by_id = sorted(types, key=ids.__getitem__)
    properties = {}
    for key in by_id:
        old = kept[key].property_ids if key in kept else {}
        properties[key] = {
            declared.name: old[declared.name] if declared.name in old else next(numbers)
            for declared in properties_of(types[key])
        }
    incarnations = {
        key: kept[key].incarnation_id if key in kept else next(numbers)
        for key in by_id
        if key.kind is not TypeKind.INTERFACE
    }
    identities = {
        key: TypeIdentity(ids[key], incarnations.get(key), properties[key]) for key in types
    }
    beyond = next(numbers)
    return AcceptedSchema(
        domain=accepted.domain,
        # A jump over numbers that none was given from is not made.
        next_identity_id=accepted.next_identity_id if beyond == numbers_from else beyond,
        catalog=canonicalize_catalog(desired),
        identities=identities,
        aliases=_select_living_aliases(accepted.aliases, identities),
    )


def _select_living_aliases(
    aliases: Mapping[int, int], identities: Mapping[TypeKey, TypeIdentity]
) -> dict[int, int]:
    """The former numbers of what is still there."""
    living = {
        number
        for identity in identities.values()
        for number in (identity.id, *identity.property_ids.values())
    }
    return {old: new for old, new in aliases.items() if new in living}
