"""Three schemas to one, or to what they disagree about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Severity
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, types_of
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.merging.merged_declarations import (
    DeclarationMerger,
    DroppedElement,
    UntouchedTypes,
)
from omnigraph.schema.merging.merged_identities import NewNumbers, number_merged_schema
from omnigraph.schema.merging.merged_tree import RebuiltType, rebuild_types
from omnigraph.schema.merging.schema_sides import WrittenSchema, align_schemas
from omnigraph.schema.merging.schema_text_edit import merge_text
from omnigraph.schema.merging.three_way_choice import Chooser, SchemaConflict
from omnigraph.schema.schema_compiler import compile_schema


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """The merged schema; with conflicts, ours as it is.

    `dropped` is what one branch dropped and the other one kept unchanged.
    """

    schema: WrittenSchema
    dropped: tuple[DroppedElement, ...] = ()
    conflicts: tuple[SchemaConflict, ...] = ()


def merge_written_schemas(
    base: WrittenSchema,
    ours: WrittenSchema,
    theirs: WrittenSchema,
    *,
    numbers: NewNumbers | None = None,
    untouched: UntouchedTypes | None = None,
    is_descended: bool = True,
) -> SchemaMerge:
    """Merge two schemas that come from one; ours may also not be descended from it."""
    sides = align_schemas(base, ours, theirs, is_descended=is_descended)
    chooser = Chooser(sides.ours, sides.theirs)
    merger = DeclarationMerger(sides, chooser, untouched or UntouchedTypes())
    declarations = merger.merge_declarations()
    if chooser.conflicts:
        return SchemaMerge(ours, conflicts=tuple(chooser.conflicts))
    types = rebuild_types(sides, declarations)
    clashes = tuple(_find_name_clashes(types))
    if clashes:
        return SchemaMerge(ours, conflicts=clashes)
    text = merge_text(sides, types)
    compiled = compile_schema(text)
    if compiled.catalog is None:
        errors = (each for each in compiled.diagnostics if each.severity is Severity.ERROR)
        found = tuple(SchemaConflict("schema", each.message) for each in errors)
        return SchemaMerge(ours, conflicts=found)
    merged = number_merged_schema(sides, types, compiled.catalog, numbers or NewNumbers())
    missing = tuple(_find_missing_values(merged, ours.accepted, theirs.accepted))
    if missing:
        return SchemaMerge(ours, conflicts=missing)
    return SchemaMerge(WrittenSchema(text, merged), tuple(merger.dropped))


def _find_name_clashes(types: Iterable[RebuiltType]) -> Iterator[SchemaConflict]:
    """Names that a branch gave to one thing and the other branch to another one."""
    merged = list(types)
    for key, times in Counter(each.key for each in merged).items():
        if times > 1:
            yield SchemaConflict(str(key), "the branches use the name for different types")
    for each in merged:
        names = Counter(
            member.name.text for key, member in each.members.items() if isinstance(key, int)
        )
        for name, times in names.items():
            if times > 1:
                message = "the branches use the name for different properties"
                yield SchemaConflict(f"{each.key}.{name}", message)


def _find_missing_values(
    merged: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> Iterator[SchemaConflict]:
    """Required properties that the entities of one branch have no values of."""
    for side in (ours, theirs):
        known = map_identities(side, merged)
        types = dict(types_of(merged.catalog))
        for old_key, key in known.types.items():
            had = set(known.properties_of(old_key).values())
            for name, declared in types[key].properties.items():
                if name not in had and not declared.type.is_nullable:
                    yield _build_missing_conflict(key, name)


def _build_missing_conflict(key: TypeKey, name: str) -> SchemaConflict:
    return SchemaConflict(
        f"{key}.{name}", "it is required, and the entities of one branch have no values of it"
    )
