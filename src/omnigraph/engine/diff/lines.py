"""A diff for people: counts per type, then a line per entity and per changed property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from omnigraph.diagnostics.shown import escape_unprintable, sanitize_text

if TYPE_CHECKING:
    from omnigraph.engine.commit import Commit
    from omnigraph.engine.diff.diff import Diff
    from omnigraph.engine.entity_change import EntityChange

# Somebody who prints a diff sees so many changes; the counts are always told.
SHOWN_MAX: Final = 20
_SIGNS: Final = {"insert": "+", "update": "~", "delete": "-"}
_ENDS: Final = {"from": "@src", "to": "@dst"}


def format_lines(diff: Diff, *, changes_max: int | None) -> Iterator[str]:
    """The lines of a diff, with so many changes, or with all of them if None."""
    yield f"{format_commit(diff.old)} -> {format_commit(diff.new)}"
    if not diff:
        yield "no changes"
        return
    if diff.schema_changes:
        yield from ("", "schema", *map(escape_unprintable, diff.schema_changes))
    if diff.parts:
        yield ""
        yield from _format_summary(diff)
    if diff.parts and changes_max != 0:
        yield ""
    for change in islice(diff, changes_max):
        yield from format_change(change)
    left = len(diff) - changes_max if changes_max else 0
    if left > 0:
        yield f"… and {left} more"


def format_commit(commit: Commit) -> str:
    """A commit for people: its branch, version and id."""
    return f"{escape_unprintable(commit.branch)} version {commit.version} ({commit.id})"


def format_change(change: EntityChange) -> Iterator[str]:
    """One change: a line for the entity, and one for each of its values that differ."""
    yield f"{_SIGNS[change.op]} {change.kind} {escape_unprintable(change.type_name)} {sanitize_text(change.id)}"
    for name, before, after in list_changed_values(change):
        yield f"    {escape_unprintable(name)}: {_format_change_values(change.op, before, after)}"


def list_changed_values(change: EntityChange) -> Iterator[tuple[str, Any, Any]]:
    """The properties and ends that differ, with their values before and after; None is absent."""
    before, after = _flatten_image(change.before), _flatten_image(change.after)
    for name in sorted({**before, **after}):
        old, new = before.get(name), after.get(name)
        # As texts: to Python both zeros are one, and so are 1 and true.
        if json.dumps(old) != json.dumps(new):
            yield name, old, new


def format_value(value: Any) -> str:  # Any: a JSON value
    """A value as it is shown: JSON, cut if it is long."""
    return sanitize_text(json.dumps(value, ensure_ascii=False))


def _format_summary(diff: Diff) -> Iterator[str]:
    summary = diff.summary
    width = max(len(escape_unprintable(each.type_name)) for each in summary)
    for each in summary:
        counts = each.counts
        told = [f"+{counts.inserted}", f"~{counts.updated}", f"-{counts.deleted}"]
        shown_counts = "  ".join(text.rjust(6) for text in told)
        yield f"{each.kind} {escape_unprintable(each.type_name).ljust(width)}  {shown_counts}"


def _format_change_values(op: str, before: Any, after: Any) -> str:  # Any: JSON values
    match op:
        case "insert":
            return format_value(after)
        case "delete":
            return format_value(before)
        case _:
            return f"{format_value(before)} -> {format_value(after)}"


def _flatten_image(image: Any) -> dict[str, Any]:  # Any: a JSON object
    """The properties of an image by name, and its ends as queries call them."""
    if image is None:
        return {}
    ends = {_ENDS[end]: id_ for end, id_ in image.get("endpoints", {}).items()}
    return {**ends, **image["properties"]}
