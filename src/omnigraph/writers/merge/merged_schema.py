"""The merged schema: its types, where its columns are on each side, and the steps for ours.

`merge_view_schemas` only reads; `build_bridge` makes the tables that the merged schema needs beyond
those of ours, which are not visible before a record names them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation, WriteRefusedError
from omnigraph.lang.diagnostics import Severity
from omnigraph.query.entity_conditions import compile_whole_schema
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape, build_table_shape
from omnigraph.rows.value_conversion import convert_values
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import DEFAULTS, EXPRESSION_CHECKS, AcceptedSchema, TypeKey
from omnigraph.schema.catalog import EdgeType, MergeRule
from omnigraph.schema.converted_columns import is_made_anew
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.merging import (
    DroppedElement,
    NewNumbers,
    SchemaConflict,
    SchemaMerge,
    UntouchedTypes,
    WrittenSchema,
    merge_written_schemas,
)
from omnigraph.schema.migration import Step, plan_steps
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import (
    ID_COLUMN,
    AddColumns,
    ConvertColumns,
    Effect,
    EffectApplier,
    Register,
    Rename,
)
from omnigraph.versioning.first_parents import is_on_line
from omnigraph.versioning.footprint import unite_footprints
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.filled_columns import find_time_ms
from omnigraph.writers.schema_migration import (
    build_schema_effects,
    choose_first_number,
    create_type_table,
)
from omnigraph.writers.validate.findings import list_shown_values

__all__ = [
    "DroppedElement",
    "MergedSchema",
    "MergedType",
    "NewNumbers",
    "SchemaBridge",
    "SchemaConflict",
    "SideType",
    "UntouchedTypes",
    "build_bridge",
    "conform_rows",
    "merge_schemas",
    "merge_view_schemas",
]


_MISFIT_HINT: Final = "change the value on its branch, or convert the property there first"


@dataclass(frozen=True, slots=True)
class SideType:
    """Where a merged type lies on one side: its name there, and the columns of its properties.

    `columns` has, for columns of the merged table, those of the table there; a property that the
    side does not have is absent, and null in every row.
    """

    key: TypeKey
    columns: Mapping[str, str]


@dataclass(frozen=True)
class MergedType:
    """A type of the merged schema, and where it lies on each side that has it."""

    key: TypeKey
    shape: TableShape
    base: SideType | None
    ours: SideType | None
    theirs: SideType | None
    # Columns that are merged as one value: the ends of an edge, a text and the vector made of it.
    groups: tuple[tuple[str, ...], ...] = ()
    # The vectors that models make of texts: they follow the side that the text comes from.
    embedded: frozenset[str] = frozenset()
    # The columns of which a rule joins values that both sides changed.
    rules: Mapping[str, MergeRule] = field(default_factory=dict)

    @property
    def is_adoptable(self) -> bool:
        """Whether the table of theirs holds everything where the merged table would hold it."""
        columns = self.shape.columns.values()
        there = self.theirs
        return there is not None and all(there.columns.get(each) == each for each in columns)


@dataclass(frozen=True)
class MergedSchema:
    """The schema of the merged state; with conflicts it is ours.

    `dropped` is what one side dropped and the other one kept: its values are gone in the merged
    state. `steps` are what the schema changes about ours.
    """

    source: str
    accepted: AcceptedSchema
    is_ours: bool
    types: Mapping[TypeKey, MergedType]
    dropped: tuple[DroppedElement, ...] = ()
    conflicts: tuple[SchemaConflict, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class SchemaBridge:
    """Ours as if the merged schema were in force already, and the way there.

    Prepare on `view`; `settled` makes of the result a transaction on ours itself.
    """

    view: View
    merged: MergedSchema
    target: View
    schema: StoredSchema | None = None
    effects: tuple[Effect, ...] = field(default=())

    def old_key_of(self, key: TypeKey) -> TypeKey:
        """The name of a merged type on ours, or its only name if it is new there."""
        ours = self.merged.types[key].ours
        return key if ours is None else ours.key

    def settle_transaction(self, transaction: Transaction) -> Transaction:
        """The transaction with the changes of the schema, and names as ours has them before it."""
        if self.schema is None:
            return transaction
        new = {str(key) for key, type_ in self.merged.types.items() if type_.ours is None}
        rows = [(each.type_key in new, self._rename_effect(each)) for each in transaction.effects]
        return replace(
            transaction,
            snapshot=self.target.snapshot,
            effects=tuple(self._sort_effects(rows)),
            footprint=unite_footprints(
                {self._old_names.get(key, key): reads}
                for key, reads in transaction.footprint.items()
            ),
            schema=self.schema.digest,
        )

    def _sort_effects(self, rows: list[tuple[bool, Effect]]) -> Iterator[Effect]:
        """What happens to types of ours, then new types, which may take over a name, then names."""
        yield from (each for each in self.effects if not isinstance(each, Register | Rename))
        yield from (each for is_new, each in rows if not is_new)
        yield from (each for each in self.effects if isinstance(each, Register))
        yield from (each for is_new, each in rows if is_new)
        yield from (each for each in self.effects if isinstance(each, Rename))

    def _rename_effect(self, effect: Effect) -> Effect:
        return replace(effect, type_key=self._old_names.get(effect.type_key, effect.type_key))

    @cached_property
    def _old_names(self) -> dict[str, str]:
        return {str(key): str(self.old_key_of(key)) for key in self.merged.types}


def merge_view_schemas(
    base: View, ours: View, theirs: View, *, by_name: bool = False
) -> MergedSchema:
    """The schema of the merged state of three views.

    With `by_name` the base is not an ancestor of ours: what both lines added under one name is the
    same.
    """
    return merge_schemas(
        base.schema,
        ours.schema,
        theirs.schema,
        numbers=NewNumbers(
            choose_first_number(ours.snapshot, ours.accepted, theirs.accepted),
            # What is undone on a branch gets back what it had.
            is_past=is_on_line(ours.snapshot, theirs.snapshot.ref),
        ),
        untouched=UntouchedTypes(
            _list_untouched_types(base, ours), _list_untouched_types(base, theirs)
        ),
        by_name=by_name,
    )


def merge_schemas(
    base: StoredSchema,
    ours: StoredSchema,
    theirs: StoredSchema,
    *,
    numbers: NewNumbers | None = None,
    untouched: UntouchedTypes | None = None,
    by_name: bool = False,
) -> MergedSchema:
    """The schema of the merged state: ours with what theirs changed since the base.

    A type that one side dropped and added again does not conflict if the other side has left its
    entities `untouched`.
    """
    # A schema of theirs that is still the base's is examined too: entities of theirs may be of
    # types that ours dropped, or dropped and added again.
    if theirs.digest == ours.digest:
        merge = SchemaMerge(_to_written_schema(ours))
    else:
        merge = merge_written_schemas(
            _to_written_schema(base),
            _to_written_schema(ours),
            _to_written_schema(theirs),
            numbers=numbers,
            untouched=untouched,
            is_descended=not by_name,
        )
    merge = _check_merged_conditions(merge, _to_written_schema(ours))
    return _build_merged_schema(merge, (base.accepted, ours, theirs.accepted), by_name=by_name)


def _check_merged_conditions(merge: SchemaMerge, ours: WrittenSchema) -> SchemaMerge:
    """The merge, or ours with conflicts if what one branch says does not fit types of the other.

    The schema language does not read them.
    """
    features = {EXPRESSION_CHECKS, DEFAULTS}
    if merge.conflicts or features.isdisjoint(merge.schema.accepted.features):
        return merge
    found = compile_whole_schema(merge.schema.source)
    text = found.source.text
    conflicts = tuple(
        SchemaConflict("schema", f"'{text[each.span.start : each.span.end]}': {each.message}")
        for each in found.diagnostics
        if each.severity is Severity.ERROR
    )
    return SchemaMerge(ours, conflicts=conflicts) if conflicts else merge


def find_side_type(
    side: AcceptedSchema, merged: MergedSchema, type_: MergedType
) -> SideType | None:
    """Where a merged type lies in a state of either line; None if it is not there."""
    shapes = _index_side_shapes(side, merged.accepted, by_name=False)
    return _build_side_type(shapes.get(type_.key), type_.shape)


def conform_rows(rows: pa.Table, there: SideType, shape: TableShape) -> pa.Table:
    """Rows that were read on a side as rows of the merged table.

    Ids, ends and what belongs to the table itself stay; properties the side lacks are null. Values
    of another type are converted, and refused if the merged type cannot hold them.
    """
    own = {column: name for name, column in there.columns.items()}
    known = set(shape.columns.values())
    kept = [name for name in rows.column_names if name in own or name not in known]
    columns = {own.get(name, name): _fit_column(rows, name, own.get(name), shape) for name in kept}
    for each in shape.schema:
        if each.name not in columns:
            columns[each.name] = pa.nulls(rows.num_rows, each.type)
    names = [name for name in shape.schema.names if name in columns]
    extra = [name for name in columns if name not in shape.schema.names]
    return pa.table({name: columns[name] for name in (*names, *extra)})


def _fit_column(rows: pa.Table, name: str, merged: str | None, shape: TableShape) -> pa.Array:
    """A column of a side as the merged table has it; what belongs to the table stays."""
    values = rows[name]
    if merged is None or values.type == shape.schema.field(merged).type:
        return values
    made = convert_values(values, shape.schema.field(merged).type)
    lost = pc.and_(made.is_null(), values.combine_chunks().is_valid())
    if lost.true_count:
        row = pc.index(lost, value=True).as_py()
        [property_] = [each for each, column in shape.columns.items() if column == merged]
        [shown] = list_shown_values(values.slice(row, 1))
        message = (
            f"{shape.type_key.name}.{property_}: {shown} of one branch does not survive the"
            " conversion that the other branch made"
        )
        entity_id = rows[ID_COLUMN][row].as_py() if ID_COLUMN in rows.column_names else None
        violation = Violation(
            "value",
            message,
            type_name=shape.type_key.name,
            property=property_,
            value=shown,
            entity_id=entity_id,
        )
        raise WriteRefusedError(message, violations=[violation], hint=_MISFIT_HINT)
    return pa.chunked_array([made])


def build_bridge(
    merged: MergedSchema,
    target: View,
    *,
    schemas: Schemas,
    adopted: Mapping[TypeKey, Pin] | None = None,
) -> SchemaBridge:
    """Bring ours to the merged schema, as far as that can be done before a commit.

    Types that are `adopted` get their tables from theirs; a new one of them is empty in the view.
    """
    if merged.is_ours:
        return SchemaBridge(target, merged, target)
    elsewhere = adopted or {}
    # Until a record names them, tables and schema are garbage.
    found = build_schema_effects(
        target.accepted,
        merged.accepted,
        target.tables,
        elsewhere=elsewhere,
        now=find_time_ms(target.snapshot),
    )
    effects = tuple(_iter_missing_effects(found, target))
    stored = schemas.put(merged.source, merged.accepted)
    applier = EffectApplier(target.tables, effects)
    try:
        touched = applier.apply(target.snapshot.pins)
    except BaseException:
        applier.discard()
        raise
    pins = {**target.snapshot.pins, **touched}
    for key in elsewhere:
        if merged.types[key].ours is None:
            pins[str(key)] = create_type_table(merged.accepted, key, target.tables)
    snapshot = replace(
        target.snapshot,
        schema=stored.digest,
        pins={key: pin for key, pin in pins.items() if pin is not None},
    )
    return SchemaBridge(View(snapshot, stored, target.tables), merged, target, stored, effects)


def _to_written_schema(stored: StoredSchema) -> WrittenSchema:
    return WrittenSchema(stored.source, stored.accepted)


def _iter_missing_effects(effects: Iterable[Effect], target: View) -> Iterator[Effect]:
    """Effects without columns that tables still have: a property that was dropped is back."""
    for effect in effects:
        if not isinstance(effect, AddColumns | ConvertColumns):
            yield effect
            continue
        known = set(target.tables.open(target.snapshot.pins[effect.type_key]).schema.names)
        if isinstance(effect, ConvertColumns):
            columns = tuple(each for each in effect.columns if each.field.name not in known)
            if columns:
                yield ConvertColumns(effect.type_key, columns)
            continue
        fields = [each for each in effect.schema if each.name not in known]
        if fields:
            yield AddColumns(effect.type_key, pa.schema(fields))


def _list_untouched_types(base: View, side: View) -> frozenset[TypeKey]:
    now = map_identities(base.accepted, side.accepted).types
    before, after = base.snapshot.pins, side.snapshot.pins
    return frozenset(
        key for key in base.types if key in now and after.get(str(now[key])) == before.get(str(key))
    )


def _build_merged_schema(
    merge: SchemaMerge,
    schemas: tuple[AcceptedSchema, StoredSchema, AcceptedSchema],
    *,
    by_name: bool,
) -> MergedSchema:
    base, ours, theirs = schemas
    accepted = merge.schema.accepted
    sides = [
        _index_side_shapes(base, accepted, by_name=by_name),
        _index_side_shapes(ours.accepted, accepted, by_name=False),
        _index_side_shapes(theirs, accepted, by_name=by_name),
    ]
    types = {}
    for key in table_types_of(accepted.catalog):
        shape = build_table_shape(accepted, key)
        before, mine, other = (_build_side_type(places.get(key), shape) for places in sides)
        groups = tuple(_iter_groups(accepted, shape))
        rules = _index_merge_rules(accepted, shape)
        embedded = frozenset(_iter_embedded(accepted, shape))
        types[key] = MergedType(key, shape, before, mine, other, groups, embedded, rules)
    is_ours = merge.schema.source == ours.source and accepted == ours.accepted
    return MergedSchema(
        source=merge.schema.source,
        accepted=accepted,
        is_ours=is_ours,
        types=types,
        dropped=merge.dropped,
        conflicts=merge.conflicts,
        steps=() if is_ours else tuple(plan_steps(ours.accepted, accepted, convert=True)),
    )


def _iter_groups(accepted: AcceptedSchema, shape: TableShape) -> Iterator[tuple[str, ...]]:
    type_ = table_types_of(accepted.catalog)[shape.type_key]
    if isinstance(type_, EdgeType):
        yield SOURCE_COLUMN, TARGET_COLUMN
    for name, column in shape.columns.items():
        embed = type_.properties[name].embed
        if embed is not None:
            yield shape.columns[embed.source], column
    for members in type_.constraints.together:
        yield tuple(shape.columns[name] for name in members)


def _iter_embedded(accepted: AcceptedSchema, shape: TableShape) -> Iterator[str]:
    properties = table_types_of(accepted.catalog)[shape.type_key].properties
    for name, column in shape.columns.items():
        embed = properties[name].embed
        # Without a model, a vector is what its author wrote, and one value with its text.
        if embed is not None and embed.model is not None:
            yield column


def _index_merge_rules(accepted: AcceptedSchema, shape: TableShape) -> dict[str, MergeRule]:
    properties = table_types_of(accepted.catalog)[shape.type_key].properties
    return {
        column: rule
        for name, column in shape.columns.items()
        if (rule := properties[name].merge) is not None
    }


@dataclass(frozen=True, slots=True)
class _SideShape:
    """A type of a side, with the names of its properties by their merged names.

    `kept` are those of the side that are the same by their numbers, whatever their types.
    """

    shape: TableShape
    names: Mapping[str, str]
    kept: Container[str]


def _index_side_shapes(
    side: AcceptedSchema, merged: AcceptedSchema, *, by_name: bool
) -> dict[TypeKey, _SideShape]:
    known = map_identities(side, merged, by_name=by_name)
    same = map_identities(side, merged) if by_name else known
    return {
        known.types[key]: _SideShape(
            build_table_shape(side, key),
            {new: old for old, new in known.properties_of(key).items()},
            same.properties_of(key),
        )
        for key in table_types_of(side.catalog)
        if key in known.types
    }


def _build_side_type(place: _SideShape | None, shape: TableShape) -> SideType | None:
    if place is None:
        return None
    columns = {
        column: place.shape.columns[place.names[name]]
        for name, column in shape.columns.items()
        if name in place.names and _has_same_values(place, place.names[name], shape, column)
    }
    return SideType(place.shape.type_key, columns)


def _has_same_values(place: _SideShape, name: str, shape: TableShape, column: str) -> bool:
    """Whether values of a side fit a merged column: what has one name only may be another thing."""
    ours = place.shape.schema.field(place.shape.columns[name])
    merged = shape.schema.field(column)
    if ours.name != merged.name and (is_made_anew(ours.name) or is_made_anew(merged.name)):
        return False
    if is_blob(ours) or is_blob(merged):
        return is_blob(ours) and is_blob(merged)
    return bool(ours.type == merged.type) or name in place.kept
