"""Merges for people and programs: what was done, and conflicts with their three states."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.views.output_streams import align_columns, format_count
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph.engine import MergePlan, MergeResult
    from omnigraph.engine.write_results import MergeSummary
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
        yield from _format_done(result.done)
        commit = "" if result.commit is None else f": commit {result.commit.id}"
        yield _format_sentence(result) + commit
        if result.branch_deleted:
            yield f"deleted branch {escape_unprintable(result.source)}"


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """What a merge, a revert or a cherry-pick would do."""

    plan: MergePlan

    def to_json(self) -> JsonObject:
        """The document of the plan."""
        return self.plan.to_json()

    def to_lines(self) -> Iterator[str]:
        """What would change by type, and every conflict."""
        plan = self.plan
        yield from _format_done(plan.done)
        yield from format_conflicts(plan.conflicts, plan.conflict_count)
        yield f"outcome: {plan.outcome}, from base {plan.base.id}"
        if plan.conflict_count:
            yield f"{format_count(plan.conflict_count, 'conflict')}: nothing would be written"
        else:
            yield "nothing was committed: this was a dry run"


def format_conflicts(conflicts: Sequence[EntityConflict], count: int) -> Iterator[str]:
    """Each conflict with what every side has, and how many more there are."""
    shown = conflicts[:_CONFLICTS_MAX]
    for conflict in shown:
        yield escape_unprintable(f"{conflict.kind}: {conflict.message}")
        yield from _format_states(conflict)
    if count > len(shown):
        yield f"… and {count - len(shown)} more"


def _format_states(conflict: EntityConflict) -> Iterator[str]:
    sides = (conflict.base, conflict.ours, conflict.theirs)
    names = sorted({name for side in sides if side is not None for name in side})
    if not names:
        return
    rows: list[tuple[str, ...]] = [("", "base", "ours", "theirs")]
    rows += [(f"  {name}", *(_format_value(side, name) for side in sides)) for name in names]
    yield from (escape_unprintable(line) for line in align_columns(rows))


def _format_value(side: Mapping[str, object] | None, name: str) -> str:
    if side is None:
        return "-"
    text = json.dumps(side.get(name), ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[: _VALUE_CHARS_MAX - 1]}…"


def _format_done(done: MergeSummary) -> Iterator[str]:
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
    yield from align_columns(rows, right={2, 3, 4})
    yield from (f"schema: {escape_unprintable(step)}" for step in done.schema_steps)
    yield from (f"warning: {escape_unprintable(warning)}" for warning in done.warnings)
    for entity in done.mixed:
        yield escape_unprintable(f"merged from both sides: {entity}")
    if done.mixed_count > len(done.mixed):
        yield f"… and {done.mixed_count - len(done.mixed)} more from both sides"
    yield from (f"preferred {side} in {kind}" for kind, side in done.preferred.items())


def _format_sentence(result: MergeResult) -> str:
    text = _SENTENCES[result.outcome]
    return text.format(
        source=escape_unprintable(result.source), target=escape_unprintable(result.target)
    )
