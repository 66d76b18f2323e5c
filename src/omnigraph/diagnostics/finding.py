"""A finding about something that has no place in a text."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.diagnostics.codes import CODES
from omnigraph.diagnostics.diagnostic import Severity
from omnigraph.diagnostics.shown import sanitize_message


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
