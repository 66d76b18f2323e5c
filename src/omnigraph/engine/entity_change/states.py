"""A commit between two states: the one of its first parent, and its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.engine.session import Session
from omnigraph.execution.view import View
from omnigraph.versioning.record import Record, Stream


@dataclass(frozen=True, slots=True)
class CommitStates:
    """A commit of a stream between two views: the one of its first parent, and its own."""

    stream: Stream
    record: Record
    before: View
    after: View


def load_commit_states(session: Session, stream: Stream, record: Record) -> CommitStates:
    """The two states that a commit of a stream is between."""
    parent = session.resources.log.read_snapshot(stream, record.seq - 1)
    # The parent of the first commit of a branch is one of another stream.
    after = replace(parent.advance(record), stream=stream.owner_of(record.seq))
    return CommitStates(stream, record, session.open_view(parent), session.open_view(after))
