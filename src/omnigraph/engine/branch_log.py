"""What pipelines ask of the commits of a branch, to find again what their runs did."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.engine import arguments, feed
from omnigraph.engine.branch import Branch
from omnigraph.engine.commit import Commit, changes_of, commit_of, counts_of
from omnigraph.engine.entity_changes import parse_filters


class BranchLog:
    """The commits of one branch."""

    def __init__(self, branch: Branch) -> None:
        self._session, self._stream = branch.session, branch.stream

    def find_by_key(self, key: str, *, after: int | None = None) -> Commit | None:
        """The commit that a load with this key made here, if it is among the newest 1,000.

        With `after`, all commits above that version are examined too.
        """
        self._session.read_head(self._stream)
        arguments.require_text("key", key)
        arguments.require_optional_count("after", after)
        found = self._session.resources.history.find_by_key(self._stream, key, after=after)
        return None if found is None else commit_of(found)

    def iter_since(self, version: int | None = None) -> Iterator[tuple[Commit, Commit]]:
        """The commits that came to this branch above a version, newest first.

        Beside each is the commit of this branch that brought it: itself, or the merge. Without a
        version they are the newest 1,000 of this branch and what those merged.
        """
        self._session.read_head(self._stream)
        arguments.require_optional_count("version", version)
        found = self._session.resources.history.iter_since(self._stream, version)
        return ((commit_of(each), commit_of(by)) for each, by in found)

    def count_written(self, commit: str) -> dict[str, int]:
        """How many entities a commit wrote, by type: `node:Person`, `edge:Knows`."""
        record = self._session.resources.history.read_commit(
            arguments.require_text("commit", commit)
        )
        nodes, edges = counts_of(record)
        found = {f"node:{name}": count for name, count in sorted(nodes.items())}
        return found | {f"edge:{name}": count for name, count in sorted(edges.items())}

    def count_deleted(self, commit: str) -> dict[str, int]:
        """How many entities a commit ended, by type."""
        record = self._session.resources.history.read_commit(
            arguments.require_text("commit", commit)
        )
        counts = changes_of(record)
        return {str(name): each.deleted for name, each in counts.items() if each.deleted}

    def find_span(self, start: str, *, rows_max: int) -> tuple[str, str]:
        """Commits after a start, up to where they wrote so many entities, about.

        The answer names the commit before them and the last of them; `Graph.spark.changes` reads
        what they changed. `start` is `now`, `beginning`, or `after:` and a commit.
        """
        return self._feed.find_span(arguments.require_text("start", start), rows_max=rows_max)

    def find_cursor_commit(self, cursor: str) -> str:
        """The last commit before a cursor of the feed, whatever filters it was made with."""
        return self._feed.commit_of(arguments.require_text("cursor", cursor))

    @property
    def _feed(self) -> feed.Feed:
        return feed.Feed(self._session, self._stream, parse_filters(None, None, None))
