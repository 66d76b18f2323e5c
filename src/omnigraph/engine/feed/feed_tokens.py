"""Tokens: the position of a reader in a commit or in a feed, as a text that the reader keeps.

A token is the opaque text of a JSON object. It is bound to the graph, to the life of a branch and
to the filters, as hashes; what does not fit is rejected. It names nothing of how things are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.engine.entity_changes import BoundFilters, Filters
from omnigraph.engine.graph_session import Session
from omnigraph.engine.opaque_texts import decode_opaque, encode_opaque
from omnigraph.errors import ChangeCursorRejectedError, CorruptObjectError
from omnigraph.rows.view import View
from omnigraph.versioning.json_fields import Fields
from omnigraph.versioning.record import GENESIS_SEQ, MAIN, Record, Stream

TOKEN_BYTES_MAX: Final = 4096

# A longer id is kept as its beginning and a hash, and found again among the ids of the commit.
EXACT_ID_BYTES_MAX: Final = 256
PREFIX_BYTES_MAX: Final = 64
_VERSION: Final = 1
_PURPOSE: Final = "changes/forward"
_HASH_DIGITS: Final = 32
OTHER_FILTERS: Final = "it was made with other filters"
_WRONG: Final = "it is not a token of this program, or it was altered"


class TokenKind(StrEnum):
    """What a token continues."""

    COMMIT_PAGE = "commit-page"
    FEED_CURSOR = "feed-cursor"
    FEED_PAGE = "feed-page"


@dataclass(frozen=True, slots=True)
class Binding:
    """What a token belongs to: a graph, filters, and a branch in one life or one commit.

    The first commit may have been cleaned up since the token was made: then it is not compared.
    Neither are filters of which it is not known yet what they mean.
    """

    graph: str
    genesis: str | None
    filters: str | None
    branch: str | None = None
    life: str | None = None
    commit: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """The members of a token, without those that do not apply."""
        members = {
            "graph": hash_name(self.graph),
            "genesis": self.genesis,
            "filters": self.filters,
            "branch": None if self.branch is None else hash_name(self.branch),
            "life": None if self.life is None else hash_name(self.life),
            "commit": self.commit,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class IdMark:
    """An id in a token: itself, or the beginning and the hash of a long one."""

    text: str
    hash: str | None = None

    def matches(self, entity_id: str) -> bool:
        """Whether this stands for an id."""
        if self.hash is None:
            return entity_id == self.text
        return entity_id.startswith(self.text) and hash_text(entity_id) == self.hash


@dataclass(frozen=True, slots=True)
class EntityPosition:
    """The last returned entity of a commit: the kind and opaque id of its type, and its id."""

    kind: str
    type_id: str
    entity: IdMark

    def to_json(self) -> dict[str, str]:
        """The members of a token."""
        members = {"kind": self.kind, "type": self.type_id, "id": self.entity.text}
        return members if self.entity.hash is None else {**members, "hash": self.entity.hash}


@dataclass(frozen=True, slots=True)
class CommitPosition:
    """A commit of a branch, by its version and its id: everything up to it was returned."""

    seq: int
    commit: str

    def to_json(self) -> dict[str, object]:
        """The members of a token."""
        return {"seq": self.seq, "commit": self.commit}


@dataclass(frozen=True, slots=True)
class PollRange:
    """The commits of one poll: after which, up to which, and whether these were all."""

    begin: CommitPosition
    end: CommitPosition
    is_caught_up: bool


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Where a page of a poll ended: the last complete commit, and the last entity of the next."""

    poll_range: PollRange
    delivered: CommitPosition
    entity: EntityPosition | None


def make_id_mark(entity_id: str) -> IdMark:
    """An id as tokens carry it."""
    data = entity_id.encode()
    if len(data) <= EXACT_ID_BYTES_MAX:
        return IdMark(entity_id)
    return IdMark(data[:PREFIX_BYTES_MAX].decode(errors="ignore"), hash_text(entity_id))


def encode_commit_page(binding: Binding, place: EntityPosition) -> str:
    """The token of the next page of a commit."""
    return _encode_token(TokenKind.COMMIT_PAGE, binding, {"after": place.to_json()})


def decode_commit_page(token: str, binding: Binding) -> EntityPosition:
    """The last entity of a commit that was returned."""
    with _translate_errors():
        return _decode_entity_position(
            _decode_token(TokenKind.COMMIT_PAGE, token, binding).get_child("after")
        )


def encode_feed_cursor(binding: Binding, at: CommitPosition) -> str:
    """The cursor after a commit."""
    return _encode_token(TokenKind.FEED_CURSOR, binding, {"at": at.to_json()})


def decode_feed_cursor(token: str, binding: Binding) -> CommitPosition:
    """The last commit before a cursor."""
    with _translate_errors():
        return _decode_commit_position(
            _decode_token(TokenKind.FEED_CURSOR, token, binding).get_child("at")
        )


def encode_feed_page(binding: Binding, at: FeedPosition) -> str:
    """The token of the next page of a poll."""
    members: dict[str, object] = {
        "begin": at.poll_range.begin.to_json(),
        "end": at.poll_range.end.to_json(),
        "caught_up": at.poll_range.is_caught_up,
        "at": at.delivered.to_json(),
    }
    if at.entity is not None:
        members["after"] = at.entity.to_json()
    return _encode_token(TokenKind.FEED_PAGE, binding, members)


