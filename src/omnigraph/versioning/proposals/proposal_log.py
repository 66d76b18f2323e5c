"""The events of all proposals of a graph: listed, read and put.

The number of a proposal and that of each event are decided by put-if-absent. An event is decided on
the state that it follows, and decided again if another event took its place, so that no two
processes can act on the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from omnigraph.errors import (
    ConflictError,
    CorruptObjectError,
    FormatTooNewError,
    ProposalNotFoundError,
    ProposalRefusedError,
    ResourceLimitError,
    StorageError,
)
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import Fields, decode_fields, encode_fields
from omnigraph.versioning.proposals.proposal_events import (
    Event,
    Opened,
    StoredEvent,
    decode_event,
    encode_event,
)
from omnigraph.versioning.proposals.proposal_state import (
    ProposalState,
    ProposalStatus,
    ProposalSummary,
    fold_events,
)
from omnigraph.versioning.ref_events import put_event, read_event

# How often other events may take the place of one; each is a put of another process.
PUTS_MAX: Final = 64
# The index is written again once it lacks so many states: to read these costs about as much.
INDEX_LAG_MAX: Final = 16
_EVENTS_KEPT_MAX: Final = 4_096
_READERS: Final = 8


class ProposalLog:
    """The proposals of one graph; safe to share between threads."""

    def __init__(self, objects: Objects, now_us: Callable[[], int]) -> None:
        self._objects = objects
        self._now_us = now_us
        # Events never change.
        self._events: LruCache[tuple[int, int], StoredEvent] = LruCache(_EVENTS_KEPT_MAX)

    def read(self, number: int) -> ProposalState:
        """A proposal as of its newest event."""
        try:
            listed = self._objects.list(layout.build_proposal_folder(number))
        except ResourceLimitError:
            raise ProposalNotFoundError(number) from None
        found = [layout.parse_proposal_event_path(entry.path) for entry in listed]
        newest = max((each[1] for each in found if each is not None), default=0)
        if not newest:
            raise ProposalNotFoundError(number)
        return self._fold(number, newest)

    def list_numbers(self) -> list[int]:
        """The numbers of all proposals."""
        return sorted(self._count_events())

    def list_summaries(self) -> list[ProposalSummary]:
        """Every proposal, the newest first."""
        counts = self._count_events()
        known = self._read_index()
        found = {
            number: known[number]
            for number, events in counts.items()
            if number in known and known[number].events == events
        }
        stale = [(number, counts[number]) for number in counts if number not in found]
        found |= {each.number: each.summarize() for each in self._fold_many(stale)}
        return [found[number] for number in sorted(found, reverse=True)]

    def open(
        self,
        opened: Opened,
        *,
        actor: str | None,
        find_same: Callable[[ProposalSummary], bool],
    ) -> tuple[ProposalState, bool]:
        """Begin a proposal, unless there is the same one; with whether it was begun now.

        All lower numbers are examined before a number is taken, so that of two processes which
        begin the same proposal one finds that of the other.
        """
        for _ in range(PUTS_MAX):
            listed = self.list_summaries()
            same = next((each for each in listed if find_same(each)), None)
            if same is not None:
                return self.read(same.number), False
            number = listed[0].number + 1 if listed else 1
            stored = self._put(number, 1, opened, actor)
            if stored is not None:
                self._refresh_index(listed)
                return fold_events(number, [stored]), True
        raise _build_overtaken_error("the opening of a proposal")

    def add_event(
        self,
        number: int,
        decide: Callable[[ProposalState], Event | None],
        *,
        actor: str | None,
    ) -> ProposalState:
        """Add the event that is decided on the newest state, and decided again on a newer one.

        Without an event nothing is added. The state after it is returned.
        """
        for _ in range(PUTS_MAX):
            state = self.read(number)
            event = decide(state)
            if event is None:
                return state
            if (refusal := state.find_refusal(event)) is not None:
                raise ProposalRefusedError(f"proposal {number}: {refusal}", number=number)
            stored = self._put(number, state.events + 1, event, actor)
            if stored is not None:
                return state.apply(stored)
        raise _build_overtaken_error(f"an event of proposal {number}")

    def _put(self, number: int, place: int, event: Event, actor: str | None) -> StoredEvent | None:
        """Put an event at a place; None if another event is there."""
        path, at_us = layout.build_proposal_event_path(number, place), self._now_us()
        fields = encode_event(event, at_us=at_us, actor=actor)
        if not put_event(self._objects, path, fields, what=f"proposal {number}"):
            return None
        return self._events.put((number, place), StoredEvent(place, at_us, actor, event))

    def _count_events(self) -> dict[int, int]:
        """The number of the newest event of each proposal."""
        found: dict[int, int] = {}
        for entry in self._objects.list(layout.PROPOSALS):
            if (place := layout.parse_proposal_event_path(entry.path)) is not None:
                found[place[0]] = max(place[1], found.get(place[0], 0))
        return found

    def _fold_many(self, places: list[tuple[int, int]]) -> list[ProposalState]:
        if len(places) == 1:
            return [self._fold(*places[0])]
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            return list(readers.map(lambda place: self._fold(*place), places))

    def _fold(self, number: int, newest: int) -> ProposalState:
        return fold_events(number, (self._read(number, at) for at in range(1, newest + 1)))

    def _read(self, number: int, place: int) -> StoredEvent:
        known = self._events.get((number, place))
        if known is not None:
            return known
        path = layout.build_proposal_event_path(number, place)
        stored = decode_event(place, read_event(self._objects, path))
        if isinstance(stored.event, Opened) != (place == 1):
            raise CorruptObjectError(path, "a proposal is opened by its first event alone")
        return self._events.put((number, place), stored)

    def _read_index(self) -> Mapping[int, ProposalSummary]:
        """The summaries of the index. A damaged one, or of a newer program, is as good as none."""
        with suppress(CorruptObjectError, FormatTooNewError):
            data = self._objects.get(layout.PROPOSAL_INDEX)
            if data is not None:
                fields = decode_fields(layout.PROPOSAL_INDEX, data)
                found = map(_decode_summary, fields.get_children("proposals"))
                return {each.number: each for each in found}
        return {}

    def _refresh_index(self, listed: list[ProposalSummary]) -> None:
        """Write the index again if reading the list has shown that it lags."""
        known = self._read_index()
        current = sum(known.get(each.number) == each for each in listed)
        if len(listed) - current < INDEX_LAG_MAX:
            return
        summaries = [_encode_summary(each) for each in listed]
        # Nothing depends on it.
        with suppress(StorageError):
            data = encode_fields(layout.PROPOSAL_INDEX, {"proposals": summaries})
            self._objects.put(layout.PROPOSAL_INDEX, data)


def _encode_summary(summary: ProposalSummary) -> dict[str, object]:
    return asdict(summary)


def _decode_summary(fields: Fields) -> ProposalSummary:
    status = fields.get_text("status")
    if status not in set(ProposalStatus):
        fields.raise_corrupt(f"'{status}' is not a status")
    return ProposalSummary(
        number=fields.get_integer("number"),
        events=fields.get_integer("events"),
        status=ProposalStatus(status),
        title=fields.get_text("title"),
        author=fields.get_optional_text("author"),
        source=fields.get_text("source"),
        source_stream=fields.get_text("source_stream"),
        target=fields.get_text("target"),
        opened_at_us=fields.get_integer("opened_at_us"),
        updated_at_us=fields.get_integer("updated_at_us"),
        is_merging=fields.get_flag("is_merging"),
        key=fields.get_optional_text("key"),
    )


def _build_overtaken_error(what: str) -> ConflictError:
    return ConflictError(f"other events overtook {what} {PUTS_MAX} times")
