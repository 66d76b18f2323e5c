"""Acts: an action, and the branches, the stored query and the type that it concerns."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Action(StrEnum):
    """What rules allow."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    PROPOSE = "propose"
    REVIEW = "review"
    INVOKE_QUERY = "invoke_query"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"
    CONFIG_MANAGE = "config_manage"


BRANCH_ACTIONS: Final = frozenset([Action.READ, Action.EXPORT, Action.CHANGE])
TARGET_ACTIONS: Final = frozenset(
    [
        Action.SCHEMA_APPLY,
        Action.BRANCH_CREATE,
        Action.BRANCH_DELETE,
        Action.BRANCH_MERGE,
        Action.PROPOSE,
        Action.REVIEW,
    ]
)
# What may be limited to types, and what a stored query may carry with it.
TYPE_ACTIONS: Final = BRANCH_ACTIONS | {Action.BRANCH_MERGE}
# What may be limited to the rows of a type that satisfy a condition.
ROW_ACTIONS: Final = frozenset([Action.READ, Action.EXPORT])
CARRIED_ACTIONS: Final = frozenset([Action.READ, Action.CHANGE])
SERVER_ACTIONS: Final = frozenset([Action.GRAPH_LIST, Action.CONFIG_MANAGE])


class Act(NamedTuple):
    """One question to a policy; a tuple, because decisions are looked up by it.

    `query` is the stored query that is invoked, or on whose behalf rows are read or changed.
    Without a `type_name` the act concerns the whole graph. `met` are the rules whose `requires` a
    proposal meets.
    """

    action: Action
    branch: str | None = None
    target_branch: str | None = None
    query: str | None = None
    type_name: str | None = None
    met: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (
            f"'{self.action}'",
            "" if self.branch is None else f" on branch '{self.branch}'",
            "" if self.target_branch is None else f" targeting branch '{self.target_branch}'",
            "" if self.type_name is None else f" of type '{self.type_name}'",
            "" if self.query is None else f" by query '{self.query}'",
        )
        return "".join(parts)