def decode_feed_page(token: str, binding: Binding) -> FeedPosition:
    """Where a page of a poll ended."""
    with _translate_errors():
        fields = _decode_token(TokenKind.FEED_PAGE, token, binding)
        return FeedPosition(
            _decode_poll_range(fields),
            _decode_commit_position(fields.get_child("at")),
            _decode_entity_position(fields.get_child("after"))
            if fields.has_field("after")
            else None,
        )


def decode_filters_digest(token: str) -> str:
    """The digest of the filters that a token was made with."""
    with _translate_errors():
        return _decode_members(token).get_text("filters")


def hash_name(text: str) -> str:
    """A name as tokens carry it."""
    return hash_text(text)[:_HASH_DIGITS]


def hash_text(text: str) -> str:
    """The SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def _encode_token(kind: TokenKind, binding: Binding, members: Mapping[str, object]) -> str:
    header = {"v": _VERSION, "kind": kind, "purpose": _PURPOSE}
    token = encode_opaque({**header, **binding.to_json(), **members})
    assert len(token) <= TOKEN_BYTES_MAX, "every member of a token is bounded"
    return token


def _decode_token(kind: TokenKind, token: str, binding: Binding) -> Fields:
    """The members of a token, of which the position is not yet compared with anything."""
    fields = _decode_members(token)
    fields.require("v", _VERSION)
    fields.require("purpose", _PURPOSE)
    found = fields.get_text("kind")
    if found != kind:
        raise ChangeCursorRejectedError(f"it is a {found}, where a {kind} is expected")
    _require_binding(fields, binding)
    return fields


def _require_binding(fields: Fields, binding: Binding) -> None:
    expected = binding.to_json()
    reasons = {
        "graph": "it is of another graph",
        "genesis": "it is of another graph",
        "branch": "it is of another branch",
        "life": "the branch was deleted and created again since",
        "commit": "it is of another commit",
        "filters": OTHER_FILTERS,
    }
    for name, reason in reasons.items():
        found = fields.get_optional_text(name)
        is_unknown = name == "genesis" and found is None
        is_unknown |= name in ("genesis", "filters") and name not in expected
        if found != expected.get(name) and not is_unknown:
            raise ChangeCursorRejectedError(reason)


def _decode_members(token: str) -> Fields:
    if len(token) > TOKEN_BYTES_MAX:
        raise ChangeCursorRejectedError(f"it has more than {TOKEN_BYTES_MAX} bytes")
    try:
        return Fields("token", decode_opaque(token))
    except ValueError:
        raise ChangeCursorRejectedError(_WRONG) from None


def _decode_entity_position(fields: Fields) -> EntityPosition:
    mark = IdMark(fields.get_text("id"), fields.get_optional_text("hash"))
    return EntityPosition(fields.get_text("kind"), fields.get_text("type"), mark)


def _decode_poll_range(fields: Fields) -> PollRange:
    begin, end = (_decode_commit_position(fields.get_child(name)) for name in ("begin", "end"))
    return PollRange(begin, end, fields.get_flag("caught_up"))


def _decode_commit_position(fields: Fields) -> CommitPosition:
    return CommitPosition(fields.get_integer("seq"), fields.get_text("commit"))


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Whatever a token lacks, it is not one of ours."""
    try:
        yield
    except (CorruptObjectError, ValueError):
        raise ChangeCursorRejectedError(_WRONG) from None


def build_branch_binding(
    session: Session, view: View, stream: Stream, wanted: BoundFilters | None
) -> Binding:
    """The binding of a feed: to the branch, and to its life, which ends when it is deleted.

    Filters bind by the types that their names mean, so that a cursor outlives a renaming.
    """
    return Binding(
        graph=view.accepted.domain,
        genesis=_find_genesis(session),
        filters=None if wanted is None else wanted.digest,
        branch=stream.branch,
        life=stream.id,
    )


def build_commit_binding(session: Session, view: View, commit: str, filters: Filters) -> Binding:
    """The binding of the pages of one commit."""
    return Binding(
        graph=view.accepted.domain,
        genesis=_find_genesis(session),
        filters=filters.digest,
        commit=commit,
    )


def resolve_filters(
    filters: Filters, view: View, then: Callable[[], View], made_with: str | None
) -> BoundFilters:
    """What the names of filters mean: now or, if that made no such token, in a former view."""
    if filters.are_known_at(view):
        now = filters.resolve_in_first(view)
        if made_with in (None, now.digest):
            return now
    former = then()
    for views in ((view, former), (former, view)):
        wanted = filters.resolve_in_first(*views)
        if made_with in (None, wanted.digest):
            return wanted
    raise ChangeCursorRejectedError(OTHER_FILTERS)


def _find_genesis(session: Session) -> str | None:
    """The first commit of the graph; None once it was cleaned up."""
    entry = session.resources.log.read(MAIN.id, GENESIS_SEQ)
    return entry.commit if isinstance(entry, Record) else None
