"""Errors of configuration files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.errors.base_error import OmnigraphError


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a configuration file: where it is, what it is, and what to do about it.

    `path` leads to it through the document, such as `into[0].map.nodes[1]`; `code`
    is the kind of problem.
    """

    file: str
    line: int
    column: int
    message: str
    hint: str | None = None
    path: str | None = None
    code: str = "invalid_value"

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}:{self.column}: {self.message}"
        text = text if self.hint is None else f"{text} ({self.hint})"
        return text if self.path is None else f"{text}, at {self.path}"

    def to_json(self) -> dict[str, str | int | None]:
        """The document of a problem."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }


class ConfigInvalidError(OmnigraphError):
    """A configuration file that cannot be used; `problems` are all of them."""

    code = "config_invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
