"""Pages of changes: a bounded number of changes and bytes, but always at least one change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.type_difference import (
    Op,
    TypeDifference,
    compute_difference,
    encode_difference_images,
)
from omnigraph.engine import arguments
from omnigraph.engine.entity_changes import EntityChange, Filters
from omnigraph.engine.feed.commit_content import (
    CommitContent,
    TypeContent,
    build_commit_content,
    find_resume_index,
    list_candidate_ids,
    require_commit_states,
    translate_missing_state,
)
from omnigraph.engine.feed.feed_tokens import (
    EntityPosition,
    build_commit_binding,
    decode_commit_page,
    encode_commit_page,
    make_id_mark,
)
from omnigraph.engine.graph_session import Session
from omnigraph.errors import (
    CommitHasNoParentError,
    CommitNotFoundError,
    InvalidArgumentError,
    ResourceLimitError,
)
from omnigraph.html_views import HtmlDocument
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.commit_clock import time_of
from omnigraph.versioning.record import Record

if TYPE_CHECKING:
    from omnigraph.schema.schema_shape import JsonObject


CHANGES_DEFAULT: Final = 1000
CHANGES_MAX: Final = 8192
BYTES_DEFAULT: Final = 4 * 1024 * 1024
BYTES_MAX: Final = 32 * 1024 * 1024
COMMITS_DEFAULT: Final = 128
COMMITS_MAX: Final = 512

# The first images of a type show how large they are; a few blobs may be all that memory takes.
FIRST_ROWS: Final = 256
FIRST_ROWS_WITH_BLOBS: Final = 4

# What a change takes in a document beside its images and its id.
_FRAME_BYTES: Final = 120


@dataclass(frozen=True, slots=True)
class Cause:
    """The commit that made changes; `parents` are the ids of the commits it follows.

    `authored_at` counts the microseconds since 1970.
    """

    commit_id: str
    parents: tuple[str, ...]
    branch: str
    actor: str | None
    authored_at: int

    def to_json(self) -> JsonObject:
        """The document of a cause; what does not exist has no member."""
        parent, merged = (*self.parents, None, None)[:2]
        members = {
            "graph_commit_id": self.commit_id,
            "parent_commit_id": parent,
            "merged_parent_commit_id": merged,
            "authored_branch": self.branch,
            "actor_id": self.actor,
            "authored_at": self.authored_at,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Block(HtmlDocument):
    """What one commit changed, or a part of it if it is larger than a page.

    Nodes come before edges, types in the order of their opaque ids, entities in that of their ids.
    `cursor` is the position after the commit: with it, a feed goes on with the next one. It is None
    where the rest of the commit is on the next page.
    """

    cause: Cause
    changes: tuple[EntityChange, ...]
    cursor: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no more changes of the commit follow."""
        return self.cursor is not None

    def to_json(self) -> JsonObject:
        """The document of a block."""
        return {
            "cause": self.cause.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class ChangesPage(HtmlDocument):
    """A page of what one commit changed; without a token, the last one."""

    cause: Cause
    changes: tuple[EntityChange, ...]
    next_page_token: str | None = None

    def to_json(self) -> JsonObject:
        """The document of `commit changes`: CommitChangesOutput."""
        document: JsonObject = {
            "cause": self.cause.to_json(),
            "changes": [change.to_json() for change in self.changes],
        }
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        return document


@dataclass(frozen=True, slots=True)
class FeedPage(HtmlDocument):
    """A page of a poll: either a token of the next one, or a cursor and whether it is the end.

    A poll returns the commits that were there when it began; `caught_up` says that these were all.
    """

    blocks: tuple[Block, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_json(self) -> JsonObject:
        """The document of `changes poll`: ChangeFeedOutput."""
        document: JsonObject = {"blocks": [block.to_json() for block in self.blocks]}
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        else:
            document |= {"cursor": self.cursor, "caught_up": self.caught_up}
        return document


def cause_of(record: Record) -> Cause:
    """The commit of a record as the cause of its changes."""
    merged = () if record.merged is None else (record.merged.commit,)
    return Cause(
        commit_id=record.commit,
        parents=(() if record.parent is None else (record.parent,)) + merged,
        branch=record.branch,
        actor=record.signature.actor,
        authored_at=time_of(record),
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a page may be. One change that is larger than a page is a page alone."""

    changes: int = CHANGES_DEFAULT
    bytes: int = BYTES_DEFAULT
    commits: int = COMMITS_DEFAULT


def parse_limits(limit: object, *, bytes_max: object = None, commits_max: object = None) -> Limits:
    """Limits as callers give them; None means the default."""
    return Limits(
        _parse_limit("limit", limit, CHANGES_DEFAULT, ("commit_changes_page_changes", CHANGES_MAX)),
        _parse_limit(
            "bytes_max", bytes_max, BYTES_DEFAULT, ("commit_changes_page_bytes", BYTES_MAX)
        ),
        _parse_limit(
            "commits_max", commits_max, COMMITS_DEFAULT, ("changes_poll_commits", COMMITS_MAX)
        ),
    )


class PageBuilder:
    """A page that is being filled with the changes of one commit after the other."""

    def __init__(self, session: Session, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self._count = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits, however small."""
        return self._count >= self._limits.changes or self._bytes >= self._limits.bytes

    def fill(self, content: CommitContent, after: EntityPosition | None) -> PageSlice:
        """Take changes of a commit after a position, as many as fit."""
        changes: list[EntityChange] = []
        for sized in self._read_changes(content, after):
            if not self._fits(sized):
                return PageSlice(tuple(changes), _build_remainder(changes, after))
            changes.append(sized.change)
            self._count += 1
            self._bytes += sized.size
            if self.is_full:
                rest = None if sized.is_last else Remainder(_build_position(sized.change))
                return PageSlice(tuple(changes), rest)
        return PageSlice(tuple(changes), None)

    def _read_changes(
        self, content: CommitContent, after: EntityPosition | None
    ) -> Iterator[SizedChange]:
        left = self._limits.changes - self._count
        reach = ReadAhead(max(left, 1), max(self._limits.bytes - self._bytes, 1))
        return read_changes(self._session, content, after=after, reach=reach)

    def _fits(self, sized: SizedChange) -> bool:
        return self._count == 0 or self._bytes + sized.size <= self._limits.bytes


@dataclass(frozen=True, slots=True)
class Remainder:
    """The changes of a commit that do not fit: those after a position, or all."""

    after: EntityPosition | None


@dataclass(frozen=True, slots=True)
class PageSlice:
    """The changes of a commit that a page took, and the rest, if there is one."""

    changes: tuple[EntityChange, ...]
    rest: Remainder | None


def _build_remainder(changes: list[EntityChange], after: EntityPosition | None) -> Remainder:
    return Remainder(_build_position(changes[-1]) if changes else after)


def _build_position(change: EntityChange) -> EntityPosition:
    return EntityPosition(change.kind, change.type_id, make_id_mark(change.id))


def _parse_limit(argument: str, value: object, default: int, most: tuple[str, int]) -> int:
    found = arguments.require_optional_count(argument, value)
    if found is None:
        return default
    if found == 0:
        raise InvalidArgumentError(argument, "0 is not enough for anything")
    resource, limit = most
    if found > limit:
        raise ResourceLimitError(resource, limit=limit, actual=found, hint="ask for smaller pages")
    return found


def read_commit_changes(
    session: Session, commit_id: str, *, page_token: str | None, filters: Filters, limits: Limits
) -> ChangesPage:
    """A page of what a commit changed relative to its first parent."""
    log = session.resources.log
    found = session.resources.history.find(commit_id)
    record = None if found is None else log.read(found[0].id, found[1])
    if found is None or not isinstance(record, Record):
        raise CommitNotFoundError(f"no live branch holds commit '{commit_id}'")
    if record.parent is None:
        raise CommitHasNoParentError(commit_id)
    states = require_commit_states(session, found[0], record)
    binding = build_commit_binding(session, states.after, commit_id, filters)
    after = None if page_token is None else decode_commit_page(page_token, binding)
    wanted = filters.resolve_in_any(states.after, states.before)
    filled = PageBuilder(session, limits).fill(build_commit_content(session, states, wanted), after)
    place = None if filled.rest is None else filled.rest.after
    token = None if place is None else encode_commit_page(binding, place)
    return ChangesPage(cause_of(record), filled.changes, token)


@dataclass(frozen=True, slots=True)
class SizedChange:
    """One change, its size in a document, and whether the commit may have more of them."""

    change: EntityChange
    size: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How far one page can look ahead: entities, and bytes of images."""

    rows: int
    bytes: int


def read_changes(
    session: Session, content: CommitContent, *, after: EntityPosition | None, reach: ReadAhead
) -> Iterator[SizedChange]:
    """The changes of a commit after a position, in order."""
    types = content.list_types_from(after)
    for at, each in enumerate(types):
        is_last_type = at == len(types) - 1
        ids = list_candidate_ids(session, each, content.ops)
        start = find_resume_index(ids, after.entity) if after is not None and at == 0 else 0
        while start < len(ids):
            window = ids.slice(start, reach.rows)
            start += len(window)
            is_last_window = is_last_type and start == len(ids)
            with translate_missing_state(session, content.states.stream, content.states.record):
                found = _compare_states(each, window).filter_ops(frozenset(content.ops))
                yield from _read_pieces(
                    found, reach, last_id=window[-1].as_py() if is_last_window else None
                )


def _compare_states(content: TypeContent, ids: pa.Array) -> TypeDifference:
    states = content.states
    is_line = states.record.merged is None
    return compute_difference(states.before, states.after, content.pair, ids, shares_copies=is_line)


def _read_pieces(
    found: TypeDifference, reach: ReadAhead, *, last_id: str | None
) -> Iterator[SizedChange]:
    """The changes of a window; `last_id` is the last candidate of the commit, if it is in it."""
    start, rows_max = 0, _choose_first_rows(found)
    while start < len(found):
        piece = found.slice(start, rows_max)
        start += len(piece)
        changes = _build_changes(piece, last_id=last_id)
        yield from changes
        mean = max(1, sum(each.size for each in changes) // len(changes))
        rows_max = max(1, min(reach.bytes // mean, 2 * rows_max))


def _choose_first_rows(found: TypeDifference) -> int:
    views = (found.old, found.pair.old), (found.new, found.pair.new)
    fields = (field for view, key in views if key for field in view.get_shape(key).schema)
    return FIRST_ROWS_WITH_BLOBS if any(map(is_blob, fields)) else FIRST_ROWS


def _build_changes(piece: TypeDifference, *, last_id: str | None) -> list[SizedChange]:
    before, after = encode_difference_images(piece)
    ids = piece.ids.to_pylist()
    sizes = _FRAME_BYTES + sum(
        pc.fill_null(pc.binary_length(texts), 0).to_numpy().astype(np.int64)
        for texts in (piece.ids, before, after)
    )
    kind, name = str(piece.kind), piece.type_key.name
    rows = zip(
        ids,
        piece.ops.tolist(),
        _decode_images(before),
        _decode_images(after),
        sizes.tolist(),
        strict=True,
    )
    return [
        SizedChange(
            EntityChange(kind, piece.pair.type_id, name, id_, Op(op).word, old, new),
            size,
            is_last=id_ == last_id,
        )
        for id_, op, old, new, size in rows
    ]


def _decode_images(texts: pa.Array) -> list[dict[str, object] | None]:
    """Images as objects, parsed at once; None where there is none."""
    filled = pc.fill_null(texts, "null").to_pylist()
    found: list[dict[str, object] | None] = json.loads(f"[{','.join(filled)}]")
    return found
