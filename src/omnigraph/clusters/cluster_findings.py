"""What is wrong with a configuration, a plan or a stored state: findings with codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from omnigraph.errors import CompileError, Problem

_CODES: Final = {
    "duplicate_key": "duplicate_yaml_key",
    "unreadable_file": "cluster_config_read_error",
    "invalid_yaml": "invalid_cluster_yaml",
    "unknown_field": "invalid_cluster_yaml",
    "missing_field": "invalid_cluster_yaml",
    "invalid_value": "invalid_cluster_yaml",
}


class Severity(StrEnum):
    """Whether a finding stops a verb."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """One finding: its code, what it is about, and where it is written if that is known."""

    code: str
    severity: Severity
    path: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of a finding; an unknown place is left out."""
        document = {
            "code": self.code,
            "severity": str(self.severity),
            "path": self.path,
            "message": self.message,
        }
        place = {"file": self.file, "line": self.line, "column": self.column}
        return document | {name: value for name, value in place.items() if value is not None}

    def __str__(self) -> str:
        where = ":".join(str(each) for each in (self.file, self.line, self.column) if each)
        return f"{where or self.path}: {self.message} [{self.code}]"


def convert_diagnostics(error: CompileError, code: str, path: str) -> Iterator[ClusterFinding]:
    """The errors of a text as findings, each with its place."""
    for each in error.diagnostics:
        if each.severity == "error":
            place = each.position
            yield ClusterFinding(
                code,
                Severity.ERROR,
                path,
                f"{each.code}: {each.message}" + (f" ({each.hint})" if each.hint else ""),
                each.source.name,
                place.line,
                place.column,
            )


def convert_problem(problem: Problem) -> ClusterFinding:
    """A problem of a file as a finding, with its place."""
    message = problem.message if problem.hint is None else f"{problem.message} ({problem.hint})"
    return ClusterFinding(
        _CODES.get(problem.code, problem.code),
        Severity.ERROR,
        problem.path or "",
        message,
        problem.file,
        problem.line,
        problem.column,
    )


@dataclass
class ClusterFindings:
    """The findings of one verb, in the order they came up."""

    found: list[ClusterFinding] = field(default_factory=list)

    def add_error(self, code: str, path: str, message: str) -> None:
        """Report what makes the verb fail."""
        self.found.append(ClusterFinding(code, Severity.ERROR, path, message))

    def add_warning(self, code: str, path: str, message: str) -> None:
        """Report what a reader should know."""
        self.found.append(ClusterFinding(code, Severity.WARNING, path, message))

    def extend(self, findings: Iterable[ClusterFinding]) -> None:
        """Take over findings of others."""
        self.found.extend(findings)

    @property
    def has_errors(self) -> bool:
        """Whether one of them is an error."""
        return any(each.severity is Severity.ERROR for each in self.found)


class ClusterStopped(Exception):
    """A verb that cannot go on: the finding says why."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.finding = ClusterFinding(code, Severity.ERROR, path, message)
