"""Prepares loads, mutations and schema changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.dataset as pds

from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine.arguments import normalize_parameters
from omnigraph.engine.commit import changes_of
from omnigraph.engine.commit_loop import SchemaChanged, WriteOutcome
from omnigraph.engine.graph_session import Session
from omnigraph.engine.resources import Resources
from omnigraph.errors import (
    ConflictError,
    InvalidArgumentError,
    SchemaMovedError,
    WrongQueryKindError,
)
from omnigraph.execution.query_budget import Access, Budget, ReadOptions
from omnigraph.lang.lexer import Mode
from omnigraph.policy.acts import Act, Action
from omnigraph.query import bind_parameters
from omnigraph.query.entity_conditions import load_whole_catalog
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import CompiledQuery, parse_file, select_query
from omnigraph.query.query_descriptor import list_matched_types
from omnigraph.query.row_limits import RowLimits
from omnigraph.query.typed_tree import NOW_NAME, Mutation, RecordParameter
from omnigraph.rows.evaluator import Params, RequestParams
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.migration import MigrationPlan, PlanDialect, plan_migration
from omnigraph.versioning import Transaction
from omnigraph.versioning.footprint import unite_footprints
from omnigraph.writers.inputs import InputOptions, InputSource, Text, read_input
from omnigraph.writers.inputs.input_rows import Missing
from omnigraph.writers.inputs.parameter_records import (
    build_missing_error,
    read_parameter_records,
)
from omnigraph.writers.load_records import LoadChange, LoadMode, build_load_change
from omnigraph.writers.mutate import MutationChange, run_mutation
from omnigraph.writers.pattern_rows import PatternReads
from omnigraph.writers.prepare import Request, prepare_transaction
from omnigraph.writers.present_entities import select_present
from omnigraph.writers.row_staging import RowStaging
from omnigraph.writers.schema_migration import Migration, SchemaText, build_migration

_REPEATABLE: Final = (
    str,
    os.PathLike,
    Text,
    pa.Table,
    pa.RecordBatch,
    pds.FileSystemDataset,
    list,
    tuple,
)
# Modules whose frames hold their rows; what else they have with columns may be lazy.
_FRAMES: Final = ("pandas", "polars")


class LoadOperation:
    """A load: its source is read once for each schema, however often it is prepared."""

    def __init__(
        self,
        resources: Resources,
        source: InputSource,
        *,
        mode: LoadMode,
        options: InputOptions,
        embed: EmbedMode = EmbedMode.NEVER,
    ) -> None:
        self._resources = resources
        self.fill = resources.create_fill(embed)
        self._source = source
        self._mode = mode
        self._options = options
        self._staging = RowStaging(resources.storage.tables)
        self._read: _LoadedRows | None = None
        # The rows of entities that exist, if a patch has no others.
        self._present: LoadChange | None = None

    @property
    def loaded(self) -> LoadChange:
        """What the source holds, once it is prepared."""
        assert self._read is not None, "a load is asked for after its preparation"
        return self._present or self._read.loaded

    @property
    def may_repeat(self) -> bool:
        """An overwrite ends what others wrote meanwhile without having seen it."""
        return self._mode is not LoadMode.OVERWRITE

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It changes its branch."""
        return (Act(Action.CHANGE, branch),)

    def prepare(self, view: View, request: Request) -> Transaction:
        """The load on a view; an empty one is a commit too."""
        loaded, keys = self._read_rows(view), self._resources.keys
        change, request = loaded.change, replace(request, vectors=self.fill)
        if self._options.missing is not Missing.INSERT:
            found = select_present(loaded, view, keys, missing=self._options.missing)
            self._present, change = found.loaded, found.loaded.change
            request = replace(request, reads=unite_footprints([request.reads, found.reads]))
        return prepare_transaction(change, view, keys, staging=self._staging, request=request)

    def abandon(self) -> None:
        """Remove what was written for a load that will never be a commit."""
        self._staging.abandon()

    def _read_rows(self, view: View) -> LoadChange:
        """The rows under the schema of a view: the same ones until that changes."""
        digest = view.schema.digest
        if self._read is None:
            found = read_input(self._source, view.accepted, self._options)
            fills = self.fill is not None and self.fill.mode is EmbedMode.WRITE
            loaded = build_load_change(found, self._mode, fills_vectors=fills)
            self._read = _LoadedRows(digest, loaded)
        elif self._read.digest != digest:
            self._read = None
            if _can_be_read_again(self._source):
                raise SchemaChanged
            branch = view.snapshot.stream.branch
            raise ConflictError(
                f"another schema came into force on branch '{branch}' during this load"
            )
        return self._read.loaded


