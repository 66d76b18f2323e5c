"""The change feed and the baseline of a branch on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.client.document_decoding import decode_feed_page
from omnigraph.client.http_transport import HttpTransport, iter_lines
from omnigraph.client.remote_states import build_query
from omnigraph.engine import feed
from omnigraph.engine.feed.branch_feed import FromCursor, FromPage, FromStart, Origin
from omnigraph.errors import InvalidArgumentError, RemoteUnavailableError
from omnigraph.schema.schema_shape import JsonObject


class RemoteFeed(feed.Feed):
    """The feed of one branch, seen through filters; each poll is a request."""

    def __init__(
        self, transport: HttpTransport, branch: str, filters: Mapping[str, list[str]]
    ) -> None:
        self._transport = transport
        self._branch = branch
        self._given = filters

    def poll(self, origin: Origin, limits: feed.Limits) -> feed.FeedPage:
        """A page of the commits after a position."""
        match origin:
            case FromCursor(cursor):
                place = {"cursor": cursor}
            case FromPage(page_token):
                place = {"page_token": page_token}
            case FromStart(start):
                place = {"start": start}
        query = build_query(branch=self._branch, **place, limit=limits.changes, **self._given)
        return decode_feed_page(self._transport.get("changes", query=query))


class RemoteBaseline(feed.Baseline):
    """The entities of a branch as it was at one commit, and how to go on from there."""

    def __init__(
        self, transport: HttpTransport, branch: str, filters: Mapping[str, list[str]]
    ) -> None:
        self._transport = transport
        self._document = {"branch": branch, **filters}
        self._end: JsonObject | None = None

    @property
    def commit_id(self) -> str:  # type: ignore[override]  # known at the end of the answer
        """The commit; a server names it after the last entity."""
        found: str = self._require_end()["snapshot_commit_id"]
        return found

    @property
    def resume_cursor(self) -> str:
        """The cursor after the commit; refused before everything was read."""
        found: str = self._require_end()["resume_cursor"]
        return found

    def chunks(self) -> Iterator[bytes]:
        """The entities as chunks of whole JSON lines that a load reads back."""
        held = b""
        for chunk in iter_lines(self._transport, ("changes", "baseline"), self._document):
            # The last line of all is not an entity: the last one so far is held back.
            whole, _, last = (held + chunk)[:-1].rpartition(b"\n")
            if whole:
                yield whole + b"\n"
            held = last + b"\n"
        end: Any = json.loads(held) if held else None
        if not isinstance(end, dict) or "baseline" not in end:
            raise RemoteUnavailableError(self._transport.url, "the baseline broke off")
        self._end = end["baseline"]

    def _require_end(self) -> JsonObject:
        if self._end is None:
            raise InvalidArgumentError(
                "resume_cursor",
                "the baseline was not read to its end",
                hint="read all records first: a cursor without them would lose entities",
            )
        return self._end
