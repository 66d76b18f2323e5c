"""What a session answers."""

from __future__ import annotations

from dataclasses import dataclass

from logic.generate import Json


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column: its name and its type in schema spelling, without `?`."""

    name: str
    type_name: str


@dataclass(frozen=True, slots=True)
class RowsAnswer:
    """Rows as JSON objects; `tiebreak` lists the ids that decide ties, if known.

    A query with pages `has_cursor`: that of the next page, if there is one.
    """

    columns: tuple[AnswerColumn, ...]
    rows: tuple[dict[str, Json], ...]
    is_ordered: bool = False
    tiebreak: tuple[str, ...] | None = None
    cursor: str | None = None
    has_cursor: bool = False
    total: int | None = None


@dataclass(frozen=True, slots=True)
class LinesAnswer:
    """The lines of an export."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AffectedAnswer:
    """The counts of a mutation."""

    nodes: int
    edges: int


@dataclass(frozen=True, slots=True)
class LoadedAnswer:
    """The number of records a load took, by type, sorted."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class OutcomeAnswer:
    """What a branch merge did."""

    word: str


@dataclass(frozen=True, slots=True)
class DoneAnswer:
    """Success with nothing to report."""


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """A typed error."""

    error: Exception


Answer = (
    RowsAnswer
    | LinesAnswer
    | AffectedAnswer
    | LoadedAnswer
    | OutcomeAnswer
    | DoneAnswer
    | FailedAnswer
)
