"""A branch: a named line of commits, and everything that adds to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, assert_never

from omnigraph.engine import arguments, maintenance
from omnigraph.engine.blobs import Blob
from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.maintenance import IndexBuildResult, OptimizeResult
from omnigraph.engine.operations import Loading, Migrating, Mutating
from omnigraph.engine.results import LoadResult, MutationResult, SchemaResult
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import EntityKind, Snapshot
from omnigraph.engine.writing import Terms, write
from omnigraph.errors import InvalidArgument
from omnigraph.execution.planner.explain import Explained
from omnigraph.execution.result import Result
from omnigraph.query.settings import SettingValue
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted import TypeKind
from omnigraph.schema.migration import MigrationPlan, plan_migration
from omnigraph.versioning import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled, Stream
from omnigraph.writers.inputs import Dialect, InputOptions, Progress, Source
from omnigraph.writers.load import LoadMode

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_Choice = TypeVar("_Choice", bound=Enum)


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
    def head(self) -> Commit:
        """Its newest commit."""
        return self.snapshot().commit

    @property
    def schema(self) -> str:
        """The text of the schema in force."""
        return self.snapshot().schema

    def snapshot(self) -> Snapshot:
        """The graph as it is now, pinned."""
        return Snapshot(self._session, self._session.head(self._stream))

    def load(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        source: Source,
        *,
        mode: str,
        type: str | None = None,  # noqa: A002
        dialect: str = "strict",
        if_commit: Commit | str | None = None,
        message: str | None = None,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> LoadResult:
        """Write entities from a path, records, Arrow data or a frame, in one commit or none.

        `mode` is `append` (an existing id is refused), `merge` (its entity is replaced) or
        `overwrite` (a type that occurs keeps only what is loaded). A call repeated with its `key`
        answers with the commit of the first one, if that is among the newest 1,000 commits of
        this branch; commits made before the branch was created do not count.
        """
        chosen = _choice(LoadMode, "mode", mode)
        options = InputOptions(
            _choice(Dialect, "dialect", dialect), arguments.text_or_none("type", type), progress
        )
        terms = _terms(if_commit, message=message, key=key)
        operation = Loading(self._session.resources, source, mode=chosen, options=options)
        written = write(self._session, self._stream, operation, terms)
        assert written.record is not None, "an empty load is a commit too"
        # A record may hold the loads of others too, unless it was made by a request with a key.
        if written.is_repeated:
            nodes, edges = _counts(written.record)
        else:
            nodes, edges = operation.loaded.nodes, operation.loaded.edges
        return LoadResult(
            uri=self._session.uri,
            branch=self.name,
            mode=chosen.value,
            nodes=nodes,
            edges=edges,
            commit=commit_of(written.record),
        )

    def mutate(
        self,
        text: str,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        if_commit: Commit | str | None = None,
        message: str | None = None,
    ) -> MutationResult:
        """Run a mutation: one commit for all its statements, none when nothing changes."""
        arguments.text("text", text)
        arguments.text_or_none("name", name)
        terms = _terms(if_commit, message=message)
        operation = Mutating(self._session.resources, text, name=name, params=params)
        record = write(self._session, self._stream, operation, terms).record
        mutated = operation.mutated
        assert mutated is not None, "a write that was not refused was prepared"
        return MutationResult(
            branch=self.name,
            query_name=operation.query_name,
            affected_nodes=mutated.nodes,
            affected_edges=mutated.edges,
            actor=self._session.actor,
            commit=None if record is None else commit_of(record),
        )

    def query(
        self,
        text: str,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> Result:
        """Run a read on the newest snapshot; a text with one declaration needs no name.

        After `timeout` seconds it is stopped, and one that needs more than `memory` bytes is
        refused. `settings` hold unless the text changes them.
        """
        return self.snapshot().query(
            text, name=name, params=params, timeout=timeout, memory=memory, settings=settings
        )

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
    ) -> Explained:
        """How a read of the newest snapshot is answered: its operators, paths, rows and times."""
        return self.snapshot().explain(
            text,
            name=name,
            params=params,
            analyze=analyze,
            timeout=timeout,
            memory=memory,
            settings=settings,
        )

    def export(self, *, types: Collection[str] | None = None) -> Iterator[bytes]:
        """Everything, or some types, as chunks of whole JSON lines that a load reads back."""
        return self.snapshot().export(types=types)

    def commits(self, *, limit: int | None = None) -> Iterator[Commit]:
        """Its commits, newest first, with those it started from and those of maintenance."""
        arguments.count_or_none("limit", limit)
        self._session.head(self._stream)
        return islice(map(commit_of, self._session.resources.history.commits(self._stream)), limit)

    def ensure_indices(self) -> IndexBuildResult:
        """Build the indexes that the schema declares and the branch lacks, in one commit.

        No answer depends on them. Those that cannot be built yet are returned as pending.
        """
        return maintenance.ensure_indices(self._session, self._stream)

    def optimize(self) -> OptimizeResult:
        """Join small fragments and extend the declared indexes to all rows, in one commit."""
        return maintenance.optimize(self._session, self._stream)

    def plan_schema(self, text: str) -> MigrationPlan:
        """The steps that would bring a schema into force, supported or not; nothing is written."""
        arguments.text("text", text)
        mode = self._session.resources.environment.mode
        return plan_migration(self.snapshot().view.accepted, load_catalog(text, mode=mode))

    def apply_schema(self, text: str, *, message: str | None = None) -> SchemaResult:
        """Bring a schema into force on this branch; the others keep theirs."""
        arguments.text("text", text)
        terms = _terms(None, message=message)
        operation = Migrating(self._session.resources, text)
        record = write(self._session, self._stream, operation, terms).record
        return SchemaResult(
            uri=self._session.uri,
            plan=operation.plan,
            commit=None if record is None else commit_of(record),
            version=self.snapshot().version if record is None else record.seq,
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


def _choice(kind: type[_Choice], argument: str, value: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"'{each.value}'" for each in kind)
        raise InvalidArgument(argument, f"'{value}' is not one of {known}") from None


def _terms(if_commit: Commit | str | None, *, message: str | None, key: str | None = None) -> Terms:
    commit = if_commit.id if isinstance(if_commit, Commit) else if_commit
    return Terms(
        arguments.text_or_none("if_commit", commit),
        arguments.text_or_none("message", message),
        arguments.text_or_none("key", key),
    )


def _counts(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many entities of which node and edge types a commit wrote."""
    counts: dict[TypeKind, dict[str, int]] = {TypeKind.NODE: {}, TypeKind.EDGE: {}}
    for type_key, change in record.changes.items():
        kind, _, name = type_key.partition(":")
        if count := _count(change):
            counts[TypeKind(kind)][name] = count
    return counts[TypeKind.NODE], counts[TypeKind.EDGE]


def _count(change: ChangeSet) -> int:
    match change:
        case Changed():
            return len(change.inserted) + len(change.updated)
        case Spilled():
            return change.inserted + change.updated
        case Bulk():
            return change.rows
        case Maintenance():
            return 0
        case _:
            assert_never(change)
