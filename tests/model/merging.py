"""The model of a three-way merge: one rule for entities, types and properties."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from model.expressions import Entity
from model.graph import ModelGraph
from model.migrating import migrated
from model.store import types_of
from model.validation import validate, validate_all
from omnigraph.errors import WriteRefusedError
from omnigraph.schema.accepted_schema import types_of as declared_types
from omnigraph.schema.catalog import Catalog, EdgeType, MergeRule, NodeType, Property
from omnigraph.schema.property_types import INTEGER_RANGES, Scalar
from omnigraph.schema.schema_identity import AcceptedSchema, TypeIdentity, TypeKey, TypeKind
from omnigraph.schema.schema_shape import canonicalize_catalog

Side = Literal["ours", "theirs"]
By = Literal["property", "entity"]
# An entity at the base, on ours and on theirs.
Sides = tuple[Entity | None, Entity | None, Entity | None]
# The states that both sides share, each with the entity as it is there.
States = list[tuple["Shared", Entity | None]]
# A kind, and the type and id of the entity or the rule that is broken.
Conflict = tuple[str, str]
# What a schema says of one thing, by the numbers of its type and, of a property, its own.
Elements = dict[tuple[int, int | None], Any]
_RULE_KINDS = {
    "not found in": "orphan_edge",
    "@unique": "unique_violation",
    "@card": "cardinality_violation",
}


class MergeConflicts(WriteRefusedError):
    """Both sides of a merge changed the same entity, or break a rule together."""

    code = "merge_conflicts"

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__("merge conflicts: " + "; ".join(map(": ".join, conflicts)))
        self.conflicts = conflicts


class Undecided(Exception):
    """Both sides changed one thing differently, and no side is preferred."""


class Shared(NamedTuple):
    """A state that both sides of a merge share, and how often its counts are added."""

    graph: ModelGraph
    weight: int
    is_base: bool


def merged(
    base: ModelGraph,
    ours: ModelGraph,
    theirs: ModelGraph,
    prefer: Mapping[str, Side],
    by: By = "property",
    shared: Iterable[Shared] = (),
) -> ModelGraph:
    """Ours with what theirs changed since the base; nothing is counted without a shared state."""
    schema = merged_schema(base.accepted, ours.accepted, theirs.accepted)
    before, mine, other = (migrated(graph, schema) for graph in (base, ours, theirs))
    shared = [each._replace(graph=migrated(each.graph, schema)) for each in shared]
    after = mine.copy()
    conflicts: list[Conflict] = []
    for type_ in types_of(schema.catalog):
        tables = [graph.table(type_) for graph in (before, mine, other)]
        for id_ in sorted(set().union(*tables)):
            old, own, new = (table.get(id_) for table in tables)
            try:
                states = [(each, each.graph.table(type_).get(id_)) for each in shared]
                found = _merged_entity(type_, (old, own, new), prefer, by, states)
            except Undecided as kind:
                conflicts.append((str(kind), f"{type_.name} '{id_}'"))
                continue
            after.table(type_).pop(id_, None)
            if found is not None:
                after.table(type_)[id_] = found
    if conflicts := conflicts or _broken_rules(mine, after):
        raise MergeConflicts(conflicts)
    return after


def _merged_entity(
    type_: NodeType | EdgeType, sides: Sides, prefer: Mapping[str, Side], by: By, states: States
) -> Entity | None:
    old, own, new = sides
    if by == "entity" or own is None or new is None:
        found: Entity | None = _chosen(sides, conflict(*sides), prefer)
        return found
    kind = "divergent_insert" if old is None else "divergent_update"
    after = dict(own)
    for names in _values(type_):
        before, mine, other = (
            {name: side.get(name) for name in names} for side in (old or {}, own, new)
        )
        [name, *others] = names
        rule = None if others or name[0] == "@" else type_.properties[name].merge
        try:
            joined = _joined(type_, rule, (before, mine, other), states)
        except OverflowError:
            if kind not in prefer:
                raise Undecided(kind) from None
            joined = None
        after |= _chosen((before, mine, other), kind, prefer) if joined is None else joined
    return after


def _joined(
    type_: NodeType | EdgeType,
    rule: MergeRule | None,
    sides: tuple[Entity, Entity, Entity],
    states: States,
) -> Entity | None:
    """What the rule of a property makes of two values; None where there is none."""
    [name, *_] = sides[0]
    old, own, new = (side[name] for side in sides)
    if rule is MergeRule.COUNTER:
        range_ = INTEGER_RANGES[type_.properties[name].type.scalar or Scalar.I64]
        return _counted(name, range_, sides, states)
    if rule is None or old in (own, new) or own == new:
        return None
    if rule is not MergeRule.SET:
        choose = max if rule is MergeRule.MAX else min
        return {name: choose(each for each in (own, new) if each is not None)}
    old, own, new = old or (), own or (), new or ()
    kept = [each for each in own if each not in old or each in new]
    found = dict.fromkeys([*kept, *(each for each in new if each not in old)])
    return {name: tuple(found)}


def _counted(
    name: str, range_: tuple[int, int], sides: tuple[Entity, Entity, Entity], states: States
) -> Entity | None:
    """What both sides counted since all that they share; that is the base of it from here on."""
    low, high = range_
    if len(states) > 1:
        shared = [None if entity is None else entity.get(name) for _, entity in states]
        at_bases = [value for (each, _), value in zip(states, shared, strict=True) if each.is_base]
        weighed = zip(states, shared, strict=True)
        total = sum(each.weight * (value or 0) for (each, _), value in weighed)
        is_counted = any(value is not None for value in at_bases)
        if _is_deleted(states) or (is_counted and not low <= total <= high):
            return None
        sides[0][name] = total if is_counted else None
    old, own, new = (side[name] for side in sides)
    if old in (own, new) or (own == new and (own is None or not states)):
        return None
    total = (own or 0) + (new or 0) - (old or 0)
    if not low <= total <= high:
        raise OverflowError
    return {name: total}


def _is_deleted(states: States) -> bool:
    """Whether some bases have an entity that others had once."""
    bases = [entity is not None for each, entity in states if each.is_base]
    older = [entity is not None for each, entity in states if not each.is_base]
    return any(bases) and not all(bases) and any(older)


def _values(type_: NodeType | EdgeType) -> list[set[str]]:
    """The properties of a type; what is one value of it together."""
    values = [{name} for name in type_.properties]
    if isinstance(type_, EdgeType):
        values.append({"@src", "@dst"})
    embedded = [each for each in type_.properties.values() if each.embed is not None]
    groups = [{each.name, each.embed.source} for each in embedded if each.embed is not None]
    for joined in (*groups, *map(set, type_.constraints.together)):
        near = [each for each in values if each & joined]
        values = [each for each in values if each not in near] + [set().union(*near)]
    return values


def _chosen(sides: tuple[Any, Any, Any], kind: str | None, prefer: Mapping[str, Side]) -> Any:
    old, own, new = sides
    if new in (old, own) or own == old:
        return own if new == old else new
    if kind is None or kind not in prefer:
        raise Undecided(kind)
    return own if prefer[kind] == "ours" else new


def conflict(old: object, own: object, new: object) -> str | None:
    """How two changes of one thing exclude each other; None stands for a thing that is absent."""
    if new in (old, own) or own == old:
        return None
    if old is None:
        return "divergent_insert"
    return "delete_vs_update" if None in (own, new) else "divergent_update"


def _broken_rules(ours: ModelGraph, after: ModelGraph) -> list[Conflict]:
    try:
        validate(ours, after, [])
        validate_all(after)
    except WriteRefusedError as violation:
        kinds = [kind for fragment, kind in _RULE_KINDS.items() if fragment in violation.message]
        return [(kinds[0] if kinds else "value_constraint_violation", violation.message)]
    return []


# ---- schemas ----


def merged_schema(
    base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> AcceptedSchema:
    """The schema of a merge: each type and each property by the rule for entities."""
    before, mine, other = map(_elements, (base, ours, theirs))
    after = dict(mine)
    wrong: list[str] = []
    for key in sorted({*before, *mine, *other}, key=str):
        old, own, new = before.get(key), mine.get(key), other.get(key)
        if conflict(old, own, new) is not None:
            names = {element.name for element in (old, own, new) if element is not None}
            wrong.append(f"{' or '.join(sorted(names))} is changed on both sides")
        elif new not in (old, own):
            after[key] = new
    after = {key: element for key, element in after.items() if element is not None}
    if wrong := wrong or list(_contradictions(after)):
        raise MergeConflicts([("schema_conflict", each) for each in wrong])
    return _schema(after, ours.domain)


@dataclass(frozen=True)
class _Type:
    """A type without its properties; the ends of an edge are numbers."""

    key: TypeKey
    incarnation: int | None
    declared: Any
    ends: tuple[int, ...]

    @property
    def name(self) -> str:
        return str(self.key)


# What a type says in another way here.
_CLEARED: dict[TypeKind, dict[str, Any]] = {
    TypeKind.INTERFACE: {"properties": {}},
    TypeKind.NODE: {"properties": {}, "rename_from": None},
    TypeKind.EDGE: {"properties": {}, "rename_from": None, "source": "", "target": ""},
}


def _elements(accepted: AcceptedSchema) -> Elements:
    found: Elements = {}
    for key, declared in declared_types(accepted.catalog):
        identity = accepted.identities[key]
        names = [declared.source, declared.target] if isinstance(declared, EdgeType) else []
        ends = tuple(accepted.identities[TypeKey(TypeKind.NODE, name)].id for name in names)
        bare: Any = replace(declared, **_CLEARED[key.kind])
        found[identity.id, None] = _Type(key, identity.incarnation_id, bare, ends)
        for name, number in identity.property_ids.items():
            found[identity.id, number] = replace(declared.properties[name], rename_from=None)
    return found


def _contradictions(elements: Elements) -> Iterable[str]:
    types = _types(elements)
    names = [type_.name for type_ in types.values()]
    yield from (f"two types are {name}" for name in _repeated(names))
    for type_ in types.values():
        if not set(type_.ends) <= types.keys():
            yield f"an end of {type_.name} is gone"
    for owner in {number for number, _ in elements}:
        names = [property_.name for property_ in _properties(elements, owner).values()]
        if owner not in types:
            yield f"{', '.join(names)} would belong to a type that is gone"
        yield from (
            f"two properties of {types[owner].name} are {name}" for name in _repeated(names)
        )


def _repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _types(elements: Elements) -> dict[int, "_Type"]:
    return {owner: type_ for (owner, number), type_ in elements.items() if number is None}


def _properties(elements: Elements, type_number: int) -> dict[int, Property]:
    return {
        number: property_
        for (owner, number), property_ in elements.items()
        if owner == type_number and number is not None
    }


def _schema(elements: Elements, domain: str) -> AcceptedSchema:
    types = _types(elements)
    catalog: dict[TypeKind, dict[str, Any]] = {kind: {} for kind in TypeKind}
    identities: dict[TypeKey, TypeIdentity] = {}
    for number, type_ in types.items():
        properties = _properties(elements, number)
        names = {property_.name: number for number, property_ in properties.items()}
        identities[type_.key] = TypeIdentity(number, type_.incarnation, names)
        ends = [types[end].key.name for end in type_.ends]
        catalog[type_.key.kind][type_.key.name] = replace(
            type_.declared,
            name=type_.key.name,
            properties={property_.name: property_ for property_ in properties.values()},
            **dict(zip(("source", "target"), ends, strict=False)),
        )
    made = Catalog(*(catalog[kind] for kind in (TypeKind.INTERFACE, TypeKind.NODE, TypeKind.EDGE)))
    return AcceptedSchema(domain, 0, canonicalize_catalog(made), identities)


def same_things(
    base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> dict[int, int]:
    """What both sides added under one name: the number of theirs, and of ours."""
    before = {number for key in _elements(base) for number in key}
    same: dict[int, int] = {}
    for key in ours.identities.keys() & theirs.identities.keys():
        mine, other = ours.identities[key], theirs.identities[key]
        if not before & {mine.id, other.id}:
            same |= {other.id: mine.id, other.incarnation_id or 0: mine.incarnation_id or 0}
        elif mine.id != other.id:
            continue
        for name in mine.property_ids.keys() & other.property_ids.keys():
            pair = other.property_ids[name], mine.property_ids[name]
            if not before & {*pair}:
                same[pair[0]] = pair[1]
    return same


def renumbered(accepted: AcceptedSchema, same: Mapping[int, int]) -> AcceptedSchema:
    """The schema with one number for each thing."""

    def known(number: int) -> int:
        return known(same[number]) if same.get(number, number) != number else number

    identities = {
        key: TypeIdentity(
            known(identity.id),
            None if identity.incarnation_id is None else known(identity.incarnation_id),
            {name: known(number) for name, number in identity.property_ids.items()},
        )
        for key, identity in accepted.identities.items()
    }
    return replace(accepted, identities=identities)
