"""A branch of a graph on a server."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from omnigraph.bulk.task_runner import StageProgress
from omnigraph.client import document_decoding as decoding
from omnigraph.client.http_transport import Call, HttpTransport, Query, iter_lines
from omnigraph.client.load_bodies import name_places, read_body
from omnigraph.client.record_parameters import encode_record_parameters
from omnigraph.client.remote_diff import RemoteDiff, compute_remote_diff
from omnigraph.client.remote_feed import RemoteBaseline, RemoteFeed
from omnigraph.client.remote_merges import RemoteMerger
from omnigraph.client.remote_snapshot import (
    RemoteSnapshot,
    build_read,
    explain_read,
    run_read,
)
from omnigraph.client.remote_states import (
    RemoteHandle,
    build_entity,
    build_filters,
    build_query,
    format_state,
)
from omnigraph.engine import arguments, feed
from omnigraph.engine.branch import Branch
from omnigraph.engine.commit import Commit
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.entity_history import EntityVersion
from omnigraph.engine.load_dispatch import (
    AnySource,
    DialectName,
    EmbedModeName,
    LoadEngineName,
    LoadModeName,
    MissingName,
    OnErrorName,
)
from omnigraph.engine.read_requests import (
    QueryText,
    ReadEngine,
    build_time_budget,
    read_query_text,
)
from omnigraph.engine.refs import StateRef
from omnigraph.engine.retries import retry_conflicts
from omnigraph.engine.snapshot import EntityKind
from omnigraph.engine.write_results import LoadResult, MutationResult, SchemaResult
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import Budget, Cancellation
from omnigraph.execution.result import Result
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema import accept_schema, load_catalog
from omnigraph.schema.migration import MigrationPlan, plan_migration
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.wire.protocol_names import IF_COMMIT_HEADER, JSON, LINES
from omnigraph.writers.inputs import Progress

if TYPE_CHECKING:
    from omnigraph.client.remote_graph import RemoteGraph


class RemoteBranch(RemoteHandle, Branch):  # type: ignore[override]  # see RemoteHandle
    """The same as a branch of storage, by its name: one that is made again is found again."""

    def __init__(self, graph: RemoteGraph, name: str) -> None:
        self.graph = graph
        self.transport: HttpTransport = graph.transport
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def snapshot(self) -> RemoteSnapshot:
        """The graph as it is now, pinned."""
        commit = next(self.commits(limit=1))
        return RemoteSnapshot(self.transport, commit, self._name)

    def commits(self, *, limit: int | None = None) -> Iterator[Commit]:
        """Its commits, newest first, with those it started from and those of maintenance."""
        count = arguments.require_optional_count("limit", limit)
        found = self.transport.get("commits", query=build_query(branch=self._name, limit=count))
        return map(decoding.decode_commit, found["commits"][:count])

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
        if engine == "spark":
            self._refuse("a read on Spark")
        document = build_read(
            text, name=name, params=params, timeout=timeout, memory=memory, settings=settings
        )
        document["branch"] = self._name
        source = document["query"]
        return run_read(
            self.transport, ("query",), document, source, arguments.require_cancellation(cancel)
        )

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
        """How a read of the newest snapshot is answered; see `Snapshot.explain`."""
        document = build_read(
            text, name=name, params=params, timeout=timeout, memory=memory, settings=settings
        )
        document |= {"branch": self._name, "analyze": analyze}
        return explain_read(self.transport, document, arguments.require_cancellation(cancel))

    def diff(
        self,
        other: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> RemoteDiff:
        """What another branch has that this one has not: the review before a merge."""
        parse_filters(kinds, types, ops)
        document = {"old": self._name, "new": format_state("other", other), "review": True}
        filters = build_filters(kinds, types, ops)
        return compute_remote_diff(
            self.transport, document, filters, timeout=timeout, cancel=cancel
        )

    def history(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Iterator[EntityVersion]:
        """What commits made of one entity, newest first, with those that merges brought."""
        budget = build_time_budget(timeout, cancel)
        document = build_entity(type_name, entity_id, kind)
        document |= {"branch": self._name, "timeout": timeout}
        chunks = iter_lines(self.transport, ("history",), document)
        # What is wrong with the request shows now, and not when the first version is taken.
        return _decode_versions(chain([next(chunks, b"")], chunks), budget)

    def blame(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> dict[str, Commit | None]:
        """The commit that gave each property of an entity its value; None if it is gone."""
        document = build_entity(type_name, entity_id, kind)
        document |= {"branch": self._name, **({} if timeout is None else {"timeout": timeout})}
        stop = arguments.require_cancellation(cancel)
        call = Call("POST", ("blame",), document=document, cancel=stop)
        commits: JsonObject = self.transport.send(call).read_json()["properties"]
        return {name: decoding.decode_optional_commit(each) for name, each in commits.items()}

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

        The server stops it after `timeout` seconds. One that is cancelled when it may have been
        sent is an `InDoubtError`: a server does not stop a write whose client has gone.
        """
        self._refuse_embed(embed)
        stop = arguments.require_cancellation(cancel)
        source = read_query_text(text)
        given = encode_record_parameters(source, name, params, lambda: self.schema)
        document = {
            "query": source,
            "name": name,
            "params": arguments.normalize_parameters(given),
            "branch": self._name,
            "message": message,
            "key": arguments.require_optional_key(key),
            "dry_run": dry_run or None,
            "timeout": timeout,
            "memory": memory,
        }
        segments: tuple[str, ...] = ("mutate",)
        headers = {}
        if if_commit is not None:
            segments = ("mutate", "if-graph-commit")
            headers = {IF_COMMIT_HEADER: format_commit(if_commit)}

        def run() -> MutationResult:
            found = self._write(segments, document, headers=headers, source=source, cancel=stop)
            return decoding.decode_mutation(found)

        return retry_conflicts(run, retries=arguments.require_count("retries", retries))

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
        progress: Progress | None = None,  # noqa: ARG002 — a server reports none
        stages: StageProgress | None = None,  # noqa: ARG002 — a server reports none
    ) -> LoadResult:
        """Write entities in one commit or none: the source is sent as JSON lines."""
        if engine == "spark" or on_error != "fail" or rejects is not None:
            self._refuse("a load on Spark, or one that leaves records out,")
        if missing != "insert":
            self._refuse("a load that skips or refuses ids that do not exist")
        self._refuse_embed(embed)
        body = read_body(source, url=self.transport.url)
        fields: dict[str, object] = {
            "branch": self._name,
            "mode": str(mode),
            "type": type,
            "message": message,
            "key": arguments.require_optional_key(key),
            "if_commit": None if if_commit is None else format_commit(if_commit),
            "dry_run": dry_run or None,
        }
        with name_places(source):
            if dialect == "compatible":
                document = {**fields, "data": body.decode(), "dialect": dialect}
                found = self._write(("load",), document)
            else:
                query = build_query(**fields)
                found = self._write(("load", "ndjson"), {"key": key}, query=query, content=body)
        return decoding.decode_load(found, uri=self.graph.uri)

    def _refuse_embed(self, embed: object) -> None:
        if embed is not None:
            self._refuse("a write with embed, which the config of a served graph decides,")

    @property
    def _merger(self) -> RemoteMerger:  # type: ignore[override]  # it has the same methods
        return RemoteMerger(self.transport, self._name, self._write)

    def plan_schema(
        self, text: str, *, allow_data_loss: bool = False, convert: bool = False
    ) -> MigrationPlan:
        """The steps to a schema from the text of the one in force."""
        arguments.require_text("text", text)
        accepted = accept_schema(load_catalog(self.schema)).schema
        desired = load_catalog(text)
        return plan_migration(accepted, desired, allow_data_loss=allow_data_loss, convert=convert)

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
        """Bring a schema into force on this branch; the others keep theirs."""
        plan = self.plan_schema(text, allow_data_loss=allow_data_loss, convert=convert)
        if dry_run:
            return SchemaResult(self.graph.uri, plan, None, self.version, is_dry=True)
        document = {
            "schema_source": text,
            "branch": self._name,
            "message": message,
            "key": arguments.require_optional_key(key),
            "if_schema": if_schema,
            "allow_data_loss": allow_data_loss,
            # An older server refuses what it does not know.
            **({"convert": True} if convert else {}),
        }
        found = self._write(("schema", "apply"), document, source=text)
        version = found["graph_manifest_version"]
        commit = None
        if found["applied"]:
            commit = next((each for each in self.commits(limit=1) if each.version == version), None)
        return SchemaResult(self.graph.uri, plan, commit, version)

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
        """A page of what was committed after a position; the server bounds bytes and commits."""
        if bytes_max is not None or commits_max is not None:
            self._refuse("a bound of bytes or commits")
        origin = feed.parse_origin(start, cursor, page_token)
        return self._follow_changes(kinds, types, ops).poll(origin, feed.parse_limits(limit))

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
        """What every commit after a position changed, without end.

        Of the blocks of one answer only the last one has a cursor.
        """
        origin = feed.parse_origin(start, cursor, None)
        followed = self._follow_changes(kinds, types, ops)
        return feed.follow(followed, origin, limits=feed.Limits(), poll_s=poll_s)

    def baseline(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> RemoteBaseline:
        """Every entity as of now, and then the cursor to follow the branch from there."""
        parse_filters(kinds, types, ops)
        return RemoteBaseline(self.transport, self._name, build_filters(kinds, types, ops))

    def _follow_changes(self, kinds: Any, types: Any, ops: Any) -> RemoteFeed:  # Any: to be checked
        parse_filters(kinds, types, ops)
        return RemoteFeed(self.transport, self._name, build_filters(kinds, types, ops))

    def _write(  # noqa: PLR0913 — what a request may carry
        self,
        segments: tuple[str, ...],
        document: Mapping[str, Any],  # Any: JSON values
        *,
        query: Query = (),
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "",
        cancel: Cancellation | None = None,
    ) -> dict[str, Any]:  # Any: a JSON document
        """The answer to a write; one with a key may be sent again."""
        given = {name: value for name, value in document.items() if value is not None}
        call = Call(
            "POST",
            segments,
            query,
            document=given if content is None else None,
            content=content,
            content_type=JSON if content is None else LINES,
            headers=headers or {},
            source=source,
            is_write=True,
            is_repeatable="key" in given,
            cancel=cancel,
            timeout_s=given.get("timeout"),
        )
        return self.transport.send_write(call)


def _decode_versions(chunks: Iterator[bytes], budget: Budget) -> Iterator[EntityVersion]:
    for chunk in chunks:
        for line in chunk.splitlines():
            budget.check_interrupts()
            yield decoding.decode_version(line)


def format_commit(commit: Commit | str) -> str:
    """The id of a commit that a write expects."""
    return commit.id if isinstance(commit, Commit) else arguments.require_text("if_commit", commit)
