"""What runs a case: an arm opens sessions, a session answers the steps of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from logic.answers import (
    AffectedAnswer,
    DoneAnswer,
    LinesAnswer,
    LoadedAnswer,
    OutcomeAnswer,
    RowsAnswer,
)
from logic.case import Dialect, LoadMode
from logic.generate import Json
from omnigraph.lang.lexer import Mode
from omnigraph.query.query_settings import SettingValue

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller sends along with a text; `settings` hold unless the text changes them."""

    branch: str = MAIN
    params: Mapping[str, Json] | None = None
    settings: Mapping[str, SettingValue] = field(default_factory=dict)


class Session(Protocol):
    """An open graph; every method raises a typed error when the step fails."""

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text."""

    def mutate(self, text: str, request: Request) -> AffectedAnswer:
        """Run the one mutation of a text."""

    def statement(self, text: str, request: Request) -> RowsAnswer | OutcomeAnswer | DoneAnswer:
        """Run the one statement of a text."""

    def load(self, text: str, *, mode: LoadMode, dialect: Dialect, branch: str) -> LoadedAnswer:
        """Load JSON lines."""

    def export(self, *, type_name: str | None, branch: str) -> LinesAnswer:
        """Export everything, or one type."""

    def restart(self) -> None:
        """Close the graph and open the same storage again."""

    def close(self) -> None:
        """Let the graph go."""


class Arm(Protocol):
    """A way to run cases."""

    @property
    def name(self) -> str:
        """The name in test ids."""

    def open(self, schema: str, *, mode: Mode) -> Session:
        """A session on a new, empty graph; texts are compiled in the mode."""
