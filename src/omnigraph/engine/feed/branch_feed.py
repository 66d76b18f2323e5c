"""A poll: the commits of a branch after a position, up to the newest one."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.engine import arguments
from omnigraph.engine.entity_changes import BoundFilters, Filters
from omnigraph.engine.feed import feed_tokens
from omnigraph.engine.feed.commit_content import (
    build_commit_content,
    estimate_rows,
    require_commit_states,
)
from omnigraph.engine.feed.feed_tokens import (
    Binding,
    CommitPosition,
    FeedPosition,
    PollRange,
    build_branch_binding,
    resolve_filters,
)
from omnigraph.engine.feed.page_builder import Block, FeedPage, Limits, PageBuilder, cause_of
from omnigraph.engine.graph_session import Session
from omnigraph.engine.refs import resolve
from omnigraph.errors import (
    ChangeCursorRejectedError,
    ChangeFeedGapError,
    CommitNotFoundError,
    HistoryGoneError,
    InvalidArgumentError,
)
from omnigraph.rows.json_export import export_lines
from omnigraph.rows.view import View
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning import Snapshot
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream

NOW: Final = "now"
BEGINNING: Final = "beginning"
AFTER: Final = "after:"

# Records are read a few at a time: a page may be full after the first one.
_RECORDS_AT_ONCE: Final = 8

# How long a follower that has seen everything waits before it looks again.
POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class FromStart:
    """Begin at `now`, at the `beginning`, or `after:` a commit of the branch."""

    start: str = NOW


@dataclass(frozen=True, slots=True)
class FromCursor:
    """Go on after what a former poll returned."""

    cursor: str


@dataclass(frozen=True, slots=True)
class FromPage:
    """Go on with the same poll."""

    page_token: str


Origin = FromStart | FromCursor | FromPage


def parse_origin(start: object, cursor: object, page_token: object) -> Origin:
    """Where a poll begins, as callers say it; at most one of the three, and `now` without any."""
    given = {"start": start, "cursor": cursor, "page_token": page_token}
    chosen = [(name, value) for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        names = " and ".join(name for name, _ in chosen)
        raise InvalidArgumentError(chosen[-1][0], f"{names} exclude each other")
    match chosen:
        case [("cursor", value)]:
            return FromCursor(arguments.require_text("cursor", value))
        case [("page_token", value)]:
            return FromPage(arguments.require_text("page_token", value))
        case [("start", value)]:
            return FromStart(arguments.require_text("start", value))
        case _:
            return FromStart()


def _find_filters_digest(origin: Origin) -> str | None:
    """The digest of the filters that a position was made with; None for one that has none."""
    match origin:
        case FromCursor(token) | FromPage(token):
            return feed_tokens.decode_filters_digest(token)
        case FromStart():
            return None
        case _:
            assert_never(origin)


class Feed:
    """The feed of one branch, seen through filters.

    Between polls it keeps only what their names meant: a type may be renamed while it is followed.
    """

    def __init__(self, session: Session, stream: Stream, filters: Filters) -> None:
        self._session = session
        self._stream = stream
        self._filters = filters
        self._wanted: BoundFilters | None = None

    def poll(self, origin: Origin, limits: Limits) -> FeedPage:
        """A page of the commits after a position."""
        try:
            return self._poll(origin, limits)
        except ChangeFeedGapError as gap:
            cursor = origin.cursor if isinstance(origin, FromCursor) else None
            raise ChangeFeedGapError(gap.first_unreadable_commit, cursor=cursor) from gap

    def _poll(self, origin: Origin, limits: Limits) -> FeedPage:
        head = self._session.read_head(self._stream)
        view = self._session.open_view(head)
        unbound = build_branch_binding(self._session, view, self._stream, None)
        place = self._resolve_origin(origin, head, unbound, limits)
        wanted = self._wanted = self._resolve_filters(origin, view, place.poll_range)
        binding = build_branch_binding(self._session, view, self._stream, wanted)
        return self._build_page(place, view, (wanted, binding), limits)

    def find_span(self, start: str, *, rows_max: int) -> tuple[str, str]:
        """The commits after a start up to where they have written so many entities, about.

        Named are the one before them and the last of them, which is the same if there is none.
        Nothing of what they changed is read.
        """
        head = self._session.read_head(self._stream)
        first = last = self._resolve_start(start, head)
        if first.seq < head.seq:
            self._require_retained(first, head)
        rows = 0
        for record in self._read_records(first.seq, head.seq, head):
            last = CommitPosition(record.seq, record.commit)
            rows += estimate_rows(record)
            if rows >= rows_max:
                break
        return first.commit, last.commit

    def make_cursor(self, head: Snapshot) -> str:
        """The cursor after the commit of a snapshot."""
        view = self._session.open_view(head)
        binding = build_branch_binding(
            self._session, view, self._stream, self._filters.resolve_in_first(view)
        )
        return feed_tokens.encode_feed_cursor(binding, CommitPosition(head.seq, head.commit))

    def commit_of(self, cursor: str) -> str:
        """The last commit before a cursor, whatever filters it was made with."""
        head = self._session.read_head(self._stream)
        binding = build_branch_binding(
            self._session, self._session.open_view(head), self._stream, None
        )
        at = feed_tokens.decode_feed_cursor(cursor, binding)
        self._require_position(at, head)
        return at.commit

    def _resolve_origin(
        self, origin: Origin, head: Snapshot, binding: Binding, limits: Limits
    ) -> FeedPosition:
        match origin:
            case FromPage(page_token):
                place = feed_tokens.decode_feed_page(page_token, binding)
                self._require_position(place.poll_range.end, head)
                self._require_position(place.delivered, head)
                return place
            case FromCursor(cursor):
                at = feed_tokens.decode_feed_cursor(cursor, binding)
                self._require_position(at, head)
            case FromStart(start):
                at = self._resolve_start(start, head)
            case _:
                assert_never(origin)
        if at.seq < head.seq:
            self._require_retained(at, head)
        end = min(head.seq, at.seq + limits.commits)
        cut = PollRange(at, CommitPosition(end, self._find_commit_at(end, head)), end == head.seq)
        return FeedPosition(cut, at, None)

    def _resolve_filters(self, origin: Origin, view: View, cut: PollRange) -> BoundFilters:
        """What the names of the filters mean: now, or else where the poll began."""
        made_with = _find_filters_digest(origin)
        if self._wanted is not None and self._wanted.digest == made_with:
            return self._wanted
        return resolve_filters(
            self._filters, view, lambda: self._open_view_at(cut.begin, view), made_with
        )

    def _open_view_at(self, at: CommitPosition, head: View) -> View:
        if at.seq == head.snapshot.seq:
            return head
        try:
            return self._session.open_view(
                self._session.resources.log.read_snapshot(self._stream, at.seq)
            )
        except (CommitNotFoundError, HistoryGoneError) as error:
            raise self._build_gap(at.seq + 1, head.snapshot) from error

    def _resolve_start(self, start: str, head: Snapshot) -> CommitPosition:
        if start == NOW:
            return CommitPosition(head.seq, head.commit)
        if start == BEGINNING:
            return CommitPosition(GENESIS_SEQ, self._find_commit_at(GENESIS_SEQ, head))
        if not start.startswith(AFTER):
            raise InvalidArgumentError(
                "start", f"'{start}' is not '{NOW}', '{BEGINNING}' or '{AFTER}<commit>'"
            )
        name, branch = start.removeprefix(AFTER), self._stream.branch
        with suppress(CommitNotFoundError):
            at = resolve(self._session, "start", name, branch=branch).at
            owner = at.stream.owner_of(at.seq)
            if at.seq <= head.seq and self._stream.owner_of(at.seq).id == owner.id:
                return CommitPosition(at.seq, at.commit)
        raise CommitNotFoundError(
            f"branch '{branch}' has no commit '{name}' of its own line",
            hint="`commit list` shows the commits of a branch",
        )

    def _require_position(self, at: CommitPosition, head: Snapshot) -> None:
        """Refuse a position whose commit this branch does not have."""
        if at.seq > head.seq or self._find_commit_at(at.seq, head) != at.commit:
            raise ChangeCursorRejectedError("it names a commit that the branch does not have")

    def _find_commit_at(self, seq: int, head: Snapshot) -> str:
        """The commit at a version; one that was cleaned up is a gap, unless nothing follows it."""
        if seq == head.seq:
            return head.commit
        log = self._session.resources.log
        entry = log.read(self._stream.owner_of(seq).id, seq)
        if isinstance(entry, Record):
            return entry.commit
        try:
            # A branch keeps what it started from, even where the record is gone.
            return log.read_snapshot(self._stream, seq).commit
        except CommitNotFoundError as error:
            raise self._build_gap(seq, head) from error

    def _build_page(
        self, place: FeedPosition, view: View, bound: tuple[BoundFilters, Binding], limits: Limits
    ) -> FeedPage:
        wanted, binding = bound
        page = PageBuilder(self._session, limits)
        blocks: list[Block] = []
        delivered, after = place.delivered, place.entity
        for record in self._read_records(delivered.seq, place.poll_range.end.seq, view.snapshot):
            states = require_commit_states(self._session, self._stream, record)
            filled = page.fill(build_commit_content(self._session, states, wanted), after)
            at = CommitPosition(record.seq, record.commit)
            rest = filled.rest
            cursor = None if rest is not None else feed_tokens.encode_feed_cursor(binding, at)
            # The rest of a commit may be empty: its cursor is returned nevertheless.
            if filled.changes or rest is None:
                blocks.append(Block(cause_of(record), filled.changes, cursor))
            if rest is not None:
                return self._build_partial_page(
                    blocks, FeedPosition(place.poll_range, delivered, rest.after), binding
                )
            delivered, after = at, None
            if page.is_full and delivered.seq < place.poll_range.end.seq:
                return self._build_partial_page(
                    blocks, FeedPosition(place.poll_range, delivered, None), binding
                )
        cursor = feed_tokens.encode_feed_cursor(binding, place.poll_range.end)
        return FeedPage(tuple(blocks), cursor=cursor, caught_up=place.poll_range.is_caught_up)

    def _build_partial_page(
        self, blocks: list[Block], place: FeedPosition, binding: Binding
    ) -> FeedPage:
        return FeedPage(tuple(blocks), next_page_token=feed_tokens.encode_feed_page(binding, place))

    def _read_records(self, after: int, end: int, head: Snapshot) -> Iterator[Record]:
        """The records of the branch above a version, up to another, as they are asked for."""
        for first in range(after + 1, end + 1, _RECORDS_AT_ONCE):
            seqs = range(first, min(first + _RECORDS_AT_ONCE, end + 1))
            places = [(self._stream.owner_of(seq).id, seq) for seq in seqs]
            for seq, entry in zip(seqs, self._session.resources.log.read_many(places), strict=True):
                if not isinstance(entry, Record):
                    raise self._build_gap(seq, head)
                yield entry

    def _require_retained(self, at: CommitPosition, head: Snapshot) -> None:
        """Refuse a position whose state was cleaned up: what came next cannot be compared."""
        if at.seq < self._session.resources.history.find_oldest(self._stream):
            raise self._build_gap(at.seq + 1, head)

    def _build_gap(self, seq: int, head: Snapshot) -> ChangeFeedGapError:
        """The gap from a commit on; where only older records are stored, it is damage."""
        resources = self._session.resources
        entry = resources.log.read(self._stream.owner_of(seq).id, seq)
        if isinstance(entry, Record):
            return ChangeFeedGapError(entry.commit)
        commits = resources.history.iter_commits(self._stream, below=head.seq + 1, first=seq)
        stored = deque(commits, maxlen=1)
        return ChangeFeedGapError((stored[0].parent if stored else None) or head.commit)


def follow(
    feed: Feed,
    origin: Origin,
    *,
    limits: Limits,
    poll_s: object = POLL_S,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Block]:
    """The blocks after a position, without end; the first poll happens at once."""
    seconds = require_poll_interval(poll_s)
    return _follow_pages(
        feed, feed.poll(origin, limits), limits=limits, pause=lambda: wait(seconds)
    )


def require_poll_interval(poll_s: object) -> float:
    """How long to wait between polls, as a caller gave it."""
    if not isinstance(poll_s, int | float) or isinstance(poll_s, bool):
        raise InvalidArgumentError(
            "poll_s", f"a {type(poll_s).__name__} is not a number of seconds"
        )
    if not math.isfinite(poll_s) or poll_s < 0:
        raise InvalidArgumentError("poll_s", f"{poll_s} is not a time to wait")
    return poll_s


def _follow_pages(
    feed: Feed, page: FeedPage, *, limits: Limits, pause: Callable[[], None]
) -> Iterator[Block]:
    while True:
        yield from page.blocks
        if page.next_page_token is not None:
            page = feed.poll(FromPage(page.next_page_token), limits)
            continue
        if page.caught_up:
            pause()
        assert page.cursor is not None, "the last page of a poll has a cursor"
        page = feed.poll(FromCursor(page.cursor), limits)


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
        """The cursor after the commit; refused before everything was read."""
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
