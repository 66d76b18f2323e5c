"""A commit between two states: the one of its first parent, and its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.engine.session import Session
from omnigraph.execution.view import View
from omnigraph.versioning.record import Record, Stream


@dataclass(frozen=True, slots=True)
class States:
    """A commit of a stream between two views: the one of its first parent, and its own."""

    stream: Stream
    record: Record
    before: View
    after: View


def states_of(session: Session, stream: Stream, record: Record) -> States:
    """The two states that a commit of a stream is between."""
    parent = session.resources.log.at(stream, record.seq - 1)
    # The parent of the first commit of a branch is one of another stream.
    after = replace(parent.after(record), stream=stream.owner(record.seq))
    return States(stream, record, session.view(parent), session.view(after))
