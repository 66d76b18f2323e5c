"""Stable identity: numbers for the types, properties and tables of a schema.

In: the catalog of a text, and the accepted schema it replaces, if any. Out: an accepted schema with
old numbers kept, new ones drawn from one counter that never goes back, and findings about rename
hints. Guarantee: equal catalogs get equal numbers, whatever the order of their declarations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from omnigraph.ids import generate_ulid
from omnigraph.lang.diagnostics import Finding, Severity
from omnigraph.lang.spellcheck import CANDIDATES_MAX, suggest_similar
from omnigraph.lang.text_printer import quote_string
from omnigraph.schema.accepted_decoder import decode_accepted
from omnigraph.schema.accepted_schema import (
    AcceptedSchema,
    DeclaredType,
    TypeIdentity,
    TypeKey,
    TypeKind,
    hash_accepted,
    list_key_members,
    properties_of,
    types_of,
)
from omnigraph.schema.catalog import Catalog, InterfaceType, Property
from omnigraph.schema.converted_columns import (
    name_filled_column,
    name_first_column,
    name_next_column,
    name_next_vector_column,
)
from omnigraph.schema.schema_shape import canonicalize_catalog
from omnigraph.schema.type_conversions import are_stored_alike, is_filled

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
    numbered = AcceptedSchema(
        domain=accepted.domain,
        # A jump over numbers that none was given from is not made.
        next_identity_id=accepted.next_identity_id if beyond == numbers_from else beyond,
        catalog=canonicalize_catalog(desired),
        identities=identities,
        aliases=_select_living_aliases(accepted.aliases, identities),
    )
    return replace(numbered, columns=_choose_columns(accepted, numbered))


def _choose_columns(old: AcceptedSchema, new: AcceptedSchema) -> dict[int, str]:
    """The columns of properties that were converted before, or are converted now."""
    before, columns = dict(_iter_stored_properties(old)), dict[int, str]()
    texts, models = index_embeds(old), index_embeds(new)
    for number, declared in _iter_stored_properties(new):
        if number not in before:
            continue
        column, value = old.find_column(number), declared.type.value
        if number in texts and number in models and texts[number] != models[number]:
            column = name_next_vector_column(number, column)
        elif not are_stored_alike(before[number].type.value, value):
            column = name_next_column(number, value, column)
        elif is_filled(before[number], declared):
            column = name_filled_column(number, column)
        if column != name_first_column(number):
            columns[number] = column
    return columns


def _iter_stored_properties(accepted: AcceptedSchema) -> Iterator[tuple[int, Property]]:
    """Every property that has a column, with its number."""
    for key, type_ in types_of(accepted.catalog):
        ids = accepted.identities[key].property_ids
        if key.kind is not TypeKind.INTERFACE:
            for declared in properties_of(type_):
                yield ids[declared.name], declared


def index_embeds(accepted: AcceptedSchema) -> dict[int, tuple[int, str]]:
    """The text and the model of each vector that a model makes, by the numbers of both."""
    found = {}
    for key, type_ in types_of(accepted.catalog):
        ids = accepted.identities[key].property_ids
        for declared in properties_of(type_) if key.kind is not TypeKind.INTERFACE else ():
            if declared.embed is not None and declared.embed.model is not None:
                source = ids[declared.embed.source]
                found[ids[declared.name]] = (source, declared.embed.model)
    return found


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


@dataclass(frozen=True, slots=True)
class IdentityResolution:
    """The identities that desired types keep, with only the properties that keep theirs."""

    kept: Mapping[TypeKey, TypeIdentity]
    findings: tuple[Finding, ...]


def resolve_identities(accepted: AcceptedSchema, desired: Catalog) -> IdentityResolution:
    """Match every desired type and property, and report every rename hint without effect."""
    types = dict(types_of(desired))
    findings: list[Finding] = []
    kept: dict[TypeKey, TypeIdentity] = {}
    renamed: dict[TypeKey, str] = {}
    for kind in TypeKind:
        hints = {key.name: _type_hint_of(type_) for key, type_ in types.items() if key.kind is kind}
        known = frozenset(key.name for key in accepted.identities if key.kind is kind)
        scope = _TypeScope(kind, known, accepted)
        names = _match_names(hints, scope.known)
        renamed |= {TypeKey(kind, name): old for name, old in names.items()}
        findings += _check_hints(hints, names, scope)
    owners = _collect_property_owners(accepted)
    for key, type_ in types.items():
        if key in renamed:
            old = TypeKey(key.kind, renamed[key])
            identity = accepted.identities[old]
            property_hints = _collect_property_hints(type_, identity.property_ids)
            names = _match_names(property_hints, identity.property_ids)
            kept[key] = _keep_identity(identity, names)
            properties = _PropertyScope(key, old, frozenset(identity.property_ids), owners)
            findings += _check_hints(property_hints, names, properties)
        elif _type_hint_of(type_) is None:
            findings += _check_imported_hints(key, type_)
    return IdentityResolution(kept, tuple(findings))


def check_inert_hints(catalog: Catalog) -> Iterator[Finding]:
    """Every rename hint of a new graph's schema: there is nothing to rename."""
    for key, type_ in types_of(catalog):
        hint = _type_hint_of(type_)
        written = [(str(key), hint)] if hint is not None else []
        written += [(f"{key}.{name}", hint) for name, hint in _iter_written_hints(type_)]
        for entity, old_name in written:
            yield Finding(
                "S035",
                Severity.INFO,
                f"@rename_from({quote_string(old_name)}) has no effect on a new graph"
                " (inert_initialization_rename_hint)",
                entity,
            )


