"""Applies schemas to tables: the first one of a graph, and every one that replaces it.

A migration is a commit like any other. Added properties are nullable columns at the end of their
table, and so are those whose values are converted to another type; added types are empty tables.
Everything else changes nothing but the schema that the commit names. Rules that are added or
narrowed are checked on all entities first, and the commit depends on them. Other branches keep the
schema they have.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from omnigraph.errors import ConflictError, MigrationUnsupportedError
from omnigraph.rows.columns import build_table_shape
from omnigraph.rows.value_conversion import convert_values
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.converted_columns import is_made_anew
from omnigraph.schema.migration import DataCheck, MigrationPlan, PlanDialect, plan_migration
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.added_columns import ConvertedColumn
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import (
    AddColumns,
    ConvertColumns,
    Drop,
    Effect,
    Register,
    Rename,
)
from omnigraph.versioning.footprint import WHOLE, ReadSet
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import MAIN, NO_SIGNATURE, Signature
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.filled_columns import (
    FilledColumns,
    fill_read,
    find_filled_columns,
    find_time_ms,
)
from omnigraph.writers.validate.existing_data import (
    CheckedType,
    check_existing_data,
    read_needed,
)

# A path names one life of a table. Eight hex digits keep the lives of a type's name apart.
_LIFE_BYTES = 4
# A number means the same on every branch. The main branch counts on; any other one leaves room for
# what main may number meanwhile, and then a random gap, so that no two give the same number.
_NUMBER_GAP_MIN = 2**20
_NUMBER_GAP_MAX = 2**36


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as its author wrote it, and the checked catalog of that very text."""

    source: str
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class GraphCreation:
    """What the first record of a graph names."""

    schema: StoredSchema
    pins: Mapping[str, Pin]


@dataclass(frozen=True, slots=True)
class Migration:
    """The steps to another schema and the write that takes them; None if there is none to make."""

    plan: MigrationPlan
    transaction: Transaction | None

    @property
    def depends_on_data(self) -> bool:
        """Whether the steps were checked on entities, and have to be again on other ones."""
        return bool(self.plan.checks)

    def rebuild_transaction(self, snapshot: Snapshot) -> Transaction | None:
        """The same write on a newer snapshot, for `prepare_again`.

        Without checks the steps depend on the schema alone: whatever happened to entities does not
        matter. With checks it is refused: they are for the newer entities.
        """
        if self.transaction is None:
            return None
        self.require_same_schema(snapshot)
        if self.depends_on_data:
            raise ConflictError(
                "entities that the schema change was checked on changed meanwhile",
                type_key="schema",
                commit=snapshot.commit,
            )
        return replace(self.transaction, snapshot=snapshot)

    def require_same_schema(self, snapshot: Snapshot) -> None:
        """Raise if another schema came into force: what to do about it is for the author."""
        if self.transaction is None or snapshot.schema == self.transaction.snapshot.schema:
            return
        raise ConflictError(
            f"another schema came into force on branch '{snapshot.stream.branch}'"
            " while this one was applied",
            type_key="schema",
            commit=snapshot.commit,
        )


def create_initial_tables(text: SchemaText, *, tables: Tables, schemas: Schemas) -> GraphCreation:
    """The schema and the empty tables of a new graph."""
    accepted = accept_schema(text.catalog).schema
    # A crash anywhere in here leaves tables and a schema that no record names.
    stored = schemas.put(text.source, accepted)
    pins = {
        str(type_key): create_type_table(accepted, type_key, tables)
        for type_key in table_types_of(accepted.catalog)
    }
    return GraphCreation(stored, pins)


def build_migration(  # noqa: PLR0913 — one keyword for each thing it works with
    view: View,
    text: SchemaText,
    *,
    tables: Tables,
    schemas: Schemas,
    signature: Signature = NO_SIGNATURE,
    dialect: PlanDialect = "omnigraph",
    shows_entities: Callable[[], bool] = lambda: True,
    allow_data_loss: bool = False,
    convert: bool = False,
    now: int | None = None,
) -> Migration:
    """The write that brings a schema text into force on the branch of a view.

    The text in force gives no write; one that differs from it in comments or layout only gives a
    write without steps. A refusal names entities only to those who may read them.
    """
    plan = plan_on_data(
        view,
        text.catalog,
        dialect=dialect,
        allow_data_loss=allow_data_loss,
        convert=convert,
        now=now,
    )
    if plan.schema is None or plan.violations:
        shown = plan if shows_entities() else plan.without_examples()
        raise MigrationUnsupportedError(shown.refusal or "the schema cannot be brought into force")
    if not plan.steps and text.source == view.schema.source:
        return Migration(plan, None)
    # Until a record names them, new tables and the schema are garbage.
    effects = tuple(build_schema_effects(view.accepted, plan.schema, tables, now=now))
    stored = schemas.put(text.source, plan.schema)
    return Migration(
        plan,
        Transaction(
            view.snapshot,
            effects,
            changes={},
            footprint=_list_checked_types(view, plan.schema, plan.checks),
            schema=stored.digest,
            signature=signature,
        ),
    )


