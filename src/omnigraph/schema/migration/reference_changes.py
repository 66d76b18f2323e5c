"""The changes that the reference refuses: whatever existing entities might contradict."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.catalog import (
    Cardinality,
    ConstraintKind,
    EdgeType,
    NodeType,
    Property,
    may_reembed,
)
from omnigraph.schema.migration.constraint_changes import index_constraints, plan_indexes
from omnigraph.schema.migration.migration_steps import ExtendEnum, Step, UnsupportedChange
from omnigraph.schema.migration.type_changes import (
    PropertyRules,
    have_interfaces_changed,
    plan_ends,
    plan_rename,
    plan_type_properties,
    provenance_of,
    refuse_reembedding,
    refuse_type,
)
from omnigraph.schema.migration.type_versions import TypePair
from omnigraph.schema.migration.written_constraints import CARD, format_bounds
from omnigraph.schema.property_types import EnumType


def plan_reference_type(pair: TypePair) -> Iterator[Step]:
    """The steps for what stands in the header of a type."""
    yield from plan_rename(pair)
    match pair.old.type, pair.new.type:
        case NodeType() as old, NodeType() as new:
            if have_interfaces_changed(pair, old, new):
                yield UnsupportedChange(
                    pair.format_entity(),
                    f"changing the implemented interfaces from ({', '.join(old.implements)})"
                    f" to ({', '.join(new.implements)}) is not supported",
                )
        case EdgeType() as old_edge, EdgeType() as new_edge:
            yield from plan_ends(pair, old_edge, new_edge)
            yield from _plan_cardinality(pair, old_edge.cardinality, new_edge.cardinality)
        case _:
            pass


def _plan_cardinality(pair: TypePair, old: Cardinality, new: Cardinality) -> Iterator[Step]:
    if old != new:
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the cardinality from {format_bounds(old.minimum, old.maximum)}"
            f" to {format_bounds(new.minimum, new.maximum)} is not supported",
        )


def plan_reference_properties(pair: TypePair) -> Iterator[Step]:
    """The steps for the properties of a type."""
    rules = PropertyRules(_plan_retyped, _plan_moved, _refuse_reembedding)
    return plan_type_properties(pair, rules)


def _plan_retyped(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    match old.type.value, new.type.value:
        case EnumType(old_values), EnumType(new_values) if (
            set(old_values) < set(new_values) and old.type.is_nullable == new.type.is_nullable
        ):
            added = tuple(sorted(set(new_values) - set(old_values)))
            yield ExtendEnum(pair.key, new.name, added)
        case _:
            yield refuse_type(pair, old, new)


def _refuse_reembedding(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    if old.type != new.type and may_reembed(old, new):
        yield refuse_type(pair, old, new)
    yield refuse_reembedding(pair, new)


def _plan_moved(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    if provenance_of(pair.old, old) != provenance_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(new.name),
            "changing which interfaces give or require the property is not supported",
        )


def plan_reference_constraints(pair: TypePair) -> Iterator[Step]:
    """The steps for the constraints of a type: removed ones, then added ones."""
    old, new = index_constraints(pair.old), index_constraints(pair.new)
    for identity, written in old.items():
        if identity not in new and written.kind != CARD:
            yield UnsupportedChange(
                pair.format_entity(written.place), f"removing {written} is not supported"
            )
    added = [written for identity, written in new.items() if identity not in old]
    yield from plan_indexes(pair, added)
    for written in added:
        if written.kind not in (ConstraintKind.INDEX, CARD):
            yield UnsupportedChange(
                pair.format_entity(written.place),
                f"adding {written} to an existing type is not supported",
            )
