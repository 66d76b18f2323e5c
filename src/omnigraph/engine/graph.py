"""Graphs: create and open them, and get their branches and snapshots."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

from omnigraph.embedding import BatchEmbedder
from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine import arguments, feed
from omnigraph.engine.branch import Branch
from omnigraph.engine.check.graph_check import COMMITS_MAX, CheckReport, check_graph
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff import Diff, compute_diff
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.gate import Gate, PolicySource, SchemaBoundGate, build_gate
from omnigraph.engine.graph_proposals import GraphProposals
from omnigraph.engine.graph_session import Session
from omnigraph.engine.graph_statements import execute_statement
from omnigraph.engine.load_dispatch import EmbedModeName
from omnigraph.engine.noun_views import render_graph
from omnigraph.engine.read_requests import build_time_budget
from omnigraph.engine.refs import ResolvedRef, StateRef, resolve, use_newest
from omnigraph.engine.repair import RepairReport, repair
from omnigraph.engine.resources import Environment, Storage, open_storage
from omnigraph.engine.retention import CleanupReport, Tag, build_policy, cleanup, tag_of
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.spark_bridge import import_spark_api
from omnigraph.errors import (
    GraphExistsError,
    GraphNotFoundError,
    InvalidArgumentError,
)
from omnigraph.execution.query_budget import Cancellation
from omnigraph.policy.acts import Act, Action
from omnigraph.query.entity_conditions import load_whole_catalog
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage import require_exclusive_puts
from omnigraph.storage.objects.disk_reserve import keep_reserve
from omnigraph.versioning import MAIN, Log, Record, Signature, Stream, tag_events
from omnigraph.versioning.record import GENESIS_SEQ, MAIN_BRANCH
from omnigraph.versioning.upgrade import UpgradeReport
from omnigraph.writers.maintain import IndexStatus, list_index_status
from omnigraph.writers.schema_migration import SchemaText, create_initial_tables

if TYPE_CHECKING:
    from omnigraph.spark.graph_api import GraphSpark


def create_graph(  # noqa: PLR0913 — one keyword for each decision of the caller
    uri: str | os.PathLike[str],
    *,
    schema: str,
    actor: str | None = None,
    durable: bool = True,
    storage_options: Mapping[str, str] | None = None,
    exist_ok: bool = False,
    key: str | None = None,
    embed: EmbedModeName = "never",
    embedder: BatchEmbedder | None = None,
) -> Graph:
    """Create a graph at a directory, `file://`, `memory://NAME` or `s3://bucket/prefix`.

    `durable` writes survive a power loss; without, local writes are faster and may not. With
    `exist_ok`, a graph that is there is opened as it is, whatever its schema has become. A call
    repeated with its `key` opens the graph that the first one created. `embed` and `embedder` are
    those of `open`.
    """
    given = _build_environment(embedder)
    mode = arguments.parse_choice(EmbedMode, "embed", embed)
    storage = _open_storage(uri, is_durable=durable, options=storage_options)
    try:
        return create_on(
            storage, schema=schema, actor=actor, key=key, environment=given, embed=mode
        )
    except GraphExistsError:
        if not exist_ok:
            raise
        return open_on(storage, actor=actor, environment=given, embed=mode)


def open_graph(  # noqa: PLR0913 — one keyword for each decision of the caller
    uri: str | os.PathLike[str],
    *,
    actor: str | None = None,
    durable: bool = True,
    storage_options: Mapping[str, str] | None = None,
    policy: PolicySource | None = None,
    embed: EmbedModeName = "never",
    embedder: BatchEmbedder | None = None,
) -> Graph:
    """Open an existing graph; `actor` signs whatever is committed through it.

    With a `policy`, the path of a bundle, the actor can only do what its rules allow. `embed` is
    when writes get `@embed` vectors of their texts, unless a write says it: `never`, with the
    `write` or `later`. `embedder` makes them, in place of the provider of the environment.
    """
    gate = build_gate(policy, graph=arguments.require_address(uri))
    storage = _open_storage(uri, is_durable=durable, options=storage_options)
    mode = arguments.parse_choice(EmbedMode, "embed", embed)
    environment = _build_environment(embedder)
    graph = open_on(storage, actor=actor, gate=gate, environment=environment, embed=mode)
    if isinstance(gate, SchemaBoundGate) and gate.limits_types:
        session = graph.branch().session
        gate.check_schema(session.open_view(session.read_head(MAIN)).catalog)
    return graph


def _build_environment(embedder: BatchEmbedder | None) -> Environment | None:
    """The environment of a graph with an embedder of its own."""
    if embedder is None:
        return None
    if not isinstance(cast(object, embedder), BatchEmbedder):  # callers may not check types
        reason = "it has no model, or no embed_texts"
        hint = "wrap a function in omnigraph.embedding.FunctionEmbedder(model, function)"
        raise InvalidArgumentError("embedder", reason, hint=hint)
    return Environment(embed=embedder)


def create_on(
    storage: Storage,
    *,
    schema: str,
    actor: str | None = None,
    environment: Environment | None = None,
    key: str | None = None,
    embed: EmbedMode = EmbedMode.NEVER,
) -> Graph:
    """Create a graph on a storage; of two processes that do, one succeeds.

    With a `key`, both get the graph.
    """
    signature = Signature(actor=actor, key=arguments.require_optional_key(key))
    try:
        return _create_on(storage, schema, signature, environment, embed)
    except GraphExistsError:
        if key is None or read_creation_key(storage) != key:
            raise
        return open_on(storage, actor=actor, environment=environment, embed=embed)


def read_creation_key(storage: Storage) -> str | None:
    """The key with which the graph on a storage was created, if its first commit is kept."""
    genesis = Log(storage.objects).read(MAIN.id, GENESIS_SEQ)
    return genesis.signature.key if isinstance(genesis, Record) else None


def _create_on(
    storage: Storage,
    schema: str,
    signature: Signature,
    environment: Environment | None,
    embed: EmbedMode,
) -> Graph:
    session = Session(storage, actor=signature.actor, environment=environment, embed=embed)
    resources = session.resources
    # A text with errors is refused before anything is written.
    catalog = load_whole_catalog(
        arguments.require_text("schema", schema), mode=resources.environment.mode
    )
    _require_absent(session)
    require_exclusive_puts(storage.objects)
    made = create_initial_tables(
        SchemaText(schema, catalog), tables=storage.tables, schemas=resources.schemas
    )
    resources.committer.create_graph(schema=made.schema.digest, pins=made.pins, signature=signature)
    keep_reserve(storage.objects, branches=1)
    session.begin()
    return Graph(session)


def open_on(
    storage: Storage,
    *,
    actor: str | None = None,
    environment: Environment | None = None,
    gate: Gate | None = None,
    embed: EmbedMode = EmbedMode.NEVER,
) -> Graph:
    """Open the graph on a storage."""
    session = Session(storage, actor=actor, environment=environment, gate=gate, embed=embed)
    session.resources.log.require_graph()
    session.begin()
    return Graph(session)


def _open_storage(
    uri: str | os.PathLike[str], *, is_durable: bool, options: Mapping[str, str] | None
) -> Storage:
    return open_storage(
        arguments.require_address(uri),
        is_durable=is_durable,
        options=arguments.require_options(options),
    )


def _require_absent(session: Session) -> None:
    try:
        session.resources.log.require_graph()
    except GraphNotFoundError:
        return
    raise GraphExistsError(session.uri)


class Graph(GraphProposals):
    """A graph, open in this process; safe to share between its threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def uri(self) -> str:
        """Its address."""
        return self._session.uri

    @property
    def actor(self) -> str | None:
        """Who signs what is committed through this object."""
        return self._session.actor

    def acting_as(self, actor: str | None) -> Graph:
        """The same graph for another actor, under the same policy; it opens nothing again."""
        return Graph(self._session.act_as(actor))

    def invoking(self, query: str) -> Graph:
        """The same graph on behalf of a stored query, which may do what its rules carry."""
        return Graph(self._session.invoke_query(query))

    @property
    def has_query_limits(self) -> bool:
        """Whether the policy names the stored queries that its actor may invoke."""
        return self._session.has_query_limits

    def authorize(self, act: Act, types: Collection[str] = ()) -> None:
        """Ask the policy about an act, on some types if it is about any, for the layers above.

        A denial is a `PolicyDeniedError`.
        """
        self._session.authorize(act, types)

    @property
    def spark(self) -> GraphSpark:
        """The graph on Spark: types as DataFrames, and bulk work done by tasks."""
        made: GraphSpark = import_spark_api().GraphSpark(self, self._session)
        return made

    def branch(self, name: str = MAIN_BRANCH) -> Branch:
        """A branch that exists."""
        arguments.require_text("name", name)
        return Branch(self, self._session, self._session.resources.branches.resolve(name))

    def branches(self) -> list[str]:
        """The names of all branches: main first, then by name."""
        self._session.authorize(Act(Action.READ), None)
        return self._session.resources.branches.list()

    def create_branch(self, name: str, *, source: StateRef = MAIN_BRANCH) -> Branch:
        """Start a branch at another one, or at any other state that `snapshot` takes."""
        arguments.require_text("name", name)
        find = partial(resolve, self._session, "source", source, expects_branch=True)
        branches = self._session.resources.branches

        def create(found: ResolvedRef) -> Stream:
            self._session.authorize(Act(Action.BRANCH_CREATE, found.at.stream.branch, name))
            return branches.create(name, at=found.at, actor=self.actor)

        stream = use_newest(
            self._session,
            find(),
            resolve_again=find,
            use=create,
        )
        return Branch(self, self._session, stream)

    def delete_branch(self, name: str) -> None:
        """End a branch; what other branches started from it keeps its commits."""
        arguments.require_text("name", name)
        self._session.authorize(Act(Action.BRANCH_DELETE, target_branch=name))
        self._session.resources.branches.delete(name, actor=self.actor)

    def snapshot(self, at: StateRef, *, branch: str = MAIN_BRANCH) -> Snapshot:
        """The graph as of a branch, a commit, a version of a branch, or a time on one.

        A text is the name of a branch or of a tag, the id of a commit, or a version, a time or a
        date of the branch. One in whole seconds covers its second; a date is its start in UTC.
        """
        arguments.require_text("branch", branch)
        return Snapshot(self._session, resolve(self._session, "at", at, branch=branch).at)

    def commit(self, at: StateRef) -> Commit:
        """The commit of a state: by its id, or by anything else that `snapshot` takes."""
        self._session.authorize(Act(Action.READ), None)
        return self._session.read_commit(resolve(self._session, "at", at).at)

    def commit_changes(
        self,
        commit: StateRef,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.ChangesPage:
        """A page of what a commit changed, relative to its first parent, with images."""
        filters = parse_filters(kinds, types, ops)
        found = resolve(self._session, "commit", commit).at
        self._session.authorize(Act(Action.READ, found.stream.branch), filters.types or None)
        return feed.read_commit_changes(
            self._session,
            found.commit,
            page_token=arguments.require_optional_text("page_token", page_token),
            filters=filters,
            limits=feed.parse_limits(limit),
        )

    def diff(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        old: StateRef,
        new: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Diff:
        """What changed from one state to another, of any branches.

        A text is what `snapshot` takes; times and versions are those of main. `kinds` are `node`
        and `edge`; `ops` are `insert`, `update` and `delete`. After `timeout` seconds it is
        stopped, as by `cancel`.
        """
        budget = build_time_budget(timeout, cancel)
        session = self._session
        states = resolve(session, "old", old).at, resolve(session, "new", new).at
        return compute_diff(session, *states, parse_filters(kinds, types, ops), budget)

    def execute(
        self,
        text: str,
        *,
        branch: str = MAIN_BRANCH,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> list[JsonObject]:
        """Run a statement, such as `branch list` or `show all;`; its rows, if it has any.

        `settings` are those of the request, which `show` lists.
        """
        arguments.require_text("text", text)
        arguments.require_text("branch", branch)
        mode = self._session.resources.environment.mode
        return execute_statement(self, text, mode=mode, branch=branch, settings=settings)

    def index_status(self, branch: str = MAIN_BRANCH) -> list[IndexStatus]:
        """Every index that the schema of a branch declares, and how much of its type it covers."""
        return list_index_status(self.branch(branch).snapshot().view)

    def check(self, *, commits_max: int | None = COMMITS_MAX, deep: bool = False) -> CheckReport:
        """Verify every structural invariant of the graph, from what is stored.

        Of each branch, the newest commits are compared with what they say they changed: so many,
        or all of them if None. A deep check also reads every file and compares it with its digest.
        """
        arguments.require_optional_count("commits_max", commits_max)
        self._session.authorize(Act(Action.ADMIN))
        storage = self._session.resources.storage
        tables = storage.tables if storage.reopen is None else storage.reopen()
        return check_graph(storage.objects, tables, commits_max=commits_max, is_deep=deep)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | float | None = None,
        dry_run: bool = True,
        grace: timedelta | float | None = None,
    ) -> CleanupReport:
        """Remove old commits of every branch, and what nothing refers to any more.

        A commit goes when it is not among the newest `keep` of its branch and was superseded longer
        than `older_than` ago (a time span, or seconds). Tags, and what merges between live branches
        need, stay. So does whatever was superseded, deleted or written within the `grace`, which is
        a day by default. A shorter one loses no commit; readers of what goes fail with
        `SnapshotGoneError`, and writes under way start again. A dry run only reports.
        """
        self._session.authorize(Act(Action.ADMIN))
        policy = build_policy(keep, older_than)
        return cleanup(self._session, policy, is_dry=dry_run, grace=grace)

    def repair(self, *, confirm: bool = False, force: bool = False) -> RepairReport:
        """Look for foreign writes to tables, stale derived objects, and damaged files.

        With `confirm`, derived objects, indexes among them, are written again, and versions of
        others that changed no row go; with `force`, those that did go too. Nothing of that shows
        in the graph. Any other damaged file has to come from a copy of the graph: the report names
        all of them, and the newest whole commit of each branch that needs one.
        """
        self._session.authorize(Act(Action.ADMIN))
        return repair(self._session, confirm=confirm, force=force)

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Bring what is stored to the format of this program, in place; history and names stay."""
        self._session.authorize(Act(Action.ADMIN))
        return self._session.resources.upgrade(is_dry=dry_run)

    def tag(self, name: str, at: StateRef = MAIN_BRANCH) -> Tag:
        """Name a commit, which keeps it readable for good: the head of a branch, or any other."""
        arguments.require_text("name", name)
        find = partial(resolve, self._session, "at", at)
        tags = self._session.resources.branches.tags

        def create(found: ResolvedRef) -> tag_events.Tag:
            self._session.authorize(Act(Action.BRANCH_CREATE, found.at.stream.branch, name))
            return tags.create(name, at=found.at, actor=self.actor)

        tag = use_newest(
            self._session,
            find(),
            resolve_again=find,
            use=create,
        )
        return tag_of(tag)

    def tags(self) -> list[Tag]:
        """Every tag, by name."""
        self._session.authorize(Act(Action.READ), None)
        return [tag_of(tag) for tag in self._session.resources.branches.tags.list()]

    def delete_tag(self, name: str) -> None:
        """Free the name of a tag; its commit stays only as long as its branch keeps it."""
        arguments.require_text("name", name)
        self._session.authorize(Act(Action.BRANCH_DELETE, target_branch=name))
        self._session.resources.branches.tags.delete(name, actor=self.actor)

    def close(self) -> None:
        """Close the graph after a short wait for a running compaction; closing twice is allowed."""
        self._session.end()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def _repr_html_(self) -> str:
        return render_graph(self)
