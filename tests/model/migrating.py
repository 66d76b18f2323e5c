"""The model of a migration: what keeps its number keeps its entities and their values."""

from dataclasses import replace
from typing import Any

from model.expressions import Entity
from model.graph import ModelGraph
from model.validation import validate_all
from omnigraph.errors import MigrationUnsupportedError, WriteRefusedError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.migration import plan_migration
from omnigraph.schema.property_types import FLOATS, NUMERIC
from omnigraph.schema.schema_identity import AcceptedSchema, TypeIdentity, TypeKind, evolve_schema


def evolved(accepted: AcceptedSchema, desired: Catalog, *, first_number: int) -> AcceptedSchema:
    """The next schema; what is new gets numbers from the given one on."""
    accepted = replace(accepted, next_identity_id=first_number)
    schema = evolve_schema(accepted, desired).schema
    if schema is None or plan_migration(accepted, desired, convert=True).schema is None:
        raise MigrationUnsupportedError("not supported")
    return schema


def checked(graph: ModelGraph, schema: AcceptedSchema) -> ModelGraph:
    """The graph under another schema, if its entities obey that."""
    after = migrated(graph, schema)
    try:
        validate_all(after)
    except WriteRefusedError as violation:
        raise MigrationUnsupportedError(violation.message) from violation
    return after


def migrated(graph: ModelGraph, schema: AcceptedSchema) -> ModelGraph:
    """The same entities under another schema: values follow their numbers, the others are null."""
    other = ModelGraph(schema, new_id=graph.new_id)
    old_keys = {identity.id: key for key, identity in graph.accepted.identities.items()}
    for key, identity in schema.identities.items():
        old_key = old_keys.get(identity.id)
        if old_key is None or key.kind is TypeKind.INTERFACE:
            continue
        is_edge = key.kind is TypeKind.EDGE
        table = (graph.edges if is_edge else graph.nodes)[old_key.name]
        old = graph.accepted.identities[old_key]
        declared = (schema.catalog.edges if is_edge else schema.catalog.nodes)[key.name]
        (other.edges if is_edge else other.nodes)[key.name] = {
            id_: _converted(_renamed(entity, key.name, old, identity), declared)
            for id_, entity in table.items()
        }
    return other


def _converted(entity: Entity, type_: NodeType | EdgeType) -> Entity:
    """The same entity with numbers of the types that its properties have now."""
    made = dict(entity)
    for name, declared in type_.properties.items():
        if made[name] is not None and declared.type.scalar in NUMERIC:
            made[name] = (float if declared.type.scalar in FLOATS else int)(made[name])
    return made


def _renamed(entity: Entity, type_name: str, old: TypeIdentity, new: TypeIdentity) -> Entity:
    values: dict[int, Any] = {number: entity[name] for name, number in old.property_ids.items()}
    system = {name: value for name, value in entity.items() if name.startswith("@")}
    found = {name: values.get(number) for name, number in new.property_ids.items()}
    return {**system, "@type": type_name, **found}
