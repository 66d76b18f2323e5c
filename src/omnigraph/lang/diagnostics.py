"""One finding about a text, and the collector that compilers report to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.quoting import sanitize_message
from omnigraph.lang.source_text import Position, Source, Span
from omnigraph.lang.spellcheck import suggest_similar

# What compilers call every few steps: it raises to end a compilation that may not go on.
Poll: TypeAlias = Callable[[], None]

# A broken file of any size must stay readable: later findings show when these are mended.
DIAGNOSTICS_MAX = 200


class Severity(StrEnum):
    """How much a finding matters: an error stops the compiler, the others do not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(StrEnum):
    """Whether a suggested edit may be applied without a person looking at it."""

    MACHINE_APPLICABLE = "machine_applicable"
    NEEDS_REVIEW = "needs_review"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters of a span."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Edits that would mend a finding."""

    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: its code, severity and message, where it is, and what to do about it."""

    code: str
    severity: Severity
    message: str
    span: Span
    source: Source = field(compare=False, repr=False)
    hint: str | None = None
    suggestion: Suggestion | None = None

    def __post_init__(self) -> None:
        assert self.code in CODES, f"diagnostic code {self.code} is not registered"
        # Messages quote names of the source, which may be of any length and of any characters.
        object.__setattr__(self, "message", sanitize_message(self.message))
        if self.hint is not None:
            object.__setattr__(self, "hint", sanitize_message(self.hint))

    @property
    def position(self) -> Position:
        """Where the finding starts."""
        return self.source.locate(self.span.start)

    def __str__(self) -> str:
        place = self.position
        return f"{self.source.name}:{place.line}:{place.column}: {self.code}: {self.message}"


class Collector:
    """Gathers the findings of one compilation, bounded and in source order.

    The stages of the compilation call `poll` for every clause and expression.
    """

    def __init__(
        self, source: Source, found: Iterable[Diagnostic] = (), *, poll: Poll = lambda: None
    ) -> None:
        self.source = source
        self.poll = poll
        self._found: list[Diagnostic] = []
        for diagnostic in found:
            self.add(diagnostic)

    def report_error(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        hint: str | None = None,
        suggestion: Suggestion | None = None,
    ) -> None:
        """Report something that makes the text unusable."""
        self.add(Diagnostic(code, Severity.ERROR, message, span, self.source, hint, suggestion))

    def report_warning(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        hint: str | None = None,
        suggestion: Suggestion | None = None,
    ) -> None:
        """Report something that works but should be changed."""
        self.add(Diagnostic(code, Severity.WARNING, message, span, self.source, hint, suggestion))

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep a finding, unless the bound is reached; errors are never lost to warnings."""
        if len(self._found) < DIAGNOSTICS_MAX or (
            diagnostic.severity is Severity.ERROR and not self.has_errors
        ):
            self._found.append(diagnostic)

    def suggest_similar(self, word: str, candidates: Iterable[str]) -> str | None:
        """A hint for an unknown name, unless the finding would not be kept."""
        return None if len(self._found) >= DIAGNOSTICS_MAX else suggest_similar(word, candidates)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(found.severity is Severity.ERROR for found in self._found)

    def list_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every kept finding once, in source order."""
        unique = dict.fromkeys(self._found)
        return tuple(sorted(unique, key=lambda found: (found.span.start, found.code)))


@dataclass(frozen=True, slots=True)
class Finding:
    """A code, a severity and a message about an entity such as `node:City.size`."""

    code: str
    severity: Severity
    message: str
    entity: str

    def __post_init__(self) -> None:
        assert self.code in CODES, f"diagnostic code {self.code} is not registered"
        object.__setattr__(self, "message", sanitize_message(self.message))

    def __str__(self) -> str:
        return f"{self.severity}[{self.code}]: {self.entity}: {self.message}"
