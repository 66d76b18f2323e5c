"""Plans between two schema texts."""

from __future__ import annotations

from omnigraph.schema import load_catalog
from omnigraph.schema.migration import (
    MigrationPlan,
    PlanDialect,
    Step,
    UnsupportedChange,
    plan_migration,
)
from omnigraph.schema.schema_identity import (
    AcceptedSchema,
    TypeKey,
    TypeKind,
    accept_schema,
)

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
CITY = TypeKey(TypeKind.NODE, "City")
ROAD = TypeKey(TypeKind.EDGE, "Road")
NAMED = TypeKey(TypeKind.INTERFACE, "Named")


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text), domain=DOMAIN).schema


def plan(old: str, new: str, dialect: PlanDialect = "omnigraph") -> MigrationPlan:
    return plan_migration(accept(old), load_catalog(new), dialect=dialect)


def steps(old: str, new: str) -> list[Step]:
    found = plan(old, new)
    assert found.supported
    return list(found.steps)


def refusals(
    old: str, new: str, dialect: PlanDialect = "omnigraph"
) -> list[tuple[str, str | None]]:
    """The entity and code of every unsupported change."""
    found = plan(old, new, dialect)
    assert not found.supported
    assert found.schema is None
    return [(step.entity, step.code) for step in found.steps if isinstance(step, UnsupportedChange)]


def city(body: str) -> str:
    return f"node City {{ {body} }}"
