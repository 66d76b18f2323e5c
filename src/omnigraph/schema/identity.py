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
from omnigraph.ids import new_ulid
from omnigraph.schema.accepted import (
    AcceptedSchema,
    TypeIdentity,
    TypeKey,
    TypeKind,
    accepted_hash,
    key_order,
    properties_of,
    types_of,
)
from omnigraph.schema.accepted_reader import accepted_from_json
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.resolution import inert_hints, resolve
from omnigraph.schema.shape import canonical_catalog

__all__ = [
    "Acceptance",
    "AcceptedSchema",
    "Evolution",
    "TypeIdentity",
    "TypeKey",
    "TypeKind",
    "accept_schema",
    "accepted_from_json",
    "accepted_hash",
    "evolve_schema",
    "key_order",
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
    catalog: Catalog, *, domain: str | None = None, new_id: Callable[[], str] = new_ulid
) -> Acceptance:
    """Give every type and property of a new graph its identity; without a domain, a new one."""
    nothing = AcceptedSchema(new_id() if domain is None else domain, 1, Catalog(), {})
    return Acceptance(_numbered(nothing, catalog, {}), tuple(inert_hints(catalog)))


def evolve_schema(accepted: AcceptedSchema, desired: Catalog) -> Evolution:
    """Keep the identity of what continues, by name or by rename hint, and number the rest."""
    resolution = resolve(accepted, desired)
    if any(finding.severity is Severity.ERROR for finding in resolution.findings):
        return Evolution(None, resolution.findings)
    return Evolution(_numbered(accepted, desired, resolution.kept), resolution.findings)


def _numbered(
    accepted: AcceptedSchema, desired: Catalog, kept: Mapping[TypeKey, TypeIdentity]
) -> AcceptedSchema:
    numbers = count(accepted.next_identity_id)
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
    return AcceptedSchema(
        domain=accepted.domain,
        next_identity_id=next(numbers),
        catalog=canonical_catalog(desired),
        identities={
            key: TypeIdentity(ids[key], incarnations.get(key), properties[key]) for key in types
        },
    )
