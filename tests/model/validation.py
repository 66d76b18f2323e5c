"""The rules of a schema, checked once on the image after a write."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import re2

from model.expressions import At, Entity
from model.store import Store, Type, identifying_texts, types_of
from omnigraph.errors import WriteRefusedError
from omnigraph.query.entity_conditions import compile_condition
from omnigraph.query.query_descriptor import list_used_types
from omnigraph.query.typed_reads import Read
from omnigraph.query.typed_tree import ROW
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.property_types import EnumType

Batch = tuple[Type, list[Entity]]


def validate(before: Store, after: Store, batches: Sequence[Batch]) -> None:
    """Refuse the first violation; a batch holds the entities one statement or load wrote."""
    types = types_of(after.catalog)
    for type_ in types:
        old = before.table(type_)
        for id_, entity in after.table(type_).items():
            if old.get(id_) is not entity:
                _check_values(type_, entity)
    for type_ in types:
        written = [entities for owner, entities in batches if owner is type_]
        for members in (*type_.constraints.uniques, *filter(None, [type_.key])):
            for entities in (*written, after.table(type_).values()):
                _check_unique(type_, members, entities)
        if isinstance(type_, EdgeType):
            _check_ends(type_, after)
            _check_cardinality(type_, before, after)


def require_ends(store: Store, read: Read) -> None:
    """Refuse edges without their nodes, of the types that a pattern reads."""
    names = {use.type_name for use in list_used_types(read, store.catalog)}
    for type_ in types_of(store.catalog):
        if type_.name in names and isinstance(type_, EdgeType):
            _check_ends(type_, store)


def validate_all(store: Store) -> None:
    """Refuse the first violation in a whole graph, whatever its entities obeyed before."""
    nothing = store.copy()
    for type_ in types_of(store.catalog):
        nothing.table(type_).clear()
        for entity in store.table(type_).values():
            for name, property_ in type_.properties.items():
                if entity[name] is None and not property_.type.is_nullable:
                    raise WriteRefusedError(f"{type_.name}.{name} is null")
    validate(nothing, store, [])


def _check_values(type_: Type, entity: Entity) -> None:
    for name, property_ in type_.properties.items():
        value, kind = entity[name], property_.type.value
        if isinstance(kind, EnumType) and value not in (None, *kind.values):
            raise WriteRefusedError(f"invalid enum value '{value}' for {type_.name}.{name}")
    for bounds in type_.constraints.ranges:
        value = entity[bounds.property]
        low = -math.inf if bounds.minimum is None else float(bounds.minimum)
        high = math.inf if bounds.maximum is None else float(bounds.maximum)
        if value is not None and not low <= float(value) <= high:
            raise WriteRefusedError(f"@range violation on {type_.name}.{bounds.property}: {value}")
    for check in type_.constraints.checks:
        value = entity[check.property]
        if value is not None and not re2.search(check.pattern, value):
            raise WriteRefusedError(f"@check violation on {type_.name}.{check.property}: '{value}'")
    for condition in type_.constraints.conditions:
        expr = compile_condition(condition.text, type_)
        if At({ROW: entity}, {})(expr) is False:
            raise WriteRefusedError(f"@check violation on {type_.name}: {condition.text}")


def _check_unique(type_: Type, members: tuple[str, ...], entities: Iterable[Entity]) -> None:
    found = Counter(identifying_texts(type_, members, entity) for entity in entities)
    found[()] = 0
    for texts, count in found.items():
        if count > 1:
            name = members[0] if len(members) == 1 else f"({', '.join(members)})"
            raise WriteRefusedError(f"@unique violation on {type_.name}.{name}: {', '.join(texts)}")


def _check_ends(type_: EdgeType, after: Store) -> None:
    for edge in after.table(type_).values():
        for end, node_type in (("src", type_.source), ("dst", type_.target)):
            if edge[f"@{end}"] not in after.nodes[node_type]:
                raise WriteRefusedError(f"{end} '{edge[f'@{end}']}' not found in {node_type}")


def _check_cardinality(type_: EdgeType, before: Store, after: Store) -> None:
    """Only sources whose edges the write touched, and that still exist, are counted."""
    old, new = before.table(type_), after.table(type_)
    touched = [
        t[id_]
        for id_ in old | new
        if old.get(id_) is not new.get(id_)
        for t in (old, new)
        if id_ in t
    ]
    counts = Counter(edge["@src"] for edge in new.values())
    low, high = type_.cardinality.minimum, type_.cardinality.maximum
    for source in sorted({edge["@src"] for edge in touched} & after.nodes[type_.source].keys()):
        count = counts[source]
        if count < low or (high is not None and count > high):
            bound = f"min {low}" if count < low else f"max {high}"
            has = f"source '{source}' has {count} edges ({bound})"
            raise WriteRefusedError(f"@card violation on edge {type_.name}: {has}")
