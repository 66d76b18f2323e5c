"""Which side wins where both changed an entity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.diagnostics import suggest_similar
from omnigraph.errors import InvalidArgumentError

DIVERGENT_INSERT: Final = "divergent_insert"
DIVERGENT_UPDATE: Final = "divergent_update"
DELETE_VS_UPDATE: Final = "delete_vs_update"
# What can be decided by choosing a side. A broken rule is broken, whoever is preferred.
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
            f"a {type(prefer).__name__} is no side",
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