def _match_names(hints: Mapping[str, str | None], known: Collection[str]) -> dict[str, str]:
    claims = {name: name if name in known else hint for name, hint in hints.items()}
    claimants = Counter(claims.values())
    return {
        name: claimed
        for name, claimed in claims.items()
        if claimed is not None and claimed in known and (claimed == name or claimants[claimed] == 1)
    }


def _keep_identity(old: TypeIdentity, names: Mapping[str, str]) -> TypeIdentity:
    properties = {name: old.property_ids[old_name] for name, old_name in names.items()}
    return TypeIdentity(old.id, old.incarnation_id, properties)


def _type_hint_of(type_: DeclaredType) -> str | None:
    return None if isinstance(type_, InterfaceType) else type_.rename_from


def _collect_property_hints(type_: DeclaredType, known: Collection[str]) -> dict[str, str | None]:
    hints: dict[str, str | None] = {}
    for declared in properties_of(type_):
        hint = declared.rename_from
        # An injected hint was written for the interface: it counts on a node only where it fits.
        fits = declared.name not in known and hint in known and hint not in type_.properties
        hints[declared.name] = hint if fits or not declared.is_injected else None
    return hints


def _iter_written_hints(type_: DeclaredType) -> Iterator[tuple[str, str]]:
    for declared in properties_of(type_):
        if declared.rename_from is not None and not declared.is_injected:
            yield declared.name, declared.rename_from


def _collect_property_owners(accepted: AcceptedSchema) -> dict[str, TypeKey]:
    owners: dict[str, TypeKey] = {}
    for key, identity in accepted.identities.items():
        for name in identity.property_ids:
            owners.setdefault(name, key)
    return owners


@dataclass(frozen=True, slots=True)
class _TypeScope:
    """The types of one kind."""

    kind: TypeKind
    known: Collection[str]
    accepted: AcceptedSchema

    def format_entity(self, name: str) -> str:
        return str(TypeKey(self.kind, name))

    def describe(self, name: str) -> str:
        return f"{self.kind} type '{name}'"

    def describe_unknown(self, hint: str) -> tuple[str, str]:
        """The code and the message for a hint that is not known here."""
        for kind in TypeKind:
            if TypeKey(kind, hint) in self.accepted.identities:
                message = (
                    f"names an accepted {kind}: a rename across declaration kinds is not possible"
                )
                return "S031", f"{message}; remove the hint to add a new type"
        return "S030", f"names no accepted {self.kind} type{_suggest_known(hint, self.known)}"


@dataclass(frozen=True, slots=True)
class _PropertyScope:
    """The properties of one type, which was called `old`."""

    key: TypeKey
    old: TypeKey
    known: Collection[str]
    owners: Mapping[str, TypeKey]

    def format_entity(self, name: str) -> str:
        return f"{self.key}.{name}"

    def describe(self, name: str) -> str:
        return f"property '{name}' of {self.old}"

    def describe_unknown(self, hint: str) -> tuple[str, str]:
        """The code and the message for a hint that is not known here."""
        if hint in self.owners:
            message = (
                f"names a property of {self.owners[hint]}: moves across owners are unsupported"
            )
            return "S033", f"{message}; remove the hint to add a new property"
        return "S030", f"names no accepted property of {self.old}{_suggest_known(hint, self.known)}"


def _check_hints(
    hints: Mapping[str, str | None],
    names: Mapping[str, str],
    scope: _TypeScope | _PropertyScope,
) -> Iterator[Finding]:
    for name, hint in hints.items():
        if hint is None or names.get(name) == hint != name:
            continue
        entity = scope.format_entity(name)
        if name in names and hint in scope.known and names.get(hint) != hint:
            # Ignored, it would drop what its author means to keep.
            yield Finding(
                "S037",
                Severity.ERROR,
                f"@rename_from({quote_string(hint)}) names {scope.describe(hint)}, and '{name}' is"
                " in force beside it: two cannot become one; remove the hint, then what no longer"
                " stands in the schema is dropped",
                entity,
            )
        elif name in names:
            yield Finding(
                "S036",
                Severity.INFO,
                f"@rename_from({quote_string(hint)}) is ignored"
                " because the name is already accepted (ignored_exact_match_rename_hint)",
                entity,
            )
        elif hint in scope.known:
            yield Finding(
                "S032",
                Severity.ERROR,
                f"{scope.describe(hint)} is consumed more than once;"
                " let only one declaration continue it",
                entity,
            )
        else:
            code, message = scope.describe_unknown(hint)
            yield Finding(
                code, Severity.ERROR, f"@rename_from({quote_string(hint)}) {message}", entity
            )


def _check_imported_hints(key: TypeKey, type_: DeclaredType) -> Iterator[Finding]:
    for name, hint in _iter_written_hints(type_):
        yield Finding(
            "S034",
            Severity.ERROR,
            f"@rename_from({quote_string(hint)}) cannot import the identity of a property"
            f" into {key}, which is a new type; remove the hint",
            f"{key}.{name}",
        )


def _suggest_known(hint: str, known: Collection[str]) -> str:
    # Searching a long list once per wrong hint would take quadratic time.
    guess = suggest_similar(hint, known) if len(known) <= CANDIDATES_MAX else None
    return "" if guess is None else f"; {guess}"
