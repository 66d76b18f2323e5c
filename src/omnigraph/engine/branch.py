"""A branch: a named line of commits, and everything that adds to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from omnigraph.bulk.task_runner import StageProgress
from omnigraph.engine import arguments, feed
from omnigraph.engine.branch_maintenance import BranchMaintenance
from omnigraph.engine.branch_merges import BranchMerges
from omnigraph.engine.branch_reads import BranchReads
from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.commit_loop import Terms, build_terms, write
from omnigraph.engine.diff import Diff, compute_diff
from omnigraph.engine.entity_changes import Filters, parse_filters
from omnigraph.engine.entity_history import EntityVersion, compute_blame, entity_of, iter_history
from omnigraph.engine.graph_session import Session
from omnigraph.engine.load_dispatch import (
    AnySource,
    DialectName,
    EmbedModeName,
    LoadEngine,
    LoadEngineName,
    LoadModeName,
    LoadRequest,
    MissingName,
    OnError,
    OnErrorName,
    build_input_options,
    load_source,
)
from omnigraph.engine.read_requests import (
    QueryText,
    ReadEngine,
    build_budget,
    build_read_request,
    build_time_budget,
    read_query_text,
    require_engine,
)
from omnigraph.engine.refs import StateRef, resolve
from omnigraph.engine.retries import RETRIES_DEFAULT, retry_conflicts
from omnigraph.engine.snapshot import EntityKind, Snapshot
from omnigraph.engine.write_operations import (
    MigrationOperation,
    MutationOperation,
    PatternReader,
    choose_plan_dialect,
)
from omnigraph.engine.write_results import (
    LoadResult,
    MutationResult,
    SchemaResult,
)
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.policy.acts import Act, Action
from omnigraph.query.entity_conditions import load_whole_catalog
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema.migration import MigrationPlan
from omnigraph.versioning import Stream
from omnigraph.writers.inputs import Progress
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.schema_migration import plan_on_data

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.merger import Merger

Returned = TypeVar("Returned")


class Branch(BranchReads, BranchMerges, BranchMaintenance):
    """A line of commits, from the moment it was opened until it is deleted.

    Reads see the newest commit of their moment. A branch that is deleted and created again is
    another one, which this object never becomes.
    """

    def __init__(self, graph: Graph, session: Session, stream: Stream) -> None:
        self.graph = graph
        self._session = session
        self._stream = stream

    @property
    def session(self) -> Session:
        """The graph as this process has it open, for the layers above."""
        return self._session

    @property
    def stream(self) -> Stream:
        """Where its commits are, for the layers above."""
        return self._stream

    @property
    def name(self) -> str:
        """Its name."""
        return self._stream.branch

    @property
    def life(self) -> str:
        """Which life of its name it is: another one after it was deleted and created again."""
        return self._stream.id

    def snapshot(self) -> Snapshot:
        """The graph as it is now, pinned."""
        return Snapshot(self._session, self._session.read_head(self._stream))

    def load(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        source: AnySource,
        *,
        mode: LoadModeName,
        missing: MissingName = "insert",
        type: str | None = None,  # noqa: A002
        dialect: DialectName = "strict",
        if_commit: Commit | str | None = None,
        message: str | None = None,
        key: str | None = None,
        engine: LoadEngineName = "auto",
        on_error: OnErrorName = "fail",
        rejects: str | os.PathLike[str] | None = None,
        embed: EmbedModeName | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
        stages: StageProgress | None = None,
    ) -> LoadResult:
        """Write entities in one commit or none.

        `source` is a path, records that name their types, or Arrow data and frames of one `type`.
        With a `type`, records are plain (a list of dicts, JSON lines), and a dict holds columns.
        Without, a dict has a source for each type, to be loaded together.

        `mode` is `append` (an existing id is refused), `merge` (its entity is replaced, but keeps
        what a table has no column for, or a plain record no member), `patch` (what a record does
        not mention stays; `missing` is for new ids: `insert`, `skip` or `error`) or `overwrite` (a
        type that occurs keeps only what is loaded). A call repeated with its `key` answers with the
        commit of the first one, if that is among the newest 1,000 of this branch.

        `engine` is `local`, `spark`, or `auto`, which leaves large files to Spark. With `on_error`
        `quarantine`, records that cannot be written are left out; `rejects` is a folder for a
        Parquet file that lists all of them. A dry run checks everything and writes nothing.
        `progress` gets the count of records read, `stages` how far each step of a large load is.

        `embed` is when `@embed` vectors are made of their texts: `never`, with the `write`, which
        is refused if the provider fails, or `later`; without, as the graph was opened.
        """
        request = LoadRequest(
            mode=arguments.parse_choice(LoadMode, "mode", mode),
            options=build_input_options(mode, dialect, type, progress, missing),
            engine=arguments.parse_choice(LoadEngine, "engine", engine),
            on_error=arguments.parse_choice(OnError, "on_error", on_error),
            rejects=None if rejects is None else arguments.require_address(rejects),
            stages=stages,
            embed=self._session.choose_embed_mode(embed),
        )
        terms = build_terms(if_commit, message=message, key=key, is_dry=dry_run)
        return load_source(self._session, self._stream, source, request, terms)

    def mutate(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        if_commit: Commit | str | None = None,
        message: str | None = None,
        key: str | None = None,
        retries: int = 0,
        embed: EmbedModeName | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
        cancel: Cancellation | None = None,
    ) -> MutationResult:
        """Run a mutation: one commit for all its statements, none when nothing changes.

        A call repeated with its `key` does nothing, and answers with the commit of the first one,
        as in `load`. A list of records may be any source of `load` but a text: records, a table, a
        frame, or the `Path` of a file. An update or a delete of what others changed meanwhile is a
        `ConflictError`, unless it may be run again on the newest state, up to `retries` times. A
        dry run counts what would be affected. After `timeout` seconds it is stopped, as by
        `cancel`, and nothing is written; once its commit is being made, it goes on to its end.
        `memory` bounds the read of each pattern, and `embed` is that of `load`.
        """
        budget = build_budget(timeout, memory, cancel)
        found = read_query_text(text)
        arguments.require_optional_text("name", name)
        given = arguments.hold_streams(params)
        terms = build_terms(if_commit, message=message, key=key, is_dry=dry_run)
        mode = self._session.choose_embed_mode(embed)
        reader = PatternReader(self._session, self.name)

        def run() -> MutationResult:
            resources = self._session.resources
            operation = MutationOperation(
                resources,
                found,
                name=name,
                params=given,
                budget=budget,
                embed=mode,
                reader=reader,
            )
            return self._mutate(operation, terms)

        return retry_conflicts(run, retries=arguments.require_count("retries", retries))

    def _mutate(self, operation: MutationOperation, terms: Terms) -> MutationResult:
        written = write(self._session, self._stream, operation, terms)
        if operation.fill is not None and operation.fill.pending and not terms.is_dry:
            self._session.resources.vector_builder.consider(self._stream)
        nodes, edges = operation.count_affected(written)
        return MutationResult(
            branch=self.name,
            query_name=operation.query_name,
            affected_nodes=nodes,
            affected_edges=edges,
            actor=self._session.actor,
            commit=None if written.record is None else commit_of(written.record),
            is_repeated=written.is_repeated,
            is_dry=terms.is_dry,
        )

    def retrying(
        self, work: Callable[[Branch], Returned], *, retries: int = RETRIES_DEFAULT
    ) -> Returned:
        """What some work with this branch returns, done again if a write of it is a conflict.

        For work that reads and then writes once, such as `lambda branch: branch.mutate(...)`: what
        an earlier write of the same work committed stays, and would be written again. It pauses
        between attempts, up to a second each, and raises the last `ConflictError`.
        """
        count = arguments.require_count("retries", retries)
        return retry_conflicts(lambda: work(self), retries=count)

    def query(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        cancel: Cancellation | None = None,
        engine: ReadEngine = "local",
    ) -> Result:
        """Run a read on the newest snapshot; see `Snapshot.query`."""
        request = build_read_request(
            text,
            name=name,
            params=params,
            timeout=timeout,
            memory=memory,
            settings=settings,
            cancel=cancel,
        )
        if require_engine(engine) == "spark" or self._session.resources.log.is_remote:
            # To look for a commit takes long there, and other reads would wait for that.
            return self.snapshot().answer(request, engine)
        with self._session.admit_read(request.text, request.name):
            return self.snapshot().answer_in_turn(request)[1]

    def explain(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        analyze: bool = True,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        cancel: Cancellation | None = None,
    ) -> Explained:
        """How a read of the newest snapshot is answered: its operators, paths, rows and times."""
        request = build_read_request(
            text,
            name=name,
            params=params,
            timeout=timeout,
            memory=memory,
            settings=settings,
            cancel=cancel,
        )
        return self.snapshot().describe(request, analyze=analyze)[1]

    def export(self, *, types: Collection[str] | None = None) -> Iterator[bytes]:
        """Everything, or some types, as chunks of whole JSON lines that a load reads back."""
        return self.snapshot().export(types=types)

    def diff(
        self,
        other: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Diff:
        """What another branch has that this one has not: the review before a merge.

        It compares the other one with the commit that a merge into this branch would start from,
        so what this branch did meanwhile is not listed. `Graph.diff` compares two states directly.
        """
        budget = build_time_budget(timeout, cancel)
        session = self._session
        new = resolve(session, "other", other).at
        base = session.resources.lineage.find_merge_base(session.read_head(self._stream), new)
        return compute_diff(session, base, new, parse_filters(kinds, types, ops), budget)

    def commits(self, *, limit: int | None = None) -> Iterator[Commit]:
        """Its commits, newest first, with those it started from and those of maintenance."""
        count = arguments.require_optional_count("limit", limit)
        self._session.authorize(Act(Action.READ, self.name), None)
        self._session.read_head(self._stream)
        return islice(
            map(commit_of, self._session.resources.history.iter_commits(self._stream)), count
        )

    def changes(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        bytes_max: int | None = None,
        commits_max: int | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.FeedPage:
        """A page of what was committed after a position, commit by commit.

        The position is a `cursor`, or `start`: `now` (without anything), `beginning`, or
        `after:` and a commit of the branch, named as `Graph.snapshot` takes it. A page has a
        `next_page_token` or, the last one of what was there when the poll began, a cursor. A
        commit may be returned again after a failure, so apply it by its id.
        """
        origin = feed.parse_origin(start, cursor, page_token)
        limits = feed.parse_limits(limit, bytes_max=bytes_max, commits_max=commits_max)
        filters = self._filter_changes(Action.READ, kinds, types, ops)
        return feed.Feed(self._session, self._stream, filters).poll(origin, limits)

    def follow(
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        poll_s: float = feed.POLL_S,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Iterator[feed.Block]:
        """What every commit after a position changed, without end; waits for new commits.

        Keep the `cursor` of a block when you are done with it, to go on there after a failure. A
        commit that is larger than a page comes in several blocks; the last one has the cursor.
        """
        origin = feed.parse_origin(start, cursor, None)
        filters = self._filter_changes(Action.READ, kinds, types, ops)
        followed = feed.Feed(self._session, self._stream, filters)
        return feed.follow(followed, origin, limits=feed.Limits(), poll_s=poll_s)

    def baseline(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.Baseline:
        """Every entity as of now, and then the cursor to follow the branch from there."""
        filters = self._filter_changes(Action.EXPORT, kinds, types, ops)
        return feed.Baseline(self._session, self._stream, filters)

    def history(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Iterator[EntityVersion]:
        """What commits made of one entity, newest first, with those that merges brought.

        After `timeout` seconds it is stopped, as by `cancel`.
        """
        budget = build_time_budget(timeout, cancel)
        snapshot = self.snapshot()
        type_key = snapshot.type_key(type_name, kind)
        arguments.require_text("entity_id", entity_id)
        view = snapshot.open_for(Action.READ, [type_name])
        entity = entity_of(view, type_key, entity_id)
        return iter_history(self._session, self._stream, entity, budget)

    def blame(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> dict[str, Commit | None]:
        """The commit that gave each property of an entity its value; None if it is gone.

        For an edge, `@src` and `@dst` are its ends. A value that a merge brought is blamed on the
        commit that made it on the merged branch. After `timeout` seconds it is stopped, as by
        `cancel`.
        """
        budget = build_time_budget(timeout, cancel)
        snapshot = self.snapshot()
        type_key = snapshot.type_key(type_name, kind)
        arguments.require_text("entity_id", entity_id)
        view = snapshot.open_for(Action.READ, [type_name])
        entity = entity_of(view, type_key, entity_id)
        return compute_blame(self._session, self._stream, entity, budget)

    def plan_schema(
        self, text: str, *, allow_data_loss: bool = False, convert: bool = False
    ) -> MigrationPlan:
        """The plan of `apply_schema` with `dry_run`: its steps, and what entities contradict."""
        arguments.require_text("text", text)
        mode = self._session.resources.environment.mode
        return plan_on_data(
            self.snapshot().view,
            load_whole_catalog(text, mode=mode),
            dialect=choose_plan_dialect(mode),
            allow_data_loss=allow_data_loss,
            convert=convert,
            now=self._session.resources.environment.now_ms(),
        )

    def apply_schema(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: str,
        *,
        message: str | None = None,
        key: str | None = None,
        if_schema: str | None = None,
        allow_data_loss: bool = False,
        convert: bool = False,
        dry_run: bool = False,
    ) -> SchemaResult:
        """Bring a schema into force on this branch; the others keep theirs.

        A text that declares nothing is refused, unless `allow_data_loss`; a type of a property that
        is not a wider one, unless `convert`: then all values must survive it. A call repeated with
        its `key` does nothing, and answers with the commit of the first one. With `if_schema`, the
        SHA-256 of a schema text, that text must be the one in force. A dry run answers with the
        plan, supported or not.
        """
        arguments.require_text("text", text)
        if dry_run:
            plan = self.plan_schema(text, allow_data_loss=allow_data_loss, convert=convert)
            version = self.version
            return SchemaResult(self._session.uri, plan, None, version, is_dry=True)
        terms = build_terms(None, message=message, key=key)
        expected = arguments.require_optional_text("if_schema", if_schema)
        operation = MigrationOperation(
            self._session.resources,
            text,
            expected=expected,
            shows_entities=partial(self._session.may_read, self.name),
            allow_data_loss=allow_data_loss,
            convert=convert,
        )
        written = write(self._session, self._stream, operation, terms)
        record = written.record
        return SchemaResult(
            uri=self._session.uri,
            plan=operation.plan_of(written, self._session),
            commit=None if record is None else commit_of(record),
            version=self.snapshot().version if record is None else record.seq,
            is_repeated=written.is_repeated,
        )

    def __repr__(self) -> str:
        return f"Branch({self.name!r})"

    def _filter_changes(self, action: Action, kinds: object, types: object, ops: object) -> Filters:
        """The filters of a caller who may see what they let through."""
        filters = parse_filters(kinds, types, ops)
        self._session.authorize(Act(action, self.name), filters.types or None)
        return filters

    @property
    def _merger(self) -> Merger:
        from omnigraph.engine.merger import Merger  # noqa: PLC0415 — most programs merge nothing

        return Merger(self._session, self._stream)
