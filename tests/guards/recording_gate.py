"""A gate that keeps what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.errors import PolicyDeniedError
from omnigraph.policy.acts import Act


@dataclass
class RecordingGate:
    """Allows or denies everything, and keeps what it was asked."""

    denies: bool
    limits_types: bool = False
    asked: list[Act] = field(default_factory=list)

    def has_query_limits(self, actor: str | None) -> bool:
        del actor
        return False

    def find_row_limits(self, actor: str | None, act: Act) -> None:
        del actor, act

    def list_requirements(self, target: str) -> tuple[()]:
        del target
        return ()

    def check(self, actor: str | None, act: Act) -> None:
        self.asked.append(act)
        if self.denies:
            raise PolicyDeniedError("denied", actor=actor, action=act.action)

    def check_some(self, actor: str | None, act: Act) -> None:
        self.check(actor, act)
