"""A poll: the commits of a branch behind a position, up to the newest one of the moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.engine import arguments
from omnigraph.engine.entity_change.filters import Filters, Wanted
from omnigraph.engine.feed import tokens
from omnigraph.engine.feed.binding import branch_binding, meant
from omnigraph.engine.feed.content import commit_content, rows_of, told_states
from omnigraph.engine.feed.packing import Limits, Page
from omnigraph.engine.feed.pages import Block, FeedPage, cause_of
from omnigraph.engine.feed.tokens import Binding, Cut, FeedPlace, Position
from omnigraph.engine.session import Session
from omnigraph.errors import (
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitNotFound,
    HistoryGone,
    InvalidArgument,
)
from omnigraph.execution.view import View
from omnigraph.versioning import Snapshot
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream

NOW: Final = "now"
BEGINNING: Final = "beginning"
AFTER: Final = "after:"
# Records are read a few at a time: a page may be full after the first one.
_RECORDS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class FromStart:
    """Begin at `now`, at the `beginning`, or `after:` a commit of the branch."""

    start: str = NOW


@dataclass(frozen=True, slots=True)
class FromCursor:
    """Go on behind what a former poll told."""

    cursor: str


@dataclass(frozen=True, slots=True)
class FromPage:
    """Go on with the same poll."""

    page_token: str


Origin = FromStart | FromCursor | FromPage


def origin_of(start: object, cursor: object, page_token: object) -> Origin:
    """Where a poll begins, as callers say it; at most one of the three, and `now` without any."""
    given = {"start": start, "cursor": cursor, "page_token": page_token}
    chosen = [(name, value) for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        names = " and ".join(name for name, _ in chosen)
        raise InvalidArgument(chosen[-1][0], f"{names} exclude each other")
    match chosen:
        case [("cursor", value)]:
            return FromCursor(arguments.text("cursor", value))
        case [("page_token", value)]:
            return FromPage(arguments.text("page_token", value))
        case [("start", value)]:
            return FromStart(arguments.text("start", value))
        case _:
            return FromStart()


def _made_with(origin: Origin) -> str | None:
    """The digest of the filters that a position was made with; None for one that has none."""
    match origin:
        case FromCursor(token) | FromPage(token):
            return tokens.filters_in(token)
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
        self._wanted: Wanted | None = None

    def poll(self, origin: Origin, limits: Limits) -> FeedPage:
        """A page of the commits behind a position."""
        try:
            return self._poll(origin, limits)
        except ChangeFeedGap as gap:
            cursor = origin.cursor if isinstance(origin, FromCursor) else None
            raise ChangeFeedGap(gap.first_unreadable_commit, cursor=cursor) from gap

    def _poll(self, origin: Origin, limits: Limits) -> FeedPage:
        head = self._session.head(self._stream)
        view = self._session.view(head)
        unbound = branch_binding(self._session, view, self._stream, None)
        place = self._place(origin, head, unbound, limits)
        wanted = self._wanted = self._meant(origin, view, place.cut)
        binding = branch_binding(self._session, view, self._stream, wanted)
        return self._page(place, view, (wanted, binding), limits)

    def span(self, start: str, *, rows_max: int) -> tuple[str, str]:
        """The commits behind a start up to where they have written so many entities, about.

        Named are the one before them and the last of them, which is the same if there is none.
        Nothing of what they changed is read.
        """
        head = self._session.head(self._stream)
        first = last = self._started(start, head)
        if first.seq < head.seq:
            self._require_kept(first, head)
        rows = 0
        for record in self._records(first.seq, head.seq, head):
            last = Position(record.seq, record.commit)
            rows += rows_of(record)
            if rows >= rows_max:
                break
        return first.commit, last.commit

    def cursor(self, head: Snapshot) -> str:
        """The cursor behind the commit of a snapshot."""
        view = self._session.view(head)
        binding = branch_binding(self._session, view, self._stream, self._filters.first_at(view))
        return tokens.feed_cursor(binding, Position(head.seq, head.commit))

    def commit_of(self, cursor: str) -> str:
        """The commit that a cursor is behind, whatever filters it was made with."""
        head = self._session.head(self._stream)
        binding = branch_binding(self._session, self._session.view(head), self._stream, None)
        at = tokens.read_feed_cursor(cursor, binding)
        self._require(at, head)
        return at.commit

    def _place(self, origin: Origin, head: Snapshot, binding: Binding, limits: Limits) -> FeedPlace:
        match origin:
            case FromPage(page_token):
                place = tokens.read_feed_page(page_token, binding)
                self._require(place.cut.end, head)
                self._require(place.told, head)
                return place
            case FromCursor(cursor):
                at = tokens.read_feed_cursor(cursor, binding)
                self._require(at, head)
            case FromStart(start):
                at = self._started(start, head)
            case _:
                assert_never(origin)
        if at.seq < head.seq:
            self._require_kept(at, head)
        end = min(head.seq, at.seq + limits.commits)
        cut = Cut(at, Position(end, self._commit_at(end, head)), end == head.seq)
        return FeedPlace(cut, at, None)

    def _meant(self, origin: Origin, view: View, cut: Cut) -> Wanted:
        """What the names of the filters mean: now, or else where the poll began."""
        made_with = _made_with(origin)
        if self._wanted is not None and self._wanted.digest == made_with:
            return self._wanted
        return meant(self._filters, view, lambda: self._view_at(cut.begin, view), made_with)

    def _view_at(self, at: Position, head: View) -> View:
        if at.seq == head.snapshot.seq:
            return head
        try:
            return self._session.view(self._session.resources.log.at(self._stream, at.seq))
        except (CommitNotFound, HistoryGone) as error:
            raise self._gap(at.seq + 1, head.snapshot) from error

    def _started(self, start: str, head: Snapshot) -> Position:
        if start == NOW:
            return Position(head.seq, head.commit)
        if start == BEGINNING:
            return Position(GENESIS_SEQ, self._commit_at(GENESIS_SEQ, head))
        if not start.startswith(AFTER):
            raise InvalidArgument(
                "start", f"'{start}' is not '{NOW}', '{BEGINNING}' or '{AFTER}<commit id>'"
            )
        commit = start.removeprefix(AFTER)
        found = self._session.resources.history.find(commit)
        if found is None or not self._is_on_branch(*found, head):
            raise CommitNotFound(
                f"branch '{self._stream.branch}' has no commit '{commit}' of its own line",
                hint="`commit list` shows the commits of a branch",
            )
        return Position(found[1], commit)

    def _is_on_branch(self, owner: Stream, seq: int, head: Snapshot) -> bool:
        return seq <= head.seq and self._stream.owner(seq).id == owner.id

    def _require(self, at: Position, head: Snapshot) -> None:
        """Refuse a position whose commit this branch does not have."""
        if at.seq > head.seq or self._commit_at(at.seq, head) != at.commit:
            raise ChangeCursorRejected("it names a commit that the branch does not have")

    def _commit_at(self, seq: int, head: Snapshot) -> str:
        """The commit at a version; one that was cleaned up is a gap, unless nothing follows it."""
        if seq == head.seq:
            return head.commit
        log = self._session.resources.log
        entry = log.read(self._stream.owner(seq).id, seq)
        if isinstance(entry, Record):
            return entry.commit
        try:
            # A branch keeps what it started from, even where the record is gone.
            return log.at(self._stream, seq).commit
        except CommitNotFound as error:
            raise self._gap(seq, head) from error

    def _page(
        self, place: FeedPlace, view: View, bound: tuple[Wanted, Binding], limits: Limits
    ) -> FeedPage:
        wanted, binding = bound
        page = Page(self._session, limits)
        blocks: list[Block] = []
        told, after = place.told, place.place
        for record in self._records(told.seq, place.cut.end.seq, view.snapshot):
            states = told_states(self._session, self._stream, record)
            filled = page.fill(commit_content(self._session, states, wanted), after)
            at = Position(record.seq, record.commit)
            rest = filled.rest
            cursor = None if rest is not None else tokens.feed_cursor(binding, at)
            # What is left of a commit may turn out to be nothing: its cursor is told nevertheless.
            if filled.changes or rest is None:
                blocks.append(Block(cause_of(record), filled.changes, cursor))
            if rest is not None:
                return self._more(blocks, FeedPlace(place.cut, told, rest.after), binding)
            told, after = at, None
            if page.is_full and told.seq < place.cut.end.seq:
                return self._more(blocks, FeedPlace(place.cut, told, None), binding)
        cursor = tokens.feed_cursor(binding, place.cut.end)
        return FeedPage(tuple(blocks), cursor=cursor, caught_up=place.cut.is_caught_up)

    def _more(self, blocks: list[Block], place: FeedPlace, binding: Binding) -> FeedPage:
        return FeedPage(tuple(blocks), next_page_token=tokens.feed_page(binding, place))

    def _records(self, told: int, end: int, head: Snapshot) -> Iterator[Record]:
        """The records of the branch above a version, up to another, as they are asked for."""
        for first in range(told + 1, end + 1, _RECORDS_AT_ONCE):
            seqs = range(first, min(first + _RECORDS_AT_ONCE, end + 1))
            places = [(self._stream.owner(seq).id, seq) for seq in seqs]
            for seq, entry in zip(seqs, self._session.resources.log.read_many(places), strict=True):
                if not isinstance(entry, Record):
                    raise self._gap(seq, head)
                yield entry

    def _require_kept(self, at: Position, head: Snapshot) -> None:
        """Refuse a position whose state was cleaned up: what came next cannot be compared."""
        if at.seq < self._session.resources.history.oldest(self._stream):
            raise self._gap(at.seq + 1, head)

    def _gap(self, seq: int, head: Snapshot) -> ChangeFeedGap:
        """The gap from a commit on; where only older records are stored, it is damage."""
        resources = self._session.resources
        entry = resources.log.read(self._stream.owner(seq).id, seq)
        if isinstance(entry, Record):
            return ChangeFeedGap(entry.commit)
        commits = resources.history.commits(self._stream, below=head.seq + 1, first=seq)
        stored = deque(commits, maxlen=1)
        return ChangeFeedGap((stored[0].parent if stored else None) or head.commit)
