"""A diff for browsers and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from omnigraph.engine.diff.lines import format_commit, format_value, list_changed_values

if TYPE_CHECKING:
    from omnigraph.engine.diff.diff import Diff
    from omnigraph.engine.entity_change import EntityChange

# A notebook shows so many changes; the counts are always told.
HTML_CHANGES_MAX: Final = 100
_COLOURS: Final = {"insert": "#1a7f37", "update": "#9a6700", "delete": "#cf222e"}
_HEAD: Final = "<tr><th>change</th><th>type</th><th>id</th><th>property</th><th>before</th>\
<th>after</th></tr>"


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
    if diff.parts:
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
