"""The commit that a branch, a snapshot, a name, an id or a time stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from omnigraph import versioning
from omnigraph.engine import arguments
from omnigraph.engine.commit import Commit
from omnigraph.engine.commit_loop import STARTS_MAX
from omnigraph.engine.graph_session import Session
from omnigraph.errors import (
    BranchNotFoundError,
    BranchRefusedError,
    CommitNotFoundError,
    InvalidArgumentError,
    SnapshotGoneError,
)
from omnigraph.ids import decode_ulid_ms
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.versioning.ref_events import parse_time

Result = TypeVar("Result")

_VERSION: Final = re.compile(r"\d{1,18}", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_FRACTION: Final = re.compile(r"[.,](\d+)", re.ASCII)
_DIGITS_MAX: Final = 6
_HINT: Final = (
    "name a branch, a tag, the id of a commit, a version such as 3, a date, or a time such as"
    " 2026-01-31T12:00:00Z"
)


@runtime_checkable
class SnapshotLike(Protocol):
    """A snapshot, as far as its place matters."""

    @property
    def at(self) -> versioning.Snapshot:
        """The schema and the pins it consists of."""

    @property
    def uri(self) -> str:
        """The address of its graph."""


@runtime_checkable
class BranchLike(Protocol):
    """A branch, as far as its newest state matters."""

    @property
    def name(self) -> str:
        """Its name."""

    def snapshot(self) -> SnapshotLike:
        """The graph as it is now."""


# A text names a branch, a tag, a commit, a version, a time or a date; a number is a version.
StateRef: TypeAlias = BranchLike | SnapshotLike | Commit | str | int | datetime


@dataclass(frozen=True, slots=True)
class ResolvedRef:
    """A state, the name its caller has for it, and whether that is the name of a branch."""

    name: str
    at: versioning.Snapshot
    is_branch: bool = False


def resolve(
    session: Session,
    argument: str,
    given: StateRef,
    *,
    branch: str = MAIN_BRANCH,
    expects_branch: bool = False,
) -> ResolvedRef:
    """The state that a caller means; a time, a date and a version are those of a branch.

    A text that names nothing is a branch that was not found where a branch is what callers pass
    most often, and otherwise a commit that was not found.
    """
    history = session.resources.history
    match given:
        case str():
            name = arguments.require_text(argument, given)
            return _resolve_text(session, name, branch, expects_branch=expects_branch)
        case Commit():
            at = history.read_by_commit(given.id)
        case datetime():
            at = _read_at_time(session, branch, arguments.to_microseconds(given))
        case int() if not isinstance(given, bool):
            at = history.read_by_seq(session.resources.branches.resolve(branch), given)
        case SnapshotLike():
            at = _require_own_graph(session, argument, given)
        case BranchLike():
            at = _require_own_graph(session, argument, given.snapshot())
            return ResolvedRef(given.name, at, is_branch=True)
        case _:
            raise InvalidArgumentError(
                argument,
                f"a {type(given).__name__} is not a state of a graph",
                hint="pass a branch, a snapshot, a commit, a name, an id, a version or a time",
            )
    return ResolvedRef(at.commit, at)


def _require_own_graph(session: Session, argument: str, state: SnapshotLike) -> versioning.Snapshot:
    if state.uri != session.uri:
        raise InvalidArgumentError(argument, f"{state!r} is of the graph at {state.uri}")
    return state.at


def _resolve_text(session: Session, name: str, branch: str, *, expects_branch: bool) -> ResolvedRef:
    resources = session.resources
    # A text that is not the name of a branch may still be the id of a commit.
    with suppress(BranchRefusedError):
        head = session.read_head(resources.branches.resolve(name))
        return ResolvedRef(name, head, is_branch=True)
    if (time_us := _parse_time_us(name)) is not None:
        return ResolvedRef(name, _read_at_time(session, branch, time_us))
    try:
        return ResolvedRef(name, resources.history.read_by_name(name))
    except CommitNotFoundError:
        if decode_ulid_ms(name) is not None:
            raise
    if _VERSION.fullmatch(name):
        stream = resources.branches.resolve(branch)
        return ResolvedRef(name, resources.history.read_by_seq(stream, int(name)))
    if _DATE.fullmatch(name) and (start := parse_time(f"{name}T00:00:00Z")) is not None:
        return ResolvedRef(name, _read_at_time(session, branch, arguments.to_microseconds(start)))
    if expects_branch:
        raise BranchNotFoundError(name, hint=_HINT)
    raise CommitNotFoundError(f"'{name}' is not a branch, a tag or a commit", hint=_HINT)


def _read_at_time(session: Session, branch: str, time_us: int) -> versioning.Snapshot:
    resources = session.resources
    return resources.history.read_by_time(resources.branches.resolve(branch), time_us)


def _parse_time_us(text: str) -> int | None:
    """The end of the time that a text is, in microseconds; None for any other text.

    A time covers what it is written in: one in whole seconds means the end of its second, so that
    a time that was printed finds the commit it was printed for.
    """
    time = parse_time(text)
    if time is None:
        return None
    fraction = _FRACTION.search(text)
    digits = 0 if fraction is None else min(len(fraction[1]), _DIGITS_MAX)
    return arguments.to_microseconds(time) + int(10 ** (_DIGITS_MAX - digits)) - 1


def use_newest(
    session: Session,
    found: ResolvedRef,
    *,
    resolve_again: Callable[[], ResolvedRef],
    use: Callable[[ResolvedRef], Result],
) -> Result:
    """Use the state that a caller means, which a clean-up may release before it is used.

    A name then stands for a newer commit, with which the work begins again. A commit that was
    given itself is gone.
    """
    for _ in range(STARTS_MAX):
        try:
            return use(found)
        except SnapshotGoneError as gone:
            # A process that slept through the clean-up may still take the old end for the newest.
            session.resources.log.invalidate_floor(found.at.stream)
            with suppress(CommitNotFoundError):
                newer = resolve_again()
                if newer.at.commit != found.at.commit:
                    found = newer
                    continue
            raise gone from None
    return use(found)
