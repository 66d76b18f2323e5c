"""Schemas of branches that migrate separately and are merged."""

from __future__ import annotations

from omnigraph.schema import load_catalog, plan_migration
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.merging import (
    NewNumbers,
    SchemaMerge,
    UntouchedTypes,
    WrittenSchema,
    merge_written_schemas,
)
from omnigraph.schema.schema_identity import accept_schema

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
# Where the branches of a test number what is new: far from each other, as graphs do it.
OURS_FROM = 1_000
THEIRS_FROM = 2_000


def first(text: str) -> WrittenSchema:
    """The first schema of a graph."""
    return WrittenSchema(text, accept_schema(load_catalog(text), domain=DOMAIN).schema)


def migrated(old: WrittenSchema, text: str, *, numbers_from: int) -> WrittenSchema:
    """The schema after a migration."""
    plan = plan_migration(old.accepted, load_catalog(text), numbers_from=numbers_from)
    assert plan.schema is not None, plan.refusal
    return WrittenSchema(text, plan.schema)


def merged(
    base: str, ours: str, theirs: str, *, untouched: UntouchedTypes | None = None
) -> SchemaMerge:
    """What becomes of two migrations of one schema."""
    start = first(base)
    return merge_written_schemas(
        start,
        migrated(start, ours, numbers_from=OURS_FROM),
        migrated(start, theirs, numbers_from=THEIRS_FROM),
        numbers=NewNumbers(9_000),
        untouched=untouched,
    )


def merged_text(base: str, ours: str, theirs: str) -> str:
    """The text that two migrations of one schema give together."""
    found = merged(base, ours, theirs)
    assert not found.conflicts, [str(each) for each in found.conflicts]
    return found.schema.source


def conflicts(base: str, ours: str, theirs: str) -> list[str]:
    """What two migrations of one schema disagree about, and that ours stays."""
    found = merged(base, ours, theirs)
    assert found.schema.source == ours
    return [str(each) for each in found.conflicts]


def numbers(accepted: AcceptedSchema, name: str, kind: str = "node") -> dict[str, int]:
    """The numbers of a type's properties, its own as `*`."""
    identity = accepted.identities[TypeKey(TypeKind(kind), name)]
    return {"*": identity.id, **identity.property_ids}
