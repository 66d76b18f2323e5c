"""A baseline: everything as of one commit, and the cursor behind that commit."""

from __future__ import annotations

import json
from collections.abc import Iterator

from omnigraph.engine.entity_change.filters import Filters
from omnigraph.engine.feed.polling import Feed
from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgumentError
from omnigraph.execution.export import export_lines
from omnigraph.schema.shape import JsonObject
from omnigraph.versioning import Snapshot
from omnigraph.versioning.record import Stream


class Baseline:
    """The entities of a branch as it was at one commit, and how to go on from there.

    Iterate over its records, or over `chunks` of JSON lines; once one of the two came to its end,
    `resume_cursor` is there. Filters of kinds and types say which entities there are; a filter of
    operations only binds the cursor.
    """

    def __init__(self, session: Session, stream: Stream, filters: Filters) -> None:
        at: Snapshot = session.read_head(stream)
        self.commit_id = at.commit
        self._view = session.open_view(at)
        self._filters = filters
        self._cursor = Feed(session, stream, filters).make_cursor(at)
        self._is_read = False

    @property
    def resume_cursor(self) -> str:
        """The cursor behind the commit; refused before everything was read."""
        if not self._is_read:
            raise InvalidArgumentError(
                "resume_cursor",
                "the baseline was not read to its end",
                hint="read all records first: a cursor without them would lose entities",
            )
        return self._cursor

    def chunks(self) -> Iterator[bytes]:
        """The entities as chunks of whole JSON lines that a load reads back."""
        types = self._filters.types or None
        kinds = self._filters.kinds
        # As the images of later changes: a consumer replaces the one by the other.
        yield from export_lines(self._view, types=types, kinds=kinds, with_nulls=True)
        self._is_read = True

    def __iter__(self) -> Iterator[JsonObject]:
        """The entities as records."""
        for chunk in self.chunks():
            yield from map(json.loads, chunk.splitlines())

    def to_json(self) -> JsonObject:
        """The document that ends a baseline."""
        return {"snapshot_commit_id": self.commit_id, "resume_cursor": self.resume_cursor}