def plan_on_data(
    view: View,
    desired: Catalog,
    *,
    dialect: PlanDialect = "omnigraph",
    allow_data_loss: bool = False,
    convert: bool = False,
    now: int | None = None,
) -> MigrationPlan:
    """The plan from the schema of a view, with what its entities contradict.

    `now` is the time in milliseconds, for defaults that read it.
    """
    now = find_time_ms(view.snapshot) if now is None else now
    plan = plan_migration(
        view.accepted,
        desired,
        allow_data_loss=allow_data_loss,
        convert=convert,
        numbers_from=choose_first_number(view.snapshot, view.accepted),
        dialect=dialect,
    )
    schema = plan.schema
    if schema is None:
        return plan
    types, old_keys = table_types_of(schema.catalog), _index_tabled_types(view.accepted)

    def open_type(owner: TypeKey) -> CheckedType:
        old_key = old_keys[schema.identities[owner].id]
        table, shape = view.open_table(old_key), build_table_shape(schema, owner)
        sources = index_converted_columns(view.accepted, old_key, schema, owner)
        filled = find_filled_columns(view.accepted, old_key, schema, owner, now=now)
        read = partial(read_needed, table, schema=shape.schema, sources=sources)
        return CheckedType(types[owner], shape, fill_read(read, filled), sources)

    violations = check_existing_data(plan.checks, open_type)
    return replace(plan, violations=violations, is_checked=True)


def _list_checked_types(
    view: View, new: AcceptedSchema, checks: Iterable[DataCheck]
) -> dict[str, ReadSet]:
    """The types, as the view calls them, of which the answer of the checks depends on all."""
    old_keys = _index_tabled_types(view.accepted)
    return {str(old_keys[new.identities[check.owner].id]): WHOLE for check in checks}


def choose_first_number(snapshot: Snapshot, *schemas: AcceptedSchema) -> int:
    """Where the numbers start that a branch gives to what is new in its next schema."""
    beyond = max(accepted.next_identity_id for accepted in schemas)
    if snapshot.stream.id == MAIN.id:
        return beyond
    return beyond + _NUMBER_GAP_MIN + secrets.randbelow(_NUMBER_GAP_MAX)


def build_schema_effects(
    old: AcceptedSchema,
    new: AcceptedSchema,
    tables: Tables,
    *,
    elsewhere: Container[TypeKey] = frozenset(),
    now: int | None = None,
) -> Iterator[Effect]:
    """What a schema does to tables, by the identities of types, whatever they are called.

    Types `elsewhere`, by their new names, get their tables from the caller. `now` is the time in
    milliseconds, for defaults that read it.
    """
    before, after = _index_tabled_types(old), _index_tabled_types(new)
    # A type may end while another one begins under its name.
    for number, type_key in before.items():
        if number not in after:
            yield Drop(str(type_key))
    for number, type_key in after.items():
        old_key = before.get(number)
        if old_key is None:
            if type_key not in elsewhere:
                yield Register(str(type_key), create_type_table(new, type_key, tables))
            continue
        if type_key not in elsewhere:
            filled = find_filled_columns(old, old_key, new, type_key, now=now)
            yield from _build_column_effects(old, old_key, new, type_key, filled)
        if old_key != type_key:
            yield Rename(str(old_key), str(type_key))


def _index_tabled_types(accepted: AcceptedSchema) -> dict[int, TypeKey]:
    types = table_types_of(accepted.catalog)
    return {accepted.identities[type_key].id: type_key for type_key in types}


def _build_column_effects(
    old: AcceptedSchema,
    old_key: TypeKey,
    new: AcceptedSchema,
    type_key: TypeKey,
    filled: FilledColumns | None,
) -> Iterator[Effect]:
    """The columns that a table gets: those that are made of others, and empty ones."""
    sources = index_converted_columns(old, old_key, new, type_key)
    fields = build_table_shape(new, type_key).schema
    made = {
        name: ConvertedColumn(
            (source,), fields.field(name), partial(_convert_source, source, fields.field(name).type)
        )
        for name, source in sources.items()
    }
    if filled is not None:
        for name in filled.reads:
            compute = partial(filled.compute_column, name)
            made[name] = ConvertedColumn(filled.list_sources(name), fields.field(name), compute)
    known = {*build_table_shape(old, old_key).schema.names, *made}
    if made:
        yield ConvertColumns(str(old_key), tuple(made.values()))
    added = [field for field in fields if field.name not in known]
    if added:
        yield AddColumns(str(old_key), pa.schema(added))


def _convert_source(source: str, target: pa.DataType, batch: pa.RecordBatch) -> pa.Array:
    return convert_values(batch[source], target)


def index_converted_columns(
    old: AcceptedSchema, old_key: TypeKey, new: AcceptedSchema, type_key: TypeKey
) -> dict[str, str]:
    """The columns of a type that hold converted values, with those of what they are made."""
    before = old.identities[old_key].property_ids.values()
    continued = set(before).intersection(new.identities[type_key].property_ids.values())
    columns = {new.find_column(each): old.find_column(each) for each in sorted(continued)}
    return {
        after: column
        for after, column in columns.items()
        if after != column and not is_made_anew(after)
    }


def create_type_table(accepted: AcceptedSchema, type_key: TypeKey, tables: Tables) -> Pin:
    """An empty table for a type."""
    path = layout.build_table_path(str(type_key), secrets.token_hex(_LIFE_BYTES))
    return tables.create(path, build_table_shape(accepted, type_key).schema)
