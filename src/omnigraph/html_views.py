"""Tables and documents as pieces of HTML for notebooks.

Every text is escaped, no script runs, and no colour is set but shades of the colour of the text,
which is dark on light pages and light on dark ones. What is left out is counted.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

# Lists of a document have so many rows; how many there are is always said.
ROWS_MAX: Final = 50
_TEXT_CHARACTERS_MAX: Final = 200
_STYLE: Final = (
    "<style>"
    ".omnigraph-view table{border-collapse:collapse;margin:.3em 0}"
    ".omnigraph-view th,.omnigraph-view td{padding:.15em .6em;text-align:left;vertical-align:top;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 22%,transparent)}"
    ".omnigraph-view th{font-weight:600}"
    ".omnigraph-view p,.omnigraph-view .null{color:color-mix(in srgb,currentColor 60%,transparent)}"
    "</style>"
)


class HtmlDocument(ABC):
    """Something with a JSON document, which a notebook shows as tables."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The document."""

    def _repr_html_(self) -> str:
        return render_document(type(self).__name__, self.to_json())


def render_document(title: str, document: Mapping[str, Any]) -> str:
    """A document: its values as a table, and a table for each of its lists of objects."""
    return wrap_view(f"<b>{escape(title)}</b>", *_render_members(document))


def wrap_view(*parts: str) -> str:
    """Parts as one piece of HTML with its style."""
    return f'<div class="omnigraph-view">{_STYLE}{"".join(parts)}</div>'


def render_notice(title: str, text: str) -> str:
    """Something that cannot be shown, and why."""
    return wrap_view(f"<b>{escape(title)}</b>", f"<p>{escape(text)}</p>")


def render_table(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    shown: int,
    total: int,
    noun: str = "row",
) -> str:
    """Rows under the names of their columns; below them, how many there are and are shown."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(render_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if names else ""
    return f"{table}<p>{format_shown(shown, total, noun)}</p>"


def format_shown(shown: int, total: int, noun: str) -> str:
    """How many things there are, and how many of them are shown if some are not."""
    count = f"{total:,} {noun}{'' if total == 1 else 's'}"
    return count if shown >= total else f"{count}, of which the first {shown:,} are shown"


def render_cell(value: Any) -> str:
    """A value in a cell; a text is a text, anything else JSON."""
    if value is None:
        return '<td class="null">null</td>'
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    short = text if len(text) <= _TEXT_CHARACTERS_MAX else f"{text[:_TEXT_CHARACTERS_MAX]}…"
    return f"<td>{escape(short)}</td>"


def display_view(html: str, text: str) -> None:
    """Show a piece of HTML as the output of a cell, or write its text where there is no notebook.

    IPython is asked only if the program has it already.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        sys.stdout.write(f"{text}\n")
        return
    data = {"text/html": html, "text/plain": text}
    shell.display_pub.publish(data=data, metadata={})


def _render_members(document: Mapping[str, Any]) -> Iterable[str]:
    lists = {name: value for name, value in document.items() if _is_table(value)}
    values = [(name, value) for name, value in document.items() if name not in lists]
    if values:
        rows = "".join(
            f"<tr><th>{escape(name)}</th>{render_cell(value)}</tr>" for name, value in values
        )
        yield f"<table><tbody>{rows}</tbody></table>"
    for name, rows_ in lists.items():
        names = list(dict.fromkeys(member for row in rows_ for member in row))
        first = [[row.get(each) for each in names] for row in rows_[:ROWS_MAX]]
        yield f"<div>{escape(name)}</div>"
        yield render_table(names, first, shown=len(first), total=len(rows_))


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