@dataclass(frozen=True, slots=True)
class _LoadedRows:
    """The rows of a source under one schema."""

    digest: str
    loaded: LoadChange


def _can_be_read_again(source: object) -> bool:
    """Whether a source is known to give the same rows each time.

    Of anything else the second reading may silently be empty: a cursor, a stream, a generator.
    """
    if isinstance(source, _REPEATABLE):
        return True
    if isinstance(source, Mapping):
        return all(map(_can_be_read_again, source.values()))
    return type(source).__module__.partition(".")[0] in _FRAMES and hasattr(source, "columns")


@dataclass(frozen=True, slots=True)
class PatternReader:
    """Whose patterns a mutation matches, and on which branch."""

    session: Session
    branch: str

    def authorize(self, types: Collection[str]) -> None:
        """Ask whether the types of patterns may be read."""
        self.session.authorize_rows(Act(Action.READ, self.branch), types)

    def find_limits(self) -> RowLimits | None:
        """What the reader sees of types whose rows are limited."""
        return self.session.find_row_limits(Act(Action.READ, self.branch))


class MutationOperation:
    """A mutation: all its statements happen at one instant.

    Its budget bounds what it does until it is offered to the branch; then it is not stopped.
    """

    def __init__(  # noqa: PLR0913 — what a mutation is made of
        self,
        resources: Resources,
        text: str,
        *,
        name: str | None,
        params: object,
        budget: Budget,
        embed: EmbedMode = EmbedMode.NEVER,
        reader: PatternReader | None = None,
    ) -> None:
        self._resources = resources
        self.fill = resources.create_fill(embed)
        self._reader = reader
        self._text = text
        self._name = name
        self._budget = budget
        self._params = params
        self._records: dict[RecordParameter, pa.Table] = {}
        self._now = resources.environment.now_ms()
        self._staging = RowStaging(resources.storage.tables)
        self.query_name = ""
        self.mutated: MutationChange | None = None

    @property
    def may_repeat(self) -> bool:
        """An update or a delete of what others changed is for its author to decide again."""
        return self.mutated is not None and self.mutated.is_insert_only

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It changes its branch."""
        return (Act(Action.CHANGE, branch),)

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The mutation on a view; None when it changes nothing."""
        compiled, budget = self._compile(view), self._budget
        plan = compiled.plan
        if not isinstance(plan, Mutation):
            raise WrongQueryKindError(plan.name, is_mutation=False)
        self.query_name = plan.name
        params, records = self._bind(plan)
        keys = self._resources.keys
        read = list_matched_types(plan, view.catalog)
        if read and self._reader is not None:
            self._reader.authorize(read)
        self.mutated = run_mutation(
            plan,
            RequestParams(
                {**params, NOW_NAME: self._now}, budget.check_interrupts, budget.require_memory
            ),
            view=view,
            keys=keys,
            patterns=PatternReads(compiled.pattern_plans, partial(self._read_pattern, params)),
            records=records,
            fills_vectors=self.fill is not None and self.fill.mode is EmbedMode.WRITE,
        )
        if not self.mutated.change:
            return None
        request = Request(
            request.signature,
            self.mutated.reads,
            request.requires,
            budget.check_interrupts,
            self.fill,
        )
        transaction = prepare_transaction(
            self.mutated.change, view, keys, staging=self._staging, request=request
        )
        budget.check_interrupts()
        return transaction

    def abandon(self) -> None:
        """Remove what was written for a mutation that will never be a commit."""
        self._staging.abandon()

    def count_affected(self, written: WriteOutcome) -> tuple[int, int]:
        """How many nodes and edges were touched: for a repeated request, those of its commit."""
        if written.record is not None and (written.is_repeated or self.mutated is None):
            self.query_name = select_query(parse_file(self._text).file, self._name).name.text
            found = changes_of(written.record)
            nodes = sum(each.total for key, each in found.items() if key.kind is TypeKind.NODE)
            return nodes, sum(each.total for each in found.values()) - nodes
        assert self.mutated is not None, "a write that was not refused was prepared"
        return self.mutated.nodes, self.mutated.edges

    def _read_pattern(
        self, params: Params, plan: ReadPlan, view: View, *, is_committed: bool
    ) -> pa.Table:
        """The rows of a pattern; what is kept of views in memory is kept of committed ones."""
        resources = self._resources
        access = resources.environment.access if is_committed else Access.LOOKUPS
        options = ReadOptions(access, self._budget.begin_part())
        found = resources.reads.run(plan, view, params, now=self._now, options=options)
        return found.to_arrow()

    def _compile(self, view: View) -> CompiledQuery:
        return self._resources.plans.get(
            self._text,
            name=self._name,
            schema=view.schema,
            limits=None if self._reader is None else self._reader.find_limits(),
            budget=self._budget,
        )

    def _bind(self, plan: Mutation) -> tuple[Params, dict[str, pa.Table]]:
        """The values of the parameters, and the records of those that are lists of records."""
        given, records = self._params, {}
        if plan.records and isinstance(given, Mapping):
            records = {each.name: self._read_records(each, given) for each in plan.records}
            given = {name: value for name, value in given.items() if name not in records}
        elif plan.records:
            raise build_missing_error(plan.records[0])
        normalized = normalize_parameters(given, poll=self._budget.check_interrupts)
        mode = self._resources.environment.mode
        values = bind_parameters(plan.parameters, normalized, strictness=mode, budget=self._budget)
        return values, records

    def _read_records(self, parameter: RecordParameter, given: Mapping[str, object]) -> pa.Table:
        """The records of a parameter, read once for each declaration of it."""
        if parameter.name not in given:
            raise build_missing_error(parameter)
        source, known = given[parameter.name], self._records.get(parameter)
        if known is None:
            known = self._records[parameter] = read_parameter_records(parameter, source)
        return known


