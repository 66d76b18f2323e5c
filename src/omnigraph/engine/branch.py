"""A branch: a named line of commits, and everything that adds to it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph.bulk.task_runner import StageProgress
from omnigraph.engine import arguments, feed, optimize
from omnigraph.engine.blob_reader import Blob
from omnigraph.engine.commit import Commit, commit_of, counts_of
from omnigraph.engine.commit_loop import Terms, write
from omnigraph.engine.diff import Diff, compute_diff
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.entity_history import EntityVersion, compute_blame, entity_of, iter_history
from omnigraph.engine.graph_session import Session
from omnigraph.engine.load_dispatch import (
    AnySource,
    LoadEngine,
    LoadRequest,
    OnError,
    load_source,
)
from omnigraph.engine.merger import Merger, Prefer
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.engine.read_requests import ReadEngine, build_read_request
from omnigraph.engine.refs import StateRef, resolve
from omnigraph.engine.snapshot import EntityKind, Snapshot
from omnigraph.engine.write_operations import MigrationOperation, MutationOperation
from omnigraph.engine.write_results import (
    LoadResult,
    MergePlan,
    MergeResult,
    MutationResult,
    SchemaResult,
)
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema import load_catalog
from omnigraph.schema.migration import MigrationPlan, plan_migration
from omnigraph.versioning import Stream
from omnigraph.writers.inputs import Dialect, InputOptions, Progress
from omnigraph.writers.load_records import LoadMode

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph


class Branch:
    """A line of commits, from the moment it was opened until it is deleted.

    Reads see the newest commit of their moment. A branch that is deleted and created again is
    another one, which this object never becomes.
    """

    def __init__(self, graph: Graph, session: Session, stream: Stream) -> None:
        self.graph = graph
        self._session = session
        self._stream = stream

    @property
    def name(self) -> str:
        """Its name."""
        return self._stream.branch

    @property
    def life(self) -> str:
        """Which life of its name it is: another one after it was deleted and created again."""
        return self._stream.id

    @property
    def head(self) -> Commit:
        """Its newest commit."""
        return self.snapshot().commit

    @property
    def schema(self) -> str:
        """The text of the schema in force."""
        return self.snapshot().schema

    def snapshot(self) -> Snapshot:
        """The graph as it is now, pinned."""
        return Snapshot(self._session, self._session.read_head(self._stream))

    def load(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        source: AnySource,
        *,
        mode: str,
        type: str | None = None,  # noqa: A002
        dialect: str = "strict",
        if_commit: Commit | str | None = None,
        message: str | None = None,
        key: str | None = None,
        engine: str = "auto",
        on_error: str = "fail",
        rejects: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        stages: StageProgress | None = None,
    ) -> LoadResult:
        """Write entities from a path, records, Arrow data or a frame, in one commit or none.

        Files of tables may be given by the type of their rows, to be loaded together. `mode` is
        `append` (an existing id is refused), `merge` (its entity is replaced, but keeps the values
        of properties for which a table has no column) or `overwrite` (a type that occurs keeps only
        what is loaded). A call repeated with its `key` answers with the
        commit of the first one, if that is among the newest 1,000 commits of this branch; commits
        made before the branch was created do not count.

        `engine` is `local`, `spark`, or `auto`, which leaves large files to Spark. With `on_error`
        `quarantine`, records that cannot be written are left out; `rejects` is a folder for a
        Parquet file that lists all of them. `progress` receives how many records were read by a
        local load, `stages` how far each step of a larger one is.
        """
        request = LoadRequest(
            mode=arguments.parse_choice(LoadMode, "mode", mode),
            options=InputOptions(
                arguments.parse_choice(Dialect, "dialect", dialect),
                arguments.require_optional_text("type", type),
                progress,
                is_patch=mode == LoadMode.MERGE.value,
            ),
            engine=arguments.parse_choice(LoadEngine, "engine", engine),
            on_error=arguments.parse_choice(OnError, "on_error", on_error),
            rejects=None if rejects is None else arguments.require_address(rejects),
            stages=stages,
        )
        terms = _build_terms(if_commit, message=message, key=key)
        return load_source(self._session, self._stream, source, request, terms)

    def mutate(
        self,
        text: str,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        if_commit: Commit | str | None = None,
        message: str | None = None,
        key: str | None = None,
    ) -> MutationResult:
        """Run a mutation: one commit for all its statements, none when nothing changes.

        A call repeated with its `key` does nothing, and answers with the commit of the first one,
        as in `load`.
        """
        arguments.require_text("text", text)
        arguments.require_optional_text("name", name)
        terms = _build_terms(if_commit, message=message, key=key)
        operation = MutationOperation(self._session.resources, text, name=name, params=params)
        written = write(self._session, self._stream, operation, terms)
        nodes, edges = operation.count_affected(written)
        return MutationResult(
            branch=self.name,
            query_name=operation.query_name,
            affected_nodes=nodes,
            affected_edges=edges,
            actor=self._session.actor,
            commit=None if written.record is None else commit_of(written.record),
            is_repeated=written.is_repeated,
        )

    def query(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: str,
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
        return self.snapshot().answer(request, engine)

    def explain(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        text: str,
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
        return self.snapshot().describe(request, analyze=analyze)

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
    ) -> Diff:
        """What another branch has that this one has not: the review before a merge.

        It compares the other one with the commit that a merge into this branch would start from,
        so what this branch did meanwhile is not listed. `Graph.diff` compares two states directly.
        """
        session = self._session
        new = resolve(session, "other", other).at
        base = session.resources.lineage.find_merge_base(session.read_head(self._stream), new)
        return compute_diff(session, base, new, parse_filters(kinds, types, ops))

    def commits(self, *, limit: int | None = None) -> Iterator[Commit]:
        """Its commits, newest first, with those it started from and those of maintenance."""
        count = arguments.require_optional_count("limit", limit)
        self._session.read_head(self._stream)
        return islice(
            map(commit_of, self._session.resources.history.iter_commits(self._stream)), count
        )

    def commit_with_key(self, key: str, *, after: int | None = None) -> Commit | None:
        """The commit that a load with this key made here, if it is among the newest 1,000.

        With `after`, all commits above that version are looked at too.
        """
        self._session.read_head(self._stream)
        arguments.require_text("key", key)
        arguments.require_optional_count("after", after)
        found = self._session.resources.history.find_by_key(self._stream, key, after=after)
        return None if found is None else commit_of(found)

    def commits_since(self, version: int | None = None) -> Iterator[tuple[Commit, Commit]]:
        """The commits that came to this branch above a version, newest first.

        Beside each is the commit of this branch that brought it: itself, or the merge. Without a
        version they are the newest 1,000 of this branch and what those merged.
        """
        self._session.read_head(self._stream)
        arguments.require_optional_count("version", version)
        found = self._session.resources.history.iter_since(self._stream, version)
        return ((commit_of(each), commit_of(by)) for each, by in found)

    def entities_written(self, commit: str) -> dict[str, int]:
        """How many entities a commit wrote, by type: `node:Person`, `edge:Knows`."""
        record = self._session.resources.history.read_commit(
            arguments.require_text("commit", commit)
        )
        nodes, edges = counts_of(record)
        found = {f"node:{name}": count for name, count in sorted(nodes.items())}
        return found | {f"edge:{name}": count for name, count in sorted(edges.items())}

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
        filters = parse_filters(kinds, types, ops)
        return feed.Feed(self._session, self._stream, filters).poll(origin, limits)

    def span(self, start: str, *, rows_max: int) -> tuple[str, str]:
        """Commits after a start, up to where they wrote so many entities, about.

        The answer names the commit before them and the last of them; `Graph.spark.changes` reads
        what they changed. `start` is `now`, `beginning`, or `after:` and a commit.
        """
        every = feed.Feed(self._session, self._stream, parse_filters(None, None, None))
        return every.find_span(arguments.require_text("start", start), rows_max=rows_max)

    def commit_of(self, cursor: str) -> str:
        """The last commit before a cursor of the feed, whatever filters it was made with."""
        every = feed.Feed(self._session, self._stream, parse_filters(None, None, None))
        return every.commit_of(arguments.require_text("cursor", cursor))

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
        followed = feed.Feed(self._session, self._stream, parse_filters(kinds, types, ops))
        return feed.follow(followed, origin, limits=feed.Limits(), poll_s=poll_s)

    def baseline(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.Baseline:
        """Every entity as of now, and then the cursor to follow the branch from there."""
        return feed.Baseline(self._session, self._stream, parse_filters(kinds, types, ops))

    def history(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> Iterator[EntityVersion]:
        """What commits made of one entity, newest first, with those that merges brought."""
        snapshot = self.snapshot()
        type_key = snapshot.type_key(type_name, kind)
        arguments.require_text("entity_id", entity_id)
        entity = entity_of(snapshot.view, type_key, entity_id)
        return iter_history(self._session, self._stream, entity)

    def blame(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> dict[str, Commit | None]:
        """The commit that gave each property of an entity its value; None if it is gone.

        For an edge, `@src` and `@dst` are its ends. A value that a merge brought is blamed on the
        commit that made it on the merged branch.
        """
        snapshot = self.snapshot()
        type_key = snapshot.type_key(type_name, kind)
        arguments.require_text("entity_id", entity_id)
        entity = entity_of(snapshot.view, type_key, entity_id)
        return compute_blame(self._session, self._stream, entity)

    def merge(
        self,
        source: StateRef,
        *,
        prefer: Prefer = None,
        delete_branch: bool = False,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
    ) -> MergeResult:
        """Bring what another branch, or any other state, changed into this one.

        A text is what `Graph.snapshot` takes; times and versions are those of main.

        Where both changed an entity, `prefer` takes `ours` (this branch) or `theirs`, for all
        conflicts or by kind; without, and for broken rules, a MergeConflictError is raised.
        `delete_branch` ends the merged branch, unless it has got newer commits. A call repeated
        with its `key` answers with the commit of the first one, also when the branch is gone.
        """
        terms = _build_terms(if_commit, message=message, key=key)
        return self._merger.merge(source, prefer=prefer, delete_branch=delete_branch, terms=terms)

    def plan_merge(self, source: StateRef, *, prefer: Prefer = None) -> MergePlan:
        """What a merge would do now, with every conflict; nothing is published."""
        return self._merger.plan(source, prefer=prefer)

    def revert(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
    ) -> MergeResult:
        """Undo what a commit changed, in a new commit; what changed since then is a conflict.

        A version or a time is one of this branch.
        """
        terms = _build_terms(if_commit, message=message, key=key)
        return self._merger.revert(commit, prefer=prefer, terms=terms)

    def plan_revert(self, commit: StateRef, *, prefer: Prefer = None) -> MergePlan:
        """What a revert would do now, with every conflict; nothing is published."""
        return self._merger.plan_revert(commit, prefer=prefer)

    def cherry_pick(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
    ) -> MergeResult:
        """Change here what a commit of any branch changed there, in a new commit.

        A version or a time is one of main.
        """
        terms = _build_terms(if_commit, message=message, key=key)
        return self._merger.cherry_pick(commit, prefer=prefer, terms=terms)

    def plan_cherry_pick(self, commit: StateRef, *, prefer: Prefer = None) -> MergePlan:
        """What a cherry-pick would do now, with every conflict; nothing is published."""
        return self._merger.plan_cherry_pick(commit, prefer=prefer)

    def ensure_indices(self) -> IndexBuildResult:
        """Build the indexes that the schema declares and the branch lacks, in one commit.

        No answer depends on them. Those that cannot be built yet are returned as pending.
        """
        return optimize.ensure_indices(self._session, self._stream)

    def optimize(self) -> OptimizeResult:
        """Join small fragments and extend the declared indexes to all rows, in one commit."""
        return optimize.optimize(self._session, self._stream)

    def plan_schema(self, text: str) -> MigrationPlan:
        """The steps that would bring a schema into force, supported or not; nothing is written."""
        arguments.require_text("text", text)
        mode = self._session.resources.environment.mode
        return plan_migration(self.snapshot().view.accepted, load_catalog(text, mode=mode))

    def apply_schema(
        self, text: str, *, message: str | None = None, key: str | None = None
    ) -> SchemaResult:
        """Bring a schema into force on this branch; the others keep theirs.

        A call repeated with its `key` does nothing, and answers with the commit of the first one.
        """
        arguments.require_text("text", text)
        terms = _build_terms(None, message=message, key=key)
        operation = MigrationOperation(self._session.resources, text)
        written = write(self._session, self._stream, operation, terms)
        record = written.record
        return SchemaResult(
            uri=self._session.uri,
            plan=operation.plan_of(written, self._session),
            commit=None if record is None else commit_of(record),
            version=self.snapshot().version if record is None else record.seq,
            is_repeated=written.is_repeated,
        )

    def blob(
        self,
        kind: EntityKind,
        type_name: str,
        entity_id: str,
        property: str,  # noqa: A002
    ) -> Blob:
        """The blob of a property; one that is null or missing is not found."""
        return self.snapshot().blob(kind, type_name, entity_id, property)

    def count(self, type_name: str, kind: EntityKind | None = None) -> int:
        """How many entities a type has; of a node and an edge type of one name, the nodes."""
        return self.snapshot().count(type_name, kind)

    def __repr__(self) -> str:
        return f"Branch({self.name!r})"

    @property
    def _merger(self) -> Merger:
        return Merger(self._session, self._stream)


def _build_terms(
    if_commit: Commit | str | None, *, message: str | None, key: str | None = None
) -> Terms:
    commit = if_commit.id if isinstance(if_commit, Commit) else if_commit
    return Terms(
        arguments.require_optional_text("if_commit", commit),
        arguments.require_optional_text("message", message),
        arguments.require_optional_key(key),
    )
