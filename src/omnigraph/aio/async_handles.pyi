"""Asynchronous handles; `scripts/async_stub.py` generates this file from the engine."""

import os
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import timedelta
from typing import Any, Literal, overload

import pyarrow as pa

from omnigraph import Baseline, Blob, Branch, Diff, Graph, Proposal, ProposalDraft, Snapshot
from omnigraph.aio.async_members import AsyncHandle
from omnigraph.bulk.task_runner import StageProgress
from omnigraph.changes.type_difference import Counts
from omnigraph.engine import feed
from omnigraph.engine.check.graph_check import CheckReport
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff.graph_diff import TypeSummary
from omnigraph.engine.entity_changes import EntityChange
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
from omnigraph.engine.proposals import ProposalListing
from omnigraph.engine.proposals.proposal_info import ProposalInfo
from omnigraph.engine.read_requests import QueryText, ReadEngine, ReadRequest
from omnigraph.engine.refs import StateRef
from omnigraph.engine.repair import RepairReport
from omnigraph.engine.retention import CleanupReport, Tag
from omnigraph.engine.snapshot import EntityKind, ExportFormatName
from omnigraph.engine.write_results import (
    LoadResult,
    MergePlan,
    MergeResult,
    MutationResult,
    SchemaResult,
    TableInfo,
)
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.result import Result
from omnigraph.exports.file_export import ExportResult
from omnigraph.policy.acts import Act
from omnigraph.query.query_settings import SettingValue
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.migration import MigrationPlan
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning.upgrade import UpgradeReport
from omnigraph.writers.inputs import Progress
from omnigraph.writers.maintain import IndexStatus
from omnigraph.writers.merge.merge_choices import Prefer, Resolve

