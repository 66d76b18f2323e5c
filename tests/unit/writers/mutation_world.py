"""A graph on real tables beside the model of it, both changed by the same mutations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa

from model import ModelGraph
from model.statements import read_records
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.query_budget import Access, ReadOptions
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import CompiledQuery, compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import NOW_NAME, Mutation
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape, build_table_shape
from omnigraph.rows.comparison import skip_poll
from omnigraph.rows.evaluator import RequestParams
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Log, Snapshot
from omnigraph.versioning.schema_store import StoredSchema
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, TypeChange
from omnigraph.writers.inputs.parameter_records import read_parameter_records
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.mutate import MutationChange, run_mutation
from omnigraph.writers.pattern_rows import PatternReads
from omnigraph.writers.validate import validate_change

NOW = 1_700_000_000_000
Image = dict[str, dict[str, dict[str, Any]]]


def read_pattern(
    params: Mapping[str, Any], plan: ReadPlan, view: View, *, is_committed: bool
) -> pa.Table:
    """The rows of a pattern, read anew each time."""
    options = ReadOptions(Access.TOPOLOGY if is_committed else Access.LOOKUPS)
    executor = QueryExecutor(SourceCache())
    return executor.run(plan, view, params, now=NOW, options=options).to_arrow()


def request_params(bound: Mapping[str, Any]) -> RequestParams:
    """The parameters of a request at a fixed time, which nothing stops."""
    return RequestParams({**bound, NOW_NAME: NOW}, skip_poll)


class MutationWorld:
    """The tables and the model of one graph; fresh ids are the same numbers in both."""

    def __init__(self, schema: str, seed: str = "") -> None:
        self._uri = f"memory://{uuid4().hex}"
        self._step = 0
        self.model = ModelGraph(load_catalog(schema), new_id=self._fresh_ids())
        self.model.load(seed, mode="append")
        self.view = self._filled(Tables(self._uri, is_durable=False))

    def compiled(self, text: str, params: Mapping[str, Any] | None = None) -> Any:
        """The mutation of a declaration, or of just its statements, and its parameters."""
        mutation = self._compile(text).checked
        assert isinstance(mutation, Mutation)
        lists = {each.name for each in mutation.records}
        plain = {name: value for name, value in (params or {}).items() if name not in lists}
        return mutation, bind_parameters(mutation.parameters, plain)

    def pattern_reads(self, text: str, params: Mapping[str, Any]) -> PatternReads:
        """The reads of the patterns of the same mutation."""
        return PatternReads(self._compile(text).pattern_plans, partial(read_pattern, params))

    def _compile(self, text: str) -> CompiledQuery:
        text = text if text.startswith("query") else f"query q() {{ {text} }}"
        return compile_query(text, self.view.catalog)

    def run(self, text: str, params: Mapping[str, Any] | None = None) -> MutationChange:
        """What a mutation does to the tables, as data; neither they nor the model change."""
        mutation, bound = self.compiled(text, params)
        fresh = self._fresh_ids()
        with (
            patch("omnigraph.writers.mutate.generate_ulid", fresh),
            patch(
                "omnigraph.writers.pattern_writes.generate_ids",
                lambda count: pa.array([fresh() for _ in range(count)], pa.utf8()),
            ),
        ):
            return run_mutation(
                mutation,
                request_params(bound),
                view=self.view,
                keys=self._keys(),
                patterns=self.pattern_reads(text, bound),
                records={
                    each.name: read_parameter_records(each, (params or {})[each.name])
                    for each in mutation.records
                },
            )

    def validated(self, text: str, params: Mapping[str, Any] | None = None) -> MutationChange:
        """The same for a mutation that breaks no rule."""
        mutated = self.run(text, params)
        validate_change(mutated.change, CommittedState(self.view, self._keys(), mutated.change))
        return mutated

    def mutate(self, text: str, params: Mapping[str, Any] | None = None) -> MutationChange:
        """Run a mutation on both, which must agree on the counts and on every entity."""
        self._step += 1
        mutated = self.validated(text, params)
        mutation, bound = self.compiled(text, params)
        self.model.new_id = self._fresh_ids()
        records = read_records(mutation, params or {})
        done = self.model.mutate(mutation, bound, now=NOW, records=records)
        assert done == (mutated.nodes, mutated.edges)
        assert not mutated.change or mutated.nodes or mutated.edges
        self._apply(mutated.change)
        assert self.image() == self.model_image()
        return mutated

    def image(self) -> Image:
        """Every entity in the tables."""
        return {
            key.name: entities(self.view.open_table(key).scan(), self.view.get_shape(key))
            for key in table_types_of(self.view.catalog)
        }

    def model_image(self) -> Image:
        """Every entity of the model."""
        tables = self.model.nodes | self.model.edges
        return {
            name: {
                id_: {key: value for key, value in entity.items() if key not in ("@id", "@type")}
                for id_, entity in table.items()
            }
            for name, table in tables.items()
        }

    def _keys(self) -> KeyCache:
        # Versions of this graph have no numbers to tell them apart by, so nothing is remembered.
        return KeyCache(Log(open_objects(self._uri)))

    def _fresh_ids(self) -> Callable[[], str]:
        numbers = count(1)
        return lambda: f"new-{self._step}-{next(numbers)}"

    def _filled(self, tables: Tables) -> View:
        accepted, pins = self.model.accepted, {}
        for key in table_types_of(accepted.catalog):
            shape = build_table_shape(accepted, key)
            pin = tables.create(layout.build_table_path(str(key), "00000001"), shape.schema)
            rows = self._rows(shape)
            pins[str(key)] = tables.append(pin, [tables.write(pin, rows)]) if len(rows) else pin
        snapshot = Snapshot(MAIN, 0, "first", 0, "sha256:first", pins)
        return View(snapshot, StoredSchema("sha256:first", "", accepted), tables)

    def _rows(self, shape: TableShape) -> pa.Table:
        is_edge = shape.type_key.kind is TypeKind.EDGE
        table = (self.model.edges if is_edge else self.model.nodes)[shape.type_key.name]
        columns = {"@id": "__id", **shape.columns}
        if is_edge:
            columns |= {"@src": SOURCE_COLUMN, "@dst": TARGET_COLUMN}
        rows = [{columns[k]: e[k] for k in e if k in columns} for e in table.values()]
        return pa.Table.from_pylist(rows, schema=shape.schema)

    def _apply(self, change: GraphChange) -> None:
        pins = dict(self.view.snapshot.pins)
        for key, type_change in change.items():
            self._check(key, type_change)
            table, tables = self.view.open_table(key), self.view.tables
            dead = table.find("__id", touched(type_change))["_rowid"].combine_chunks()
            rows = type_change.rows
            staged = [tables.write(table.pin, rows)] if len(rows) else []
            pins[str(key)] = tables.replace(table.pin, dead=dead, staged=staged)
        self.view = replace(self.view, snapshot=replace(self.view.snapshot, pins=pins))

    def _check(self, key: TypeKey, change: TypeChange) -> None:
        """The promises of a type change that no comparison of images would show."""
        assert change.shape == self.view.get_shape(key)
        for rows in (change.rows, *change.batches):
            assert rows.schema.equals(change.shape.schema, check_metadata=True)
            rows.validate()
            assert len(set(rows["__id"].to_pylist())) == len(rows)
        if change.known_copies is not None:
            columns = ["__id", "_rowid", "_rowaddr"]
            copies = self.view.open_table(key).find("__id", touched(change), columns=columns)
            assert _by_id(change.known_copies) == _by_id(copies)


def _by_id(copies: pa.Table) -> list[tuple[str, int, int]]:
    """Whose copies they are, and where: their replacement does not look them up again."""
    columns = (copies[name].to_pylist() for name in ("__id", "_rowid", "_rowaddr"))
    return sorted(zip(*columns, strict=True))


def touched(change: TypeChange) -> pa.Array:
    """Every id that a change writes or deletes."""
    return pa.concat_arrays([change.rows["__id"].combine_chunks(), change.deleted])


def entities(rows: pa.Table, shape: TableShape) -> dict[str, dict[str, Any]]:
    """Rows as the entities of the model, by id."""
    names = {column: name for name, column in shape.columns.items()}
    names |= {SOURCE_COLUMN: "@src", TARGET_COLUMN: "@dst"}
    values = {
        column: [_plain(value) for value in _integral(rows[column]).to_pylist()]
        for column in shape.schema.names
    }
    found = {
        id_: {names[column]: values[column][row] for column in values if column != "__id"}
        for row, id_ in enumerate(values["__id"])
    }
    assert len(found) == len(rows), "an id is there twice"
    return found


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _integral(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Days and milliseconds as numbers."""
    kinds = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}
    if pa.types.is_list(column.type) and column.type.value_type in kinds:
        return column.cast(pa.list_(kinds[column.type.value_type]))
    return column.cast(kinds.get(column.type, column.type))
