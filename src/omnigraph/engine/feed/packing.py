"""Packing changes into a page: so many, and so many bytes, but always at least one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from omnigraph.engine import arguments
from omnigraph.engine.entity_change import EntityChange
from omnigraph.engine.feed.content import CommitContent
from omnigraph.engine.feed.hydration import ReadAhead, SizedChange, read_changes
from omnigraph.engine.feed.tokens import EntityPosition, make_id_mark
from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgumentError, ResourceLimitError

CHANGES_DEFAULT: Final = 1000
CHANGES_MAX: Final = 8192
BYTES_DEFAULT: Final = 4 * 1024 * 1024
BYTES_MAX: Final = 32 * 1024 * 1024
COMMITS_DEFAULT: Final = 128
COMMITS_MAX: Final = 512


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
        """Take changes of a commit behind a place, as many as fit."""
        changes: list[EntityChange] = []
        for told in self._read_changes(content, after):
            if not self._fits(told):
                return PageSlice(tuple(changes), _build_remainder(changes, after))
            changes.append(told.change)
            self._count += 1
            self._bytes += told.size
            if self.is_full:
                rest = None if told.is_last else Remainder(_build_position(told.change))
                return PageSlice(tuple(changes), rest)
        return PageSlice(tuple(changes), None)

    def _read_changes(
        self, content: CommitContent, after: EntityPosition | None
    ) -> Iterator[SizedChange]:
        left = self._limits.changes - self._count
        reach = ReadAhead(max(left, 1), max(self._limits.bytes - self._bytes, 1))
        return read_changes(self._session, content, after=after, reach=reach)

    def _fits(self, told: SizedChange) -> bool:
        return self._count == 0 or self._bytes + told.size <= self._limits.bytes


@dataclass(frozen=True, slots=True)
class Remainder:
    """What does not fit of a commit: everything behind a place, or all of it."""

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
