"""Optimization of a branch: builds its indexes and compacts its fragments."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.graph_session import Session
from omnigraph.html_views import HtmlDocument
from omnigraph.policy.acts import Act, Action
from omnigraph.rows.view import View
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning import Stream
from omnigraph.writers import maintain
from omnigraph.writers.maintain import BuiltIndex, OptimizedTable, PendingIndex


@dataclass(frozen=True, slots=True, repr=False)
class IndexBuildResult(HtmlDocument):
    """The indexes that were built; without a commit none was missing that could be built."""

    uri: str
    branch: str
    built: tuple[BuiltIndex, ...]
    pending: tuple[PendingIndex, ...]
    commit: Commit | None

    def __repr__(self) -> str:
        commit = None if self.commit is None else self.commit.id
        counts = f"built={len(self.built)}, pending={len(self.pending)}"
        return f"IndexBuildResult({self.branch!r}, {counts}, commit={commit!r})"

    def to_json(self) -> JsonObject:
        """The document of an index build."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "built": [index.to_json() for index in self.built],
            "pending_indexes": [index.to_json() for index in self.pending],
            "commit": None if self.commit is None else self.commit.to_json(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeResult(HtmlDocument):
    """What an optimization did; `commit` is None if nothing had to be done."""

    uri: str
    branch: str
    tables: tuple[OptimizedTable, ...]
    commit: Commit | None

    def __repr__(self) -> str:
        commit = None if self.commit is None else self.commit.id
        return f"OptimizeResult({self.branch!r}, tables={len(self.tables)}, commit={commit!r})"

    def to_json(self) -> JsonObject:
        """The document of an optimization; a version is hex text, as it may exceed 63 bits."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "datasets": [_describe_table(table) for table in self.tables],
            "commit": None if self.commit is None else self.commit.to_json(),
        }


def ensure_indices(
    session: Session, stream: Stream, workers: maintain.MaintenanceWorkers | None = None
) -> IndexBuildResult:
    """Build the declared indexes that a branch lacks; workers may do it elsewhere."""
    session.authorize(Act(Action.ADMIN))
    publishers = session.resources.publishers
    done = maintain.ensure_indices(_make_newest_view(session, stream), publishers, workers)
    commit = None if done.record is None else commit_of(done.record)
    return IndexBuildResult(session.uri, stream.branch, done.built, done.pending, commit)


def optimize(
    session: Session, stream: Stream, workers: maintain.MaintenanceWorkers | None = None
) -> OptimizeResult:
    """Join the fragments of a branch, and extend its indexes to all rows."""
    session.authorize(Act(Action.ADMIN))
    publishers = session.resources.publishers
    done = maintain.optimize_tables(_make_newest_view(session, stream), publishers, workers)
    commit = None if done.record is None else commit_of(done.record)
    return OptimizeResult(session.uri, stream.branch, done.tables, commit)


def _make_newest_view(session: Session, stream: Stream) -> maintain.NewestView:
    def view() -> View:
        return session.open_view(session.read_head(stream))

    return view


def _describe_table(table: OptimizedTable) -> JsonObject:
    return {
        "type_key": str(table.type_key),
        "fragments_removed": table.fragments_removed,
        "fragments_added": table.fragments_added,
        "committed": table.version is not None,
        # Nothing is ever skipped, and no table is ahead of what is published.
        "skipped": None,
        "published_dataset_version": table.version,
        "lance_head_version": None,
        "indexes": [index.to_json() for index in table.indexes],
        "pending_indexes": [
            {"property": index.property, "reason": index.reason} for index in table.pending
        ],
    }
