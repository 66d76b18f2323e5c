"""What a rule requires of a proposal before it allows a merge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requires:
    """The key `requires` of a rule; `approvers` is the group of its `from`, if it has one."""

    approvals: int = 0
    approvers: str | None = None
    author_may_approve: bool = False
    checks: tuple[str, ...] = ()
    threads_resolved: bool = False
    up_to_date: bool = False

    def __str__(self) -> str:
        return ", ".join(self._describe())

    def _describe(self) -> Iterator[str]:
        if self.approvals:
            noun = "approval" if self.approvals == 1 else "approvals"
            by = "" if self.approvers is None else f" from '{self.approvers}'"
            yield f"{self.approvals} {noun}{by}"
        yield from (f"check '{name}'" for name in self.checks)
        if self.threads_resolved:
            yield "all threads resolved"
        if self.up_to_date:
            yield "the newest commit of the target in the branch"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one rule requires, and the actors whose approvals count."""

    rule: str
    requires: Requires
    approvers: frozenset[str]