def digest_schema(source: str) -> str:
    """The SHA-256 of a schema text, in hexadecimal."""
    return hashlib.sha256(source.encode()).hexdigest()


def choose_plan_dialect(mode: Mode) -> PlanDialect:
    """The dialect of migration plans: strict graphs change their schemas as the reference does."""
    return "reference" if mode is Mode.STRICT else "omnigraph"


class MigrationOperation:
    """A schema change: planned once, because another schema in between is for its author."""

    may_repeat = True

    def __init__(
        self,
        resources: Resources,
        source: str,
        *,
        expected: str | None = None,
        shows_entities: Callable[[], bool] = lambda: True,
        allow_data_loss: bool = False,
        convert: bool = False,
    ) -> None:
        self._resources = resources
        self._source = source
        self._allow_data_loss = allow_data_loss
        self._convert = convert
        self._now = resources.environment.now_ms()
        self._expected = expected
        self._shows_entities = shows_entities
        self._catalog = load_whole_catalog(source, mode=resources.environment.mode)
        self._migrated: Migration | None = None
        self._after_sweep = 0

    @property
    def plan(self) -> MigrationPlan:
        """The steps of the prepared change."""
        assert self._migrated is not None, "a plan is asked for after its preparation"
        return self._migrated.plan

    def plan_of(self, written: WriteOutcome, session: Session) -> MigrationPlan:
        """The steps of what was written: for a repeated request, those that its commit took."""
        record = written.record
        if self._migrated is not None or record is None:
            return self.plan
        if self._resources.schemas.get(record.schema).source != self._source:
            # It would look as if this schema were in force.
            reason = f"commit {record.commit} has it, which brought another schema"
            raise InvalidArgumentError(
                "key", reason, hint="use a word of its own for every request"
            )
        before = self._resources.history.read_by_commit(record.parent or record.commit)
        dialect = choose_plan_dialect(self._resources.environment.mode)
        view = session.open_view(before)
        plan = plan_migration(
            view.accepted,
            self._catalog,
            dialect=dialect,
            allow_data_loss=self._allow_data_loss,
            convert=self._convert,
        )
        # No entity contradicted it: it was committed.
        return replace(plan, is_checked=True)

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It brings a schema to its branch."""
        return (Act(Action.SCHEMA_APPLY, target_branch=branch),)

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The change on a view; None when the schema is in force already."""
        in_force = digest_schema(view.schema.source)
        if self._expected not in (None, in_force):
            raise SchemaMovedError(
                view.snapshot.stream.branch, expected=str(self._expected), actual=in_force
            )
        newest = self._resources.committer.sweeps.find_newest()
        if self._migrated is not None:
            self._migrated.require_same_schema(view.snapshot)
            # A clean-up since then may be removing the tables of new types: they are made anew. So
            # is what was checked on entities that have changed.
            if newest == self._after_sweep and not self._migrated.depends_on_data:
                return self._migrated.rebuild_transaction(view.snapshot)
        self._after_sweep = newest
        self._migrated = build_migration(
            view,
            SchemaText(self._source, self._catalog),
            tables=self._resources.storage.tables,
            schemas=self._resources.schemas,
            signature=request.signature,
            dialect=choose_plan_dialect(self._resources.environment.mode),
            shows_entities=self._shows_entities,
            allow_data_loss=self._allow_data_loss,
            convert=self._convert,
            now=self._now,
        )
        return self._migrated.transaction

    def abandon(self) -> None:
        """Nothing to remove: tables that no record names are for the collector."""
