"""The changes of one type: its header, its annotations and its properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from omnigraph.schema.accepted_schema import DeclaredType, TypeKind
from omnigraph.schema.catalog import (
    AnnotationValue,
    Condition,
    ConstraintKind,
    Default,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    may_reembed,
)
from omnigraph.schema.migration.migration_steps import (
    REQUIRED_PROPERTY,
    TYPE_CHANGE,
    AddProperty,
    ChangeDefault,
    ChangeImplements,
    ConvertProperty,
    DropProperty,
    ExtendEnum,
    ReembedProperty,
    RelaxProperty,
    RenameProperty,
    RenameType,
    Step,
    TightenProperty,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.schema.migration.type_versions import TypePair, TypeVersion
from omnigraph.schema.migration.written_constraints import WrittenConstraint, list_constraints
from omnigraph.schema.property_types import EnumType, Scalar, ScalarType, ValueType
from omnigraph.schema.type_conversions import can_convert, is_filled, is_widening, keeps_ids

_METADATA = frozenset({"description", "instruction"})
_Annotations = tuple[AnnotationValue, ...]

# The steps for one aspect of a property that continues: its old and its new version.
PlanProperty: TypeAlias = Callable[[TypePair, Property, Property], Iterator[Step]]


@dataclass(frozen=True, slots=True)
class PropertyRules:
    """What a dialect makes of another type of a property, and of another origin."""

    retype: PlanProperty
    move: PlanProperty
    reembed: PlanProperty


def plan_type(pair: TypePair) -> Iterator[Step]:
    """The steps for what stands in the header of a type, @card aside."""
    yield from plan_rename(pair)
    match pair.old.type, pair.new.type:
        case NodeType() as old, NodeType() as new:
            yield from _plan_implements(pair, old, new)
        case EdgeType() as old_edge, EdgeType() as new_edge:
            yield from plan_ends(pair, old_edge, new_edge)
        case _:
            pass


def plan_rename(pair: TypePair) -> Iterator[Step]:
    """The step for another name of a type."""
    if pair.old.key.name != pair.key.name:
        yield RenameType(pair.key, pair.old.key.name)


def _plan_implements(pair: TypePair, old: NodeType, new: NodeType) -> Iterator[Step]:
    old_properties, new_properties = pair.old.index_properties(), pair.new.index_properties()
    moved = [
        declared.name
        for identity, declared in new_properties.items()
        if identity in old_properties
        and provenance_of(pair.old, old_properties[identity]) != provenance_of(pair.new, declared)
    ]
    if moved or have_interfaces_changed(pair, old, new):
        yield ChangeImplements(pair.key, old.implements, new.implements, tuple(moved))


def have_interfaces_changed(pair: TypePair, old: NodeType, new: NodeType) -> bool:
    """Whether a node implements other interfaces, whatever they are called."""
    return _interface_ids_of(pair.old, old.implements) != _interface_ids_of(
        pair.new, new.implements
    )


def _interface_ids_of(side: TypeVersion, names: tuple[str, ...]) -> set[int]:
    return {side.type_id_of(TypeKind.INTERFACE, name) for name in names}


def provenance_of(side: TypeVersion, declared: Property) -> tuple[bool, frozenset[int]]:
    """Whether only interfaces declare a property, and which ones do."""
    return declared.is_injected, frozenset(_interface_ids_of(side, declared.interfaces))


def plan_ends(pair: TypePair, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    """The step for other ends of an edge."""
    if _end_ids_of(pair.old, old) != _end_ids_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the ends from {old.source} -> {old.target}"
            f" to {new.source} -> {new.target} is not supported; add a new edge type",
        )


def _end_ids_of(side: TypeVersion, edge: EdgeType) -> tuple[int, int]:
    return side.type_id_of(TypeKind.NODE, edge.source), side.type_id_of(TypeKind.NODE, edge.target)


def plan_type_annotations(pair: TypePair) -> Iterator[Step]:
    """The steps for the annotations of a type."""
    old, new = _annotations_of(pair.old), _annotations_of(pair.new)
    if _select_metadata(old) != _select_metadata(new):
        yield UpdateTypeMetadata(pair.key, _select_metadata(new))
    yield from _plan_opaque(pair.format_entity(), old, new)


def _annotations_of(side: TypeVersion) -> _Annotations:
    return () if isinstance(side.type, InterfaceType) else side.type.annotations


def _select_metadata(annotations: _Annotations) -> _Annotations:
    return tuple(written for written in annotations if written.name in _METADATA)


def _plan_opaque(entity: str, old: _Annotations, new: _Annotations) -> Iterator[Step]:
    names = {written.name for written in set(old) ^ set(new)} - _METADATA
    for name in sorted(names):
        yield UnsupportedChange(
            entity, f"adding, removing or changing the annotation @{name} is not supported"
        )


def plan_properties(pair: TypePair) -> Iterator[Step]:
    """The steps for the properties of a type: desired ones by name, then dropped ones."""
    # The origin of a property is what its type implements.
    rules = PropertyRules(_plan_retyped, lambda *_: iter(()), _plan_reembedded)
    return plan_type_properties(pair, rules)


def plan_type_properties(pair: TypePair, rules: PropertyRules) -> Iterator[Step]:
    """The steps for the properties of a type by the rules of a dialect."""
    old, new = pair.old.index_properties(), pair.new.index_properties()
    for identity, declared in new.items():
        if identity in old:
            yield from _plan_continued(pair, old[identity], declared, rules)
        else:
            yield _plan_added(pair, declared)
    for identity, declared in old.items():
        if identity not in new:
            yield DropProperty(pair.key, declared.name)


def _plan_added(pair: TypePair, declared: Property) -> Step:
    if declared.type.is_nullable:
        return AddProperty(pair.key, declared.name, declared.type)
    if declared.default is not None:
        return AddProperty(pair.key, declared.name, declared.type, declared.default)
    return UnsupportedChange(
        pair.format_entity(declared.name),
        f"adding the required property '{declared.name}' needs a backfill of existing entities;"
        f" make it nullable ({declared.type}?), or give it a default",
        REQUIRED_PROPERTY,
    )


def _plan_continued(
    pair: TypePair, old: Property, new: Property, rules: PropertyRules
) -> Iterator[Step]:
    if old.name != new.name:
        yield RenameProperty(pair.key, old.name, new.name)
    is_embedded_anew = _embed_identity_of(pair.old, old) != _embed_identity_of(pair.new, new)
    if old.type != new.type and not (is_embedded_anew and may_reembed(old, new)):
        yield from rules.retype(pair, old, new)
    if is_embedded_anew:
        yield from rules.reembed(pair, old, new)
    if old.default is not new.default and _text_of(old.default) != _text_of(new.default):
        yield ChangeDefault(pair.key, new.name, old.default, new.default)
    yield from rules.move(pair, old, new)
    if _select_metadata(old.annotations) != _select_metadata(new.annotations):
        yield UpdatePropertyMetadata(pair.key, new.name, _select_metadata(new.annotations))
    yield from _plan_opaque(pair.format_entity(new.name), old.annotations, new.annotations)


def _plan_reembedded(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    """The steps for vectors that are made of other texts, or by another model."""
    if not may_reembed(old, new):
        yield refuse_reembedding(pair, new)
        return
    if not new.type.is_nullable:
        yield UnsupportedChange(
            pair.format_entity(new.name),
            f"another model empties the required property '{new.name}' until its vectors are made;"
            f" make it nullable ({new.type}?)",
            REQUIRED_PROPERTY,
        )
        return
    if not old.type.is_nullable:
        yield RelaxProperty(pair.key, new.name)
    assert old.embed is not None
    assert new.embed is not None
    yield ReembedProperty(pair.key, new.name, str(old.embed.model), str(new.embed.model))


def refuse_reembedding(pair: TypePair, new: Property) -> UnsupportedChange:
    """The refusal of another source or model of vectors."""
    return UnsupportedChange(
        pair.format_entity(new.name),
        "changing the source or model of @embed is not supported, because stored vectors could"
        " diverge from their text; add a new property",
    )


def _embed_identity_of(
    side: TypeVersion, declared: Property
) -> tuple[int | str, str | None] | None:
    if declared.embed is None:
        return None
    return side.member_id_of(declared.embed.source), declared.embed.model


def _plan_retyped(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    if old.type.value != new.type.value:
        step = _plan_converted(pair, new.name, old.type.value, new.type.value)
        step = step or _plan_rewritten(pair, old, new)
        yield step
        if isinstance(step, UnsupportedChange):
            return
    if is_filled(old, new):
        constraints = tuple(_iter_value_rules(pair, new.name))
        yield TightenProperty(pair.key, new.name, new.default, constraints)
    elif old.type.is_nullable and not new.type.is_nullable:
        yield TightenProperty(pair.key, new.name)
    if new.type.is_nullable and not old.type.is_nullable:
        yield RelaxProperty(pair.key, new.name)


def _text_of(default: Default | None) -> str | None:
    return None if default is None else default.text


def _iter_value_rules(pair: TypePair, name: str) -> Iterator[WrittenConstraint]:
    """What the new version says about the values of a property."""
    kinds = (ConstraintKind.UNIQUE, ConstraintKind.RANGE, ConstraintKind.CHECK)
    for written in list_constraints(pair.new.type):
        if written.kind in kinds and name in written.members:
            yield written


def _plan_converted(pair: TypePair, name: str, old: ValueType, new: ValueType) -> Step | None:
    """The step between two types whose values are texts."""
    match old, new:
        case EnumType(old_values), EnumType(new_values) if set(old_values) < set(new_values):
            return ExtendEnum(pair.key, name, tuple(sorted(set(new_values) - set(old_values))))
        case (EnumType(), EnumType()) | (EnumType(), ScalarType(Scalar.STRING)):
            return ConvertProperty(pair.key, name, old, new)
        case ScalarType(Scalar.STRING), EnumType():
            return ConvertProperty(pair.key, name, old, new)
        case _:
            return None


def _plan_rewritten(pair: TypePair, old: Property, new: Property) -> Step:
    """The step between two types of which one column cannot hold the values of both."""
    before, after = old.type.value, new.type.value
    is_wider = is_widening(before, after)
    if not is_wider and not can_convert(before, after):
        return refuse_type(pair, old, new)
    refuse = partial(UnsupportedChange, pair.format_entity(new.name), code=TYPE_CHANGE)
    change = f"from {before} to {after}"
    if new.name in _key_of(pair.new.type) and not keeps_ids(before, after):
        return refuse(
            f"changing the type of a key {change} is not supported, because ids would change"
        )
    conditions = tuple(_iter_kept_conditions(pair, new.name))
    if is_wider:
        return WidenProperty(pair.key, new.name, before, after, conditions)
    if not pair.may_convert:
        return refuse(
            f"changing the property type {change} converts every value; allow it"
            " (--convert, convert=True), or add a new property"
        )
    if old.name != new.name:
        return refuse(
            f"converting {change} and a rename are two changes; apply one after the other"
        )
    return ConvertProperty(pair.key, new.name, before, after, conditions)


def _iter_kept_conditions(pair: TypePair, name: str) -> Iterator[Condition]:
    """The conditions on a property that both versions have; one that is new is a step itself."""
    if isinstance(pair.old.type, InterfaceType) or isinstance(pair.new.type, InterfaceType):
        return
    known = {each.text for each in pair.old.type.constraints.conditions}
    for each in pair.new.type.constraints.conditions:
        if name in each.members and each.text in known:
            yield each


def _key_of(type_: DeclaredType) -> tuple[str, ...]:
    return () if isinstance(type_, InterfaceType) else type_.key or ()


def refuse_type(pair: TypePair, old: Property, new: Property) -> UnsupportedChange:
    """The step for a type that a property cannot get in place."""
    return UnsupportedChange(
        pair.format_entity(new.name),
        f"changing property type from {old.type} to {new.type} is not supported;"
        " add a new property",
        TYPE_CHANGE,
    )
