"""Changes of properties: added, renamed, retyped, dropped."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.accepted import TypeKind
from omnigraph.schema.catalog import Property
from omnigraph.schema.migration.annotations import plan_property_annotations
from omnigraph.schema.migration.lint_codes import REQUIRED_PROPERTY, TYPE_CHANGE
from omnigraph.schema.migration.pairing import TypePair, TypeVersion
from omnigraph.schema.migration.steps import (
    AddProperty,
    DropProperty,
    ExtendEnum,
    RenameProperty,
    Step,
    UnsupportedChange,
)
from omnigraph.schema.types import EnumType


def plan_properties(pair: TypePair) -> Iterator[Step]:
    """The steps for the properties of a type: desired ones by name, then dropped ones."""
    old, new = pair.old.index_properties(), pair.new.index_properties()
    for identity, declared in new.items():
        if identity in old:
            yield from _plan_continued(pair, old[identity], declared)
        else:
            yield _plan_added(pair, declared)
    for identity, declared in old.items():
        if identity not in new:
            yield DropProperty(pair.key, declared.name)


def _plan_added(pair: TypePair, declared: Property) -> Step:
    if declared.type.is_nullable:
        return AddProperty(pair.key, declared.name, declared.type)
    return UnsupportedChange(
        pair.format_entity(declared.name),
        f"adding the required property '{declared.name}' needs a backfill of existing entities;"
        f" make it nullable ({declared.type}?)",
        REQUIRED_PROPERTY,
    )


def _plan_continued(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    if old.name != new.name:
        yield RenameProperty(pair.key, old.name, new.name)
    if old.type != new.type:
        yield _plan_retyped(pair, old, new)
    if _embed_identity_of(pair.old, old) != _embed_identity_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(new.name),
            "changing the source or model of @embed is not supported, because stored vectors could"
            " diverge from their text; add a new property",
        )
    if _provenance_of(pair.old, old) != _provenance_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(new.name),
            "changing which interfaces give or require the property is not supported",
        )
    yield from plan_property_annotations(pair, old, new)


def _plan_retyped(pair: TypePair, old: Property, new: Property) -> Step:
    match old.type.value, new.type.value:
        case EnumType(old_values), EnumType(new_values) if (
            set(old_values) < set(new_values) and old.type.is_nullable == new.type.is_nullable
        ):
            added = tuple(sorted(set(new_values) - set(old_values)))
            return ExtendEnum(pair.key, new.name, added)
        case _:
            return UnsupportedChange(
                pair.format_entity(new.name),
                f"changing property type from {old.type} to {new.type} is not supported;"
                " add a new property",
                TYPE_CHANGE,
            )


def _embed_identity_of(
    side: TypeVersion, declared: Property
) -> tuple[int | str, str | None] | None:
    if declared.embed is None:
        return None
    return side.member_id_of(declared.embed.source), declared.embed.model


def _provenance_of(side: TypeVersion, declared: Property) -> tuple[bool, frozenset[int]]:
    interfaces = (side.type_id_of(TypeKind.INTERFACE, name) for name in declared.interfaces)
    return declared.is_injected, frozenset(interfaces)
