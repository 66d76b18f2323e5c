"""What is said of conflicts: a merge has two sides, a revert and a cherry-pick a commit."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, assert_never

from omnigraph.writers.merge.preference import (
    DELETE_VS_UPDATE,
    DIVERGENT_INSERT,
    DIVERGENT_UPDATE,
)


class MergeAction(StrEnum):
    """What brings a change to a branch."""

    MERGE = "merge"
    REVERT = "revert"
    CHERRY_PICK = "cherry-pick"


# Of each action and kind of conflict: what happened if both have the entity or theirs has not, and
# if ours has not.
_ROW_MESSAGES: Final = {
    MergeAction.MERGE: {
        DIVERGENT_INSERT: ("was inserted on both sides with different values", ""),
        DIVERGENT_UPDATE: ("was changed on both sides", ""),
        DELETE_VS_UPDATE: (
            "was changed by ours and deleted by theirs",
            "was deleted by ours and changed by theirs",
        ),
    },
    MergeAction.REVERT: {
        DIVERGENT_INSERT: ("was deleted by the commit, and is there again with other values", ""),
        DIVERGENT_UPDATE: ("was changed by the commit, and again since", ""),
        DELETE_VS_UPDATE: (
            "was inserted by the commit, and changed since",
            "was changed by the commit, and deleted since",
        ),
    },
    MergeAction.CHERRY_PICK: {
        DIVERGENT_INSERT: (
            "was inserted by the commit, and is on this branch with other values",
            "",
        ),
        DIVERGENT_UPDATE: (
            "was changed by the commit, and has other values on this branch",
            "",
        ),
        DELETE_VS_UPDATE: (
            "was deleted by the commit, and has other values on this branch",
            "was changed by the commit, and is not on this branch",
        ),
    },
}


def format_row_message(action: MergeAction, kind: str, entity: str, *, is_ours_gone: bool) -> str:
    """An entity that was left in two states."""
    return f"{entity} {_ROW_MESSAGES[action][kind][is_ours_gone]}"


def format_orphan_message(
    action: MergeAction, edge: str, node: str, *, is_edge_theirs: bool
) -> str:
    """An edge whose node the merged state does not have; ours or theirs has brought the edge."""
    match action:
        case MergeAction.MERGE if is_edge_theirs:
            return f"{edge} of theirs needs {node}, which ours deleted"
        case MergeAction.MERGE:
            return f"{edge} of ours needs {node}, which theirs deleted"
        case MergeAction.REVERT if is_edge_theirs:
            return f"{edge} would come back and needs {node}, which is not on this branch"
        case MergeAction.REVERT:
            return f"{edge} needs {node}, which the commit inserted and the revert would delete"
        case MergeAction.CHERRY_PICK if is_edge_theirs:
            return f"{edge} of the commit needs {node}, which is not on this branch"
        case MergeAction.CHERRY_PICK:
            return f"{edge} of this branch needs {node}, which the commit deleted"
        case _:
            assert_never(action)


def format_unique_message(action: MergeAction, message: str, holder: str) -> str:
    """A unique value that another entity of ours holds."""
    ours = "ours" if action is MergeAction.MERGE else "this branch"
    return f"{message}, which {ours} has in {holder}"
