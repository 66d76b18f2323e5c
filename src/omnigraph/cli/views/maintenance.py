"""Answers about indexes and fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.cli.views.alignment import align_columns
from omnigraph.cli.views.documents import JsonObject
from omnigraph.cli.views.streams import format_count

if TYPE_CHECKING:
    from omnigraph import Commit
    from omnigraph.engine import IndexBuildResult, IndexStatus, OptimizeResult
    from omnigraph.writers.maintain import PendingIndex

# The one kind of index, as documents call it.
_KIND: Final = "btree"


@dataclass(frozen=True, slots=True)
class Indexes:
    """The declared indexes of a branch."""

    uri: str
    branch: str
    statuses: Sequence[IndexStatus]

    def to_json(self) -> JsonObject:
        """The document of `index status`."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "indexes": [status.to_json() for status in self.statuses],
        }

    def to_lines(self) -> Iterator[str]:
        """An index per line: type, property, kind, state, covered of all rows, reason."""
        yield from align_columns(
            [
                (
                    str(status.type_key),
                    status.property,
                    _KIND,
                    status.state.value,
                    f"{status.covered_rows}/{status.total_rows}",
                    status.reason or "",
                )
                for status in self.statuses
            ],
            right={4},
        )
        states = [status.state.value for status in self.statuses]
        found = ", ".join(f"{states.count(each)} {each}" for each in sorted(set(states)))
        count = format_count(len(states), "index", plural="indexes")
        yield f"{count} on {self.branch}: {found or 'nothing declared'}"


@dataclass(frozen=True, slots=True)
class IndexesBuilt:
    """What an index build did."""

    uri: str
    result: IndexBuildResult

    def to_json(self) -> JsonObject:
        """The document of `index build`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A built or pending index per line, and the commit."""
        yield from align_columns(
            [("built", str(index.type_key), index.property, _KIND) for index in self.result.built]
        )
        yield from _format_pending(self.result.pending)
        built = format_count(len(self.result.built), "index", plural="indexes")
        yield f"built {built} on {self.result.branch}: {_format_outcome(self.result.commit)}"


@dataclass(frozen=True, slots=True)
class Optimized:
    """What an optimization did."""

    uri: str
    result: OptimizeResult

    def to_json(self) -> JsonObject:
        """The document of `optimize`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A table that changed per line, then what has to wait, and the commit."""
        changed = [table for table in self.result.tables if table.version is not None]
        yield from align_columns(
            [
                (
                    str(table.type_key),
                    f"{table.fragments_removed} fragments joined into {table.fragments_added}",
                    "indexed "
                    + (", ".join(one.property for one in table.indexes) or "nothing new"),
                )
                for table in changed
            ]
        )
        yield from _format_pending([one for table in self.result.tables for one in table.pending])
        tables = format_count(len(changed), "table")
        yield f"optimized {tables} of {self.result.branch}: {_format_outcome(self.result.commit)}"


def _format_pending(pending: Sequence[PendingIndex]) -> list[str]:
    return list(
        align_columns([("pending", str(one.type_key), one.property, one.reason) for one in pending])
    )


def _format_outcome(commit: Commit | None) -> str:
    return "nothing to do" if commit is None else f"commit {commit.id}"
