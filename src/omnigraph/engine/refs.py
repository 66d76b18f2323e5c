"""The commit that a branch, a snapshot, a name, an id or a time stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
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


# A text is what `resolve_name` takes. A time is one of main.
StateRef: TypeAlias = BranchLike | SnapshotLike | Commit | str | datetime


def resolve_ref(session: Session, argument: str, given: StateRef) -> versioning.Snapshot:
    """The state that a caller means."""
    resources = session.resources
    match given:
        case Commit():
            return resources.history.read_by_commit(given.id)
        case str():
            return resolve_name(session, arguments.require_text(argument, given))
        case datetime():
            return _read_at_time(session, MAIN_BRANCH, arguments.to_microseconds(given))
        case SnapshotLike():
            return _require_own_graph(session, argument, given)
        case BranchLike():
            return _require_own_graph(session, argument, given.snapshot())
        case _:
            raise InvalidArgumentError(
                argument,
                f"a {type(given).__name__} is not a state of a graph",
                hint="pass a branch, a snapshot, a commit, a name, an id or a time",
            )


def _require_own_graph(session: Session, argument: str, state: SnapshotLike) -> versioning.Snapshot:
    if state.uri != session.uri:
        raise InvalidArgumentError(argument, f"{state!r} is of the graph at {state.uri}")
    return state.at


def resolve_name(session: Session, name: str, *, branch: str = MAIN_BRANCH) -> versioning.Snapshot:
    """The state that a text names; a time, a date and a version are those of a branch.

    A time covers what it is written in: one in whole seconds means the end of its second, so that
    a printed time finds the commit it was printed for. A date means its start in UTC.
    """
    # A text that is not the name of a branch may still be the id of a commit.
    with suppress(BranchRefusedError):
        return session.read_head(session.resources.branches.resolve(name))
    time = parse_time(name)
    if time is not None:
        return _read_at_time(
            session, branch, arguments.to_microseconds(time) + _compute_span_us(name)
        )
    try:
        return session.resources.history.read_by_name(name)
    except CommitNotFoundError:
        if _VERSION.fullmatch(name):
            stream = session.resources.branches.resolve(branch)
            return session.resources.history.read_by_seq(stream, int(name))
        if _DATE.fullmatch(name) and (time := parse_time(f"{name}T00:00:00Z")) is not None:
            return _read_at_time(session, branch, arguments.to_microseconds(time))
        raise CommitNotFoundError(
            f"'{name}' is not a branch, a tag or a commit", hint=_HINT
        ) from None


def _read_at_time(session: Session, branch: str, time_us: int) -> versioning.Snapshot:
    resources = session.resources
    return resources.history.read_by_time(resources.branches.resolve(branch), time_us)


def _compute_span_us(text: str) -> int:
    """How many microseconds a time covers after the one it names."""
    fraction = _FRACTION.search(text)
    digits = 0 if fraction is None else min(len(fraction[1]), _DIGITS_MAX)
    return int(10 ** (_DIGITS_MAX - digits)) - 1


def resolve_source(session: Session, name: str) -> tuple[versioning.Snapshot, bool]:
    """The commit that a text names, and whether it is that of a branch."""
    try:
        return session.read_head(session.resources.branches.resolve(name)), True
    except BranchNotFoundError as missing:
        try:
            return session.resources.history.read_by_name(name), False
        except CommitNotFoundError:
            if decode_ulid_ms(name) is not None:
                raise
            missing.hint = "name a branch, a tag or the id of a commit"
        raise


def use_newest(
    session: Session,
    at: versioning.Snapshot,
    *,
    resolve: Callable[[], versioning.Snapshot],
    use: Callable[[versioning.Snapshot], Result],
) -> Result:
    """Use the commit that a caller means, which a clean-up may release before it is used.

    A name then stands for a newer commit, with which the work begins again. A commit that was
    given itself is gone.
    """
    for _ in range(STARTS_MAX):
        try:
            return use(at)
        except SnapshotGoneError as gone:
            # A process that slept through the clean-up may still take the old end for the newest.
            session.resources.log.invalidate_floor(at.stream)
            with suppress(CommitNotFoundError):
                newer = resolve()
                if newer.commit != at.commit:
                    at = newer
                    continue
            raise gone from None
    return use(at)