class AsyncGraph(AsyncHandle[Graph], of=Graph):
    @property
    def uri(self) -> str: ...
    @property
    def actor(self) -> str | None: ...
    def acting_as(self, actor: str | None) -> AsyncGraph: ...
    async def invoking(self, query: str) -> AsyncGraph: ...
    async def has_query_limits(self) -> bool: ...
    async def authorize(self, act: Act, types: Collection[str] = ...) -> None: ...
    async def branch(self, name: str = ...) -> AsyncBranch: ...
    async def branches(self) -> list[str]: ...
    async def create_branch(
        self, name: str, *, source: StateRef | AsyncBranch | AsyncSnapshot = ...
    ) -> AsyncBranch: ...
    async def delete_branch(self, name: str) -> None: ...
    async def snapshot(
        self, at: StateRef | AsyncBranch | AsyncSnapshot, *, branch: str = ...
    ) -> AsyncSnapshot: ...
    async def commit(self, at: StateRef | AsyncBranch | AsyncSnapshot) -> Commit: ...
    async def commit_changes(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.ChangesPage: ...
    async def diff(
        self,
        old: StateRef | AsyncBranch | AsyncSnapshot,
        new: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> AsyncDiff: ...
    async def execute(
        self, text: str, *, branch: str = ..., settings: Mapping[str, SettingValue] | None = None
    ) -> list[JsonObject]: ...
    async def index_status(self, branch: str = ...) -> list[IndexStatus]: ...
    async def check(self, *, commits_max: int | None = ..., deep: bool = False) -> CheckReport: ...
    async def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | float | None = None,
        dry_run: bool = True,
        grace: timedelta | float | None = None,
    ) -> CleanupReport: ...
    async def repair(self, *, confirm: bool = False, force: bool = False) -> RepairReport: ...
    async def upgrade(self, *, dry_run: bool = False) -> UpgradeReport: ...
    async def tag(self, name: str, at: StateRef | AsyncBranch | AsyncSnapshot = ...) -> Tag: ...
    async def tags(self) -> list[Tag]: ...
    async def delete_tag(self, name: str) -> None: ...
    async def close(self) -> None: ...
    async def proposals(self, *, status: str | None = None) -> list[ProposalListing]: ...
    def proposal(self, number: int) -> AsyncProposal: ...
    async def open_proposal(
        self,
        source: str,
        *,
        title: str,
        target: str = ...,
        body: str | None = None,
        key: str | None = None,
    ) -> AsyncProposal: ...
    async def __aenter__(self) -> AsyncGraph: ...
    async def __aexit__(self, *_: object) -> None: ...

class AsyncBranch(AsyncHandle[Branch], of=Branch):
    @property
    def name(self) -> str: ...
    @property
    def life(self) -> str: ...
    async def snapshot(self) -> AsyncSnapshot: ...
    async def load(
        self,
        source: AnySource,
        *,
        mode: LoadModeName,
        missing: MissingName = "insert",
        type: str | None = None,
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
    ) -> LoadResult: ...
    async def mutate(
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
    ) -> MutationResult: ...
    async def query(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        engine: ReadEngine = "local",
    ) -> Result: ...
    async def explain(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        analyze: bool = True,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> Explained: ...
    def export(self, *, types: Collection[str] | None = None) -> AsyncIterator[bytes]: ...
    async def diff(
        self,
        other: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> AsyncDiff: ...
    def commits(self, *, limit: int | None = None) -> AsyncIterator[Commit]: ...
    async def changes(
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
    ) -> feed.FeedPage: ...
    def follow(
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        poll_s: float = ...,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> AsyncIterator[feed.Block]: ...
    async def baseline(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> AsyncBaseline: ...
    def history(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[EntityVersion]: ...
    async def blame(
        self,
        type_name: str,
        entity_id: str,
        *,
        kind: EntityKind | None = None,
        timeout: float | None = None,
    ) -> dict[str, Commit | None]: ...
    async def plan_schema(
        self, text: str, *, allow_data_loss: bool = False, convert: bool = False
    ) -> MigrationPlan: ...
    async def apply_schema(
        self,
        text: str,
        *,
        message: str | None = None,
        key: str | None = None,
        if_schema: str | None = None,
        allow_data_loss: bool = False,
        convert: bool = False,
        dry_run: bool = False,
    ) -> SchemaResult: ...
    @overload
    async def merge(
        self,
        source: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...
    @overload
    async def merge(
        self,
        source: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
        delete_branch: bool = False,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...
    async def plan_merge(
        self,
        source: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
    ) -> MergePlan: ...
    def propose(
        self, title: str, *, body: str | None = None, key: str | None = None
    ) -> AsyncProposalDraft: ...
    @overload
    async def revert(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...
    @overload
    async def revert(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...
    async def plan_revert(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
    ) -> MergePlan: ...
    @overload
    async def cherry_pick(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...
    @overload
    async def cherry_pick(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...
    async def plan_cherry_pick(
        self,
        commit: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        prefer: Prefer = None,
        by: str | None = None,
    ) -> MergePlan: ...
    async def uri(self) -> str: ...
    async def head(self) -> Commit: ...
    async def commit(self) -> Commit: ...
    async def version(self) -> int: ...
    async def schema(self) -> str: ...
    async def to_arrow(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> pa.Table: ...
    async def to_networkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_rustworkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_igraph(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_pyg(self, types: Collection[str] | None = None) -> Any: ...
    async def export_files(
        self,
        path: str | os.PathLike[str],
        *,
        format: ExportFormatName | None = None,
        types: Collection[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult: ...
    async def entity(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> JsonObject | None: ...
    async def blob(
        self, kind: EntityKind, type_name: str, entity_id: str, property: str
    ) -> AsyncBlob: ...
    async def count(self, type_name: str, kind: EntityKind | None = None) -> int: ...
    async def tables(self) -> list[TableInfo]: ...

class AsyncSnapshot(AsyncHandle[Snapshot], of=Snapshot):
    @property
    def uri(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def version(self) -> int: ...
    async def commit(self) -> Commit: ...
    async def schema(self) -> str: ...
    async def query(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        engine: ReadEngine = "local",
    ) -> Result: ...
    async def answer_named(
        self, request: ReadRequest, engine: ReadEngine = "local"
    ) -> tuple[str, Result]: ...
    async def answer_in_turn(self, request: ReadRequest) -> tuple[str, Result]: ...
    async def explain(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        analyze: bool = True,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> Explained: ...
    async def to_arrow(
        self, type_name: str, kind: EntityKind | None = None, *, blobs: bool = False
    ) -> pa.Table: ...
    async def to_networkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_rustworkx(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_igraph(
        self, types: Collection[str] | None = None, *, vectors: bool = False
    ) -> Any: ...
    async def to_pyg(self, types: Collection[str] | None = None) -> Any: ...
    def export(self, *, types: Collection[str] | None = None) -> AsyncIterator[bytes]: ...
    async def export_files(
        self,
        path: str | os.PathLike[str],
        *,
        format: ExportFormatName | None = None,
        types: Collection[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: StageProgress | None = None,
    ) -> ExportResult: ...
    async def diff(
        self,
        new: StateRef | AsyncBranch | AsyncSnapshot,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> AsyncDiff: ...
    async def blob(
        self, kind: EntityKind, type_name: str, entity_id: str, property: str
    ) -> AsyncBlob: ...
    async def entity(
        self, type_name: str, entity_id: str, *, kind: EntityKind | None = None
    ) -> JsonObject | None: ...
    async def count(self, type_name: str, kind: EntityKind | None = None) -> int: ...
    async def tables(self) -> list[TableInfo]: ...
    async def list_readable_types(self) -> list[tuple[TypeKey, NodeType | EdgeType]]: ...
    async def to_json(self) -> JsonObject: ...

class AsyncProposal(AsyncHandle[Proposal], of=Proposal):
    @property
    def number(self) -> int: ...
    async def read(self) -> ProposalInfo: ...
    async def comment(
        self,
        text: str | None = None,
        *,
        about: tuple[str, str] | None = None,
        property: str | None = None,
        side: str | None = None,
        replies_to: int | None = None,
        resolves: int | None = None,
    ) -> ProposalInfo: ...
    async def approve(
        self, text: str | None = None, *, head: str | None = None
    ) -> ProposalInfo: ...
    async def request_changes(self, text: str, *, head: str | None = None) -> ProposalInfo: ...
    async def report_check(
        self, name: str, outcome: str, *, head: str | None = None, link: str | None = None
    ) -> ProposalInfo: ...
    async def edit(
        self, *, title: str | None = None, body: str | None = None, target: str | None = None
    ) -> ProposalInfo: ...
    async def close(self, reason: str | None = None) -> ProposalInfo: ...
    async def diff(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> AsyncDiff: ...
    async def plan(self) -> MergePlan: ...
    async def sync_branch(self, *, message: str | None = None) -> MergeResult: ...
    async def merge(
        self, *, head: str | None = None, message: str | None = None, delete_branch: bool = False
    ) -> MergeResult: ...

class AsyncProposalDraft(AsyncHandle[ProposalDraft], of=ProposalDraft):
    async def load(
        self,
        source: AnySource,
        *,
        mode: LoadModeName,
        type: str | None = None,
        dialect: DialectName = "strict",
        message: str | None = None,
    ) -> AsyncProposal: ...
    async def mutate(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        message: str | None = None,
    ) -> AsyncProposal: ...

class AsyncDiff(AsyncHandle[Diff], of=Diff):
    @property
    def summary(self) -> tuple[TypeSummary, ...]: ...
    @property
    def counts(self) -> Counts: ...
    async def to_arrow(self) -> pa.Table: ...
    def to_json_lines(self) -> AsyncIterator[bytes]: ...
    async def to_json(self) -> JsonObject: ...
    def header(self) -> JsonObject: ...
    def to_lines(self, *, changes_max: int | None = None) -> AsyncIterator[str]: ...
    async def to_html(self, *, changes_max: int | None = None) -> str: ...
    def html_parts(self) -> AsyncIterator[str]: ...
    @property
    def new(self) -> Commit: ...
    @property
    def old(self) -> Commit: ...
    @property
    def schema_changes(self) -> tuple[str, ...]: ...
    def __aiter__(self) -> AsyncIterator[EntityChange]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

class AsyncBlob(AsyncHandle[Blob], of=Blob):
    @property
    def size(self) -> int: ...
    async def read(self, start: int = 0, end: int | None = None) -> bytes: ...
    async def save(self, path: str | os.PathLike[str]) -> None: ...
    @property
    def etag(self) -> str: ...

class AsyncBaseline(AsyncHandle[Baseline], of=Baseline):
    @property
    def resume_cursor(self) -> str: ...
    def chunks(self) -> AsyncIterator[bytes]: ...
    def to_json(self) -> JsonObject: ...
    @property
    def commit_id(self) -> str: ...
    def __aiter__(self) -> AsyncIterator[JsonObject]: ...
