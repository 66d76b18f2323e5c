"""The policy of a graph that is only read, on top of another policy or of none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.engine.gate import Gate
from omnigraph.errors import PolicyDeniedError
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.requirements import Requirement
from omnigraph.query.row_limits import RowLimits

_READS: Final = frozenset({Action.READ, Action.EXPORT, Action.INVOKE_QUERY, Action.GRAPH_LIST})


@dataclass(frozen=True, slots=True)
class ReadOnlyGate:
    """Refuses every act that writes; asks the gate below about the others."""

    below: Gate | None = None

    @property
    def limits_types(self) -> bool:
        """Whether an act may be allowed for some types and not for the whole graph."""
        return self.below is not None and self.below.limits_types

    def has_query_limits(self, actor: str | None) -> bool:
        """Whether rules name the stored queries that an actor may invoke."""
        return self.below is not None and self.below.has_query_limits(actor)

    def find_row_limits(self, actor: str | None, act: Act) -> RowLimits | None:
        """What an actor may see of types whose rows rules limit; None if he sees all rows."""
        return None if self.below is None else self.below.find_row_limits(actor, act)

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """What rules require of a proposal before its branch is merged into a target."""
        return () if self.below is None else self.below.list_requirements(target)

    def check(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed to an actor."""
        self._require_read(actor, act)
        if self.below is not None:
            self.below.check(actor, act)

    def check_some(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed, of at least one type."""
        self._require_read(actor, act)
        if self.below is not None:
            self.below.check_some(actor, act)

    def _require_read(self, actor: str | None, act: Act) -> None:
        if act.action not in _READS:
            raise PolicyDeniedError(
                f"the graph is served for reading only, which denies {act}",
                actor=actor,
                action=act.action,
            )
