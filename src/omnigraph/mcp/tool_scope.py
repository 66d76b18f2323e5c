"""What the tools of one caller work on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from omnigraph.engine import Graph
from omnigraph.errors import PolicyDeniedError
from omnigraph.mcp.exposure import Exposure
from omnigraph.operations.graph_reads import ReadBounds
from omnigraph.operations.stored_queries import QueryCatalogue
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH

# A branch that no policy protects, to find out what is allowed on such ones.
_DRAFT: Final = "draft"
_BRANCHES: Final = (MAIN_BRANCH, _DRAFT)

# The acts of which one has to be allowed, so that a tool is offered.
READ_GRAPH: Final = (Act(Action.READ),)
READ_BRANCH: Final = tuple(Act(Action.READ, branch) for branch in _BRANCHES)
CHANGE: Final = tuple(Act(Action.CHANGE, branch) for branch in _BRANCHES)
CREATE_BRANCH: Final = tuple(Act(Action.BRANCH_CREATE, MAIN_BRANCH, name) for name in _BRANCHES)
DELETE_BRANCH: Final = tuple(Act(Action.BRANCH_DELETE, None, name) for name in _BRANCHES)
MERGE: Final = (
    Act(Action.BRANCH_MERGE, _DRAFT, MAIN_BRANCH),
    Act(Action.BRANCH_MERGE, MAIN_BRANCH, _DRAFT),
)
# Into a branch that policies may protect, and into one that they do not.
PROPOSE: Final = (
    Act(Action.PROPOSE, _DRAFT, MAIN_BRANCH),
    Act(Action.PROPOSE, MAIN_BRANCH, _DRAFT),
)
REVIEW: Final = (
    Act(Action.REVIEW, _DRAFT, MAIN_BRANCH),
    Act(Action.REVIEW, MAIN_BRANCH, _DRAFT),
)
APPLY_SCHEMA: Final = tuple(Act(Action.SCHEMA_APPLY, None, name) for name in _BRANCHES)


def _admit_always(nbytes: int) -> AbstractContextManager[object]:
    del nbytes
    return nullcontext()


@dataclass(frozen=True, slots=True)
class ToolScope:
    """A graph for its caller, with what is exposed of it."""

    graph: Graph
    catalogue: QueryCatalogue = field(default_factory=QueryCatalogue)
    exposure: Exposure = field(default_factory=Exposure)
    bounds: ReadBounds = field(default_factory=ReadBounds)
    # The graph for a check that shows its outcome alone, after the policy was asked.
    unguarded: Graph | None = None
    # Around a write of so many bytes: the bounds of a server for each actor.
    admit: Callable[[int], AbstractContextManager[object]] = _admit_always

    def may_do(self, acts: Collection[Act]) -> bool:
        """Whether one of some acts is allowed to the caller."""
        for act in acts:
            try:
                self.graph.authorize(act)
            except PolicyDeniedError:
                continue
            return True
        return False
