"""Kinds of conflicts, and the side that is preferred in each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, assert_never

from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.spellcheck import suggest_similar

DIVERGENT_INSERT: Final = "divergent_insert"
DIVERGENT_UPDATE: Final = "divergent_update"
DELETE_VS_UPDATE: Final = "delete_vs_update"

# What can be decided by choosing a side. A broken rule stays broken with either side.
PREFERABLE: Final = (DIVERGENT_INSERT, DIVERGENT_UPDATE, DELETE_VS_UPDATE)
OURS: Final = "ours"
THEIRS: Final = "theirs"
_SIDES: Final = (OURS, THEIRS)


def parse_preferences(prefer: str | Mapping[str, str] | None) -> dict[str, str]:
    """The preferred side by kind of conflict; one side for all kinds, or a side for each."""
    if prefer is None:
        return {}
    if isinstance(prefer, str):
        return dict.fromkeys(PREFERABLE, _require_side(prefer))
    if not isinstance(prefer, Mapping):
        raise InvalidArgumentError(
            "prefer",
            f"a {type(prefer).__name__} is not a side",
            hint="pass 'ours', 'theirs', or a side for each kind of conflict",
        )
    return {_require_kind(kind): _require_side(side) for kind, side in prefer.items()}


def _require_kind(kind: object) -> str:
    if isinstance(kind, str) and kind in PREFERABLE:
        return kind
    known = ", ".join(f"'{each}'" for each in PREFERABLE)
    raise InvalidArgumentError(
        "prefer",
        f"no side can be preferred in conflicts of kind '{kind}', only in {known}",
        hint=suggest_similar(str(kind), PREFERABLE),
    )


def _require_side(side: object) -> str:
    if isinstance(side, str) and side in _SIDES:
        return side
    raise InvalidArgumentError("prefer", f"'{side}' is neither 'ours' nor 'theirs'")


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
