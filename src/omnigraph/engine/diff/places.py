"""The commit that a branch, a snapshot, a name, an id or a time stands for."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Protocol, TypeAlias, runtime_checkable

from omnigraph import versioning
from omnigraph.engine import arguments
from omnigraph.engine.commit import Commit
from omnigraph.engine.session import Session
from omnigraph.errors import BranchRefused, CommitNotFound, InvalidArgument
from omnigraph.versioning.record import MAIN_BRANCH


@runtime_checkable
class State(Protocol):
    """A snapshot, as far as its place matters."""

    @property
    def at(self) -> versioning.Snapshot:
        """The schema and the pins it consists of."""

    @property
    def uri(self) -> str:
        """The address of its graph."""


@runtime_checkable
class Line(Protocol):
    """A branch, as far as its newest state matters."""

    @property
    def name(self) -> str:
        """Its name."""

    def snapshot(self) -> State:
        """The graph as it is now."""


# A text is the name of a branch, or a time, or a tag, or the id of a commit. A time is one of main.
Place: TypeAlias = Line | State | Commit | str | datetime


def place_of(session: Session, argument: str, given: Place) -> versioning.Snapshot:
    """The state that a caller means."""
    resources = session.resources
    match given:
        case Commit():
            return resources.history.by_commit(given.id)
        case str():
            return _named(session, arguments.text(argument, given))
        case datetime():
            stream = resources.branches.resolve(MAIN_BRANCH)
            return resources.history.by_time(stream, arguments.microseconds(given))
        case State():
            return _own(session, argument, given)
        case Line():
            return _own(session, argument, given.snapshot())
        case _:
            raise InvalidArgument(
                argument,
                f"a {type(given).__name__} is no state of a graph",
                hint="pass a branch, a snapshot, a commit, a name, an id or a time",
            )


def _own(session: Session, argument: str, state: State) -> versioning.Snapshot:
    if state.uri != session.uri:
        raise InvalidArgument(argument, f"{state!r} is of the graph at {state.uri}")
    return state.at


def _named(session: Session, name: str) -> versioning.Snapshot:
    # A text that is no name of a branch may still be the id of a commit.
    with suppress(BranchRefused):
        return session.head(session.resources.branches.resolve(name))
    time = _time(name)
    if time is not None:
        return place_of(session, "time", time)
    try:
        return session.resources.history.by_name(name)
    except CommitNotFound:
        raise CommitNotFound(
            f"there is no branch, no tag and no commit '{name}'",
            hint="name a branch, a tag, the id of a commit, or a time such as 2026-01-31T12:00:00Z",
        ) from None


def _time(text: str) -> datetime | None:
    """A text that is a time with its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found
