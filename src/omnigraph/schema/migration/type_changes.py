"""The changes of one type, whose old and new version are paired by identity.

Properties are added, renamed, retyped or dropped; annotations and constraints change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.text_printer import quote_string
from omnigraph.schema.accepted_schema import (
    AcceptedSchema,
    DeclaredType,
    TypeKey,
    TypeKind,
    properties_of,
    types_of,
)
from omnigraph.schema.catalog import (
    AnnotationValue,
    Cardinality,
    ConstraintKind,
    Constraints,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.migration.migration_steps import (
    REQUIRED_PROPERTY,
    TYPE_CHANGE,
    AddIndex,
    AddProperty,
    DropProperty,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.schema.property_types import EnumType

_METADATA = frozenset({"description", "instruction"})
_Annotations = tuple[AnnotationValue, ...]

# Where a constraint was written, its kind, the identities it names, and its other arguments.
_Identity = tuple[str, ConstraintKind, tuple[int | str, ...], str]


@dataclass(frozen=True, slots=True)
class TypeVersion:
    """One type in one schema, with names turned into identities."""

    key: TypeKey
    type: DeclaredType
    schema: AcceptedSchema

    @property
    def constraints(self) -> Constraints:
        """The constraints of the type; an interface has only those on its properties."""
        return Constraints() if isinstance(self.type, InterfaceType) else self.type.constraints

    def member_id_of(self, name: str) -> int | str:
        """The identity of a property; other members, such as `@src`, stand for themselves."""
        found = self.schema.find_property_id(self.key, name)
        return name if found is None else found

    def type_id_of(self, kind: TypeKind, name: str) -> int:
        """The identity of another type."""
        return self.schema.identities[TypeKey(kind, name)].id

    def index_properties(self) -> dict[int, Property]:
        """Every property by identity, in the order of names."""
        ids = self.schema.identities[self.key].property_ids
        return {ids[declared.name]: declared for declared in properties_of(self.type)}


@dataclass(frozen=True, slots=True)
class TypePair:
    """A type before and after the migration; `key` is its new name."""

    old: TypeVersion
    new: TypeVersion

    @property
    def key(self) -> TypeKey:
        """The type as it will be called."""
        return self.new.key

    def format_entity(self, property_name: str | None = None) -> str:
        """The type, or one of its properties, as an unsupported change names it."""
        return str(self.key) if property_name is None else f"{self.key}.{property_name}"


def iter_type_versions(schema: AcceptedSchema, kind: TypeKind) -> Iterator[tuple[int, TypeVersion]]:
    """Every type of a kind with its identity, by name."""
    for key, type_ in types_of(schema.catalog):
        if key.kind is kind:
            yield schema.identities[key].id, TypeVersion(key, type_, schema)


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


def plan_type_annotations(pair: TypePair) -> Iterator[Step]:
    """The steps for the annotations of a type."""
    old, new = _annotations_of(pair.old), _annotations_of(pair.new)
    if _select_metadata(old) != _select_metadata(new):
        yield UpdateTypeMetadata(pair.key, _select_metadata(new))
    yield from _plan_opaque(pair.format_entity(), old, new)


def plan_property_annotations(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    """The steps for the annotations of a property."""
    if _select_metadata(old.annotations) != _select_metadata(new.annotations):
        yield UpdatePropertyMetadata(pair.key, new.name, _select_metadata(new.annotations))
    yield from _plan_opaque(pair.format_entity(new.name), old.annotations, new.annotations)


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


@dataclass(frozen=True, slots=True)
class _PrintedConstraint:
    """A constraint as people read it; `property` when it stands on a property."""

    kind: ConstraintKind
    members: tuple[str, ...]
    detail: str = ""
    property: str | None = None

    def __str__(self) -> str:
        return f"@{self.kind}({', '.join((*self.members, *filter(None, (self.detail,))))})"


def plan_constraints(pair: TypePair) -> Iterator[Step]:
    """The steps for the constraints of a type: removed ones, then added ones."""
    old, new = _index_by_identity(pair.old), _index_by_identity(pair.new)
    for identity, written in old.items():
        if identity not in new:
            yield UnsupportedChange(
                pair.format_entity(written.property), f"removing {written} is not supported"
            )
    added = [written for identity, written in new.items() if identity not in old]
    indexes = dict.fromkeys(
        written.members for written in added if written.kind is ConstraintKind.INDEX
    )
    for members in indexes:
        yield AddIndex(pair.key, members)
    for written in added:
        if written.kind is not ConstraintKind.INDEX:
            yield UnsupportedChange(
                pair.format_entity(written.property),
                f"adding {written} to an existing type is not supported",
            )


def _index_by_identity(side: TypeVersion) -> dict[_Identity, _PrintedConstraint]:
    found = {}
    for written in _iter_constraints(side):
        place = "body" if written.property is None else "property"
        # The members keep their order by name, which a rename may change.
        members = sorted((side.member_id_of(name) for name in written.members), key=str)
        found[place, written.kind, tuple(members), written.detail] = written
    return found


def _iter_constraints(side: TypeVersion) -> Iterator[_PrintedConstraint]:
    for declared in side.index_properties().values():
        for kind in sorted(declared.property_constraints):
            yield _PrintedConstraint(kind, (declared.name,), property=declared.name)
    for kind, members in side.constraints.body:
        yield _PrintedConstraint(kind, members)
    for bounds in side.constraints.ranges:
        yield _PrintedConstraint(ConstraintKind.RANGE, (bounds.property,), _format_range(bounds))
    for check in side.constraints.checks:
        yield _PrintedConstraint(
            ConstraintKind.CHECK, (check.property,), quote_string(check.pattern)
        )


def _format_range(bounds: Range) -> str:
    low, high = ("" if bound is None else repr(bound) for bound in (bounds.minimum, bounds.maximum))
    return f"{low}..{high}"


def plan_type(pair: TypePair) -> Iterator[Step]:
    """The steps for what stands in the header of a type."""
    if pair.old.key.name != pair.key.name:
        yield RenameType(pair.key, pair.old.key.name)
    match pair.old.type, pair.new.type:
        case NodeType() as old, NodeType() as new:
            yield from _plan_implements(pair, old, new)
        case EdgeType() as old_edge, EdgeType() as new_edge:
            yield from _plan_ends(pair, old_edge, new_edge)
            yield from _plan_cardinality(pair, old_edge, new_edge)
        case _:
            pass


def _plan_implements(pair: TypePair, old: NodeType, new: NodeType) -> Iterator[Step]:
    if _interface_ids_of(pair.old, old.implements) != _interface_ids_of(pair.new, new.implements):
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the implemented interfaces from ({', '.join(old.implements)})"
            f" to ({', '.join(new.implements)}) is not supported",
        )


def _interface_ids_of(side: TypeVersion, names: tuple[str, ...]) -> set[int]:
    return {side.type_id_of(TypeKind.INTERFACE, name) for name in names}


def _plan_ends(pair: TypePair, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    if _end_ids_of(pair.old, old) != _end_ids_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the ends from {old.source} -> {old.target}"
            f" to {new.source} -> {new.target} is not supported; add a new edge type",
        )


def _end_ids_of(side: TypeVersion, edge: EdgeType) -> tuple[int, int]:
    return side.type_id_of(TypeKind.NODE, edge.source), side.type_id_of(TypeKind.NODE, edge.target)


def _plan_cardinality(pair: TypePair, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    if old.cardinality != new.cardinality:
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the cardinality from {_format_cardinality(old.cardinality)}"
            f" to {_format_cardinality(new.cardinality)} is not supported",
        )


def _format_cardinality(cardinality: Cardinality) -> str:
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"{cardinality.minimum}..{maximum}"
