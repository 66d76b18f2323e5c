"""Cursors of reads: where the next page begins, in which commit, and of which question.

A cursor names its commit by a version of the branch that is asked, and the policy is asked for the
branch that made the commit, as for any other read of it: so an altered cursor shows nothing new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.engine.graph_session import Session
from omnigraph.engine.opaque_texts import decode_opaque, encode_opaque
from omnigraph.errors import CommitNotFoundError, CursorStaleError
from omnigraph.query.ast import File, Query
from omnigraph.query.typed_tree import Value
from omnigraph.rows.row_position import RowPosition
from omnigraph.versioning import Snapshot
from omnigraph.versioning.record import GENESIS_SEQ

_FORMAT: Final = 1
_DIGITS: Final = 32
COLLECTED: Final = "its commit was collected"
_WRONG: Final = "it is not one that a query returned, or it was altered"


@dataclass(frozen=True, slots=True)
class ReadCursor:
    """A position among the rows of a question, as they are in a commit at an instant."""

    question: str
    commit: str
    version: int
    now: int
    position: RowPosition

    def encode(self) -> str:
        """The text that a caller gives back."""
        position = [self.position.repeats, list(self.position.keys)]
        return encode_opaque(
            [_FORMAT, self.question, self.commit, self.version, self.now, *position]
        )


def decode_cursor(text: str, question: str) -> ReadCursor:
    """The position of a cursor, which has to belong to the same question."""
    try:
        form, own, commit, version, now, repeats, keys = decode_opaque(text)
        position = RowPosition(tuple(keys), repeats)
    except (TypeError, ValueError):
        raise CursorStaleError(_WRONG) from None
    numbers = (form, version, now, repeats)
    is_whole = all(isinstance(each, int) and not isinstance(each, bool) for each in numbers)
    if not is_whole or form != _FORMAT or repeats < 0 or version < GENESIS_SEQ:
        raise CursorStaleError(_WRONG)
    if own != question:
        raise CursorStaleError("it is of another query, or of other parameters")
    return ReadCursor(question, str(commit), version, now, position)


def digest_question(query: Query, params: Mapping[str, Value], without: str | None) -> str:
    """What a cursor is bound to: a query, however it is laid out, and its other parameters."""
    # A query without pages is never printed.
    from omnigraph.query.query_printer import print_file  # noqa: PLC0415

    given = sorted((name, repr(value)) for name, value in params.items() if name != without)
    text = repr((print_file(File((), (query,))), given))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def find_snapshot(session: Session, at: Snapshot, cursor: ReadCursor) -> Snapshot:
    """The commit of a cursor among those of the branch of a snapshot."""
    try:
        found = session.resources.history.read_by_seq(at.stream, cursor.version)
    except CommitNotFoundError:
        raise CursorStaleError(COLLECTED) from None
    if found.commit != cursor.commit:
        raise CursorStaleError("it is of another branch")
    return found
