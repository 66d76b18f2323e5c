"""A diff for people: counts per type, then a line per entity and per changed property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from omnigraph.lang.quoting import escape_unprintable, sanitize_text

if TYPE_CHECKING:
    from omnigraph.engine.commit import Commit
    from omnigraph.engine.diff.graph_diff import Diff
    from omnigraph.engine.entity_changes import EntityChange


# A printed diff shows so many changes; the counts are always complete.
SHOWN_MAX: Final = 20
_SIGNS: Final = {"insert": "+", "update": "~", "delete": "-"}
_ENDS: Final = {"from": "@src", "to": "@dst"}

# A notebook shows so many changes; the counts are always complete.
HTML_CHANGES_MAX: Final = 100
_COLOURS: Final = {"insert": "#1a7f37", "update": "#9a6700", "delete": "#cf222e"}
_HEAD: Final = "<tr><th>change</th><th>type</th><th>id</th><th>property</th><th>before</th>\
<th>after</th></tr>"


def format_lines(diff: Diff, *, changes_max: int | None) -> Iterator[str]:
    """The lines of a diff, with so many changes, or with all of them if None."""
    yield f"{format_commit(diff.old)} -> {format_commit(diff.new)}"
    if not diff:
        yield "no changes"
        return
    if diff.schema_changes:
        yield from ("", "schema", *map(escape_unprintable, diff.schema_changes))
    if diff.summary:
        yield ""
        yield from _format_summary(diff)
    if diff.summary and changes_max != 0:
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
    entity = f"{escape_unprintable(change.type_name)} {sanitize_text(change.id)}"
    yield f"{_SIGNS[change.op]} {change.kind} {entity}"
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
        texts = [f"+{counts.inserted}", f"~{counts.updated}", f"-{counts.deleted}"]
        shown_counts = "  ".join(text.rjust(6) for text in texts)
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


def render_html(diff: Diff, *, changes_max: int | None) -> str:
    """A piece of HTML that needs no style sheet and runs no script."""
    return "".join(render_html_parts(diff, changes_max=changes_max))


def render_html_parts(diff: Diff, *, changes_max: int | None) -> Iterator[str]:
    """The same, one part after the other, so that it need not be in memory as a whole."""
    yield '<div class="omnigraph-diff">'
    yield f"<p>{escape(format_commit(diff.old))} &rarr; {escape(format_commit(diff.new))}</p>"
    if not diff:
        yield "<p>no changes</p>"
    if diff.schema_changes:
        yield f"<pre>{escape(chr(10).join(diff.schema_changes))}</pre>"
    if diff.summary:
        yield _render_summary(diff)
        yield f"<table><thead>{_HEAD}</thead><tbody>"
        yield from map(_render_rows, islice(diff, changes_max))
        yield "</tbody></table>"
    left = 0 if changes_max is None else len(diff) - changes_max
    if left > 0:
        yield f"<p>… and {left} more</p>"
    yield "</div>"


def _render_summary(diff: Diff) -> str:
    head = "<tr><th>type</th><th>inserted</th><th>updated</th><th>deleted</th></tr>"
    rows = "".join(
        f"<tr><td>{each.kind} {escape(each.type_name)}</td><td>{each.counts.inserted}</td>"
        f"<td>{each.counts.updated}</td><td>{each.counts.deleted}</td></tr>"
        for each in diff.summary
    )
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _render_rows(change: EntityChange) -> str:
    """A row per property that changed; the first one names the entity."""
    values = list(list_changed_values(change)) or [("", None, None)]
    span = f' rowspan="{len(values)}"' if len(values) > 1 else ""
    names = (
        f'<td{span} style="color:{_COLOURS[change.op]}">{change.op}</td>'
        f"<td{span}>{change.kind} {escape(change.type_name)}</td>"
        f"<td{span}>{escape(change.id)}</td>"
    )
    rows = [
        f"<td>{escape(name)}</td>{_render_cell(old)}{_render_cell(new)}"
        for name, old, new in values
    ]
    return "".join(f"<tr>{names if not at else ''}{row}</tr>" for at, row in enumerate(rows))


def _render_cell(value: Any) -> str:  # Any: a JSON value
    return "<td></td>" if value is None else f"<td>{escape(format_value(value))}</td>"
