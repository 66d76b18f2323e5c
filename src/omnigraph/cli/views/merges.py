"""Merges for people and programs: what was done, and conflicts with their three states."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.views.alignment import aligned
from omnigraph.cli.views.streams import counted
from omnigraph.diagnostics.shown import escaped

if TYPE_CHECKING:
    from omnigraph.engine import MergePlan, MergeResult
    from omnigraph.engine.merge_results import MergeDone
    from omnigraph.errors import EntityConflict

JsonObject = dict[str, Any]  # Any: a JSON document

# A screen of conflicts; `--json` has them all.
_CONFLICTS_MAX: Final = 20
_VALUE_CHARS_MAX: Final = 60
_SENTENCES: Final = {
    "already_up_to_date": "{target} has everything of {source} already",
    "fast_forward": "fast-forwarded {target} to {source}",
    "merged": "merged {source} into {target}",
    "reverted": "reverted {source} on {target}",
    "cherry_picked": "cherry-picked {source} onto {target}",
    "nothing_to_do": "nothing of {source} is left to do on {target}",
}


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge, a revert or a cherry-pick did."""

    result: MergeResult

    def to_json(self) -> JsonObject:
        """The document of the result."""
        return self.result.to_json()

    def to_lines(self) -> Iterator[str]:
        """What changed by type, and the commit."""
        result = self.result
        yield from _done_lines(result.done)
        commit = "" if result.commit is None else f": commit {result.commit.id}"
        yield _sentence(result) + commit
        if result.branch_deleted:
            yield f"deleted branch {escaped(result.source)}"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a merge, a revert or a cherry-pick would do."""

    plan: MergePlan

    def to_json(self) -> JsonObject:
        """The document of the plan."""
        return self.plan.to_json()

    def to_lines(self) -> Iterator[str]:
        """What would change by type, and every conflict."""
        plan = self.plan
        yield from _done_lines(plan.done)
        yield from conflict_lines(plan.conflicts, plan.conflict_count)
        yield f"outcome: {plan.outcome}, from base {plan.base.id}"
        if plan.conflict_count:
            yield f"{counted(plan.conflict_count, 'conflict')}: nothing would be written"
        else:
            yield "nothing was committed: this was a dry run"


def conflict_lines(conflicts: Sequence[EntityConflict], count: int) -> Iterator[str]:
    """Each conflict with what every side has, and how many more there are."""
    shown = conflicts[:_CONFLICTS_MAX]
    for conflict in shown:
        yield escaped(f"{conflict.kind}: {conflict.message}")
        yield from _state_lines(conflict)
    if count > len(shown):
        yield f"… and {count - len(shown)} more"


def _state_lines(conflict: EntityConflict) -> Iterator[str]:
    sides = (conflict.base, conflict.ours, conflict.theirs)
    names = sorted({name for side in sides if side is not None for name in side})
    if not names:
        return
    rows: list[tuple[str, ...]] = [("", "base", "ours", "theirs")]
    rows += [(f"  {name}", *(_value(side, name) for side in sides)) for name in names]
    yield from (escaped(line) for line in aligned(rows))


def _value(side: Mapping[str, object] | None, name: str) -> str:
    if side is None:
        return "-"
    text = json.dumps(side.get(name), ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[: _VALUE_CHARS_MAX - 1]}…"


def _done_lines(done: MergeDone) -> Iterator[str]:
    rows = [
        (
            str(key.kind),
            key.name,
            f"+{counts.inserted}",
            f"~{counts.updated}",
            f"-{counts.deleted}",
        )
        for key, counts in done.counts.items()
    ]
    yield from aligned(rows, right={2, 3, 4})
    yield from (f"schema: {escaped(step)}" for step in done.schema_steps)
    yield from (f"warning: {escaped(warning)}" for warning in done.warnings)
    yield from (f"preferred {side} in {kind}" for kind, side in done.preferred.items())


def _sentence(result: MergeResult) -> str:
    text = _SENTENCES[result.outcome]
    return text.format(source=escaped(result.source), target=escaped(result.target))
