"""Rows of a query in five formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.cells import cell_len, chop_cells

from omnigraph.cli.views.output_streams import (
    align_columns,
    format_count,
    measure_columns,
    pad_text,
)
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph.execution.optimizer.explain_plan import Explained


# A longer cell of a table is cut, so that a row stays readable in a terminal.
CELL_WIDTH_MAX: Final = 80

# A narrower column would show nothing but dots.
CELL_WIDTH_MIN: Final = 8
_CSV_QUOTED: Final = re.compile(r'[,"\r\n]')
Row: TypeAlias = Mapping[str, Any]  # Any: a JSON value
_TITLES: Final = ("operator", "access", "index", "estimated", "rows", "ms", "detail")
_NUMBERS: Final = (3, 4, 5)


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The answer of a query: its rows, and what they were read from.

    A statement about the graph itself, such as `branch list`, reads no branch and no commit.
    """

    query_name: str
    target: Mapping[str, str | None] | None
    columns: Sequence[str]
    rows: Sequence[Row]
    commit_id: str | None
    # The cursor of the next page and the number of all rows, of a query that asks for them.
    page: Mapping[str, Any] = field(default_factory=dict)  # Any: a JSON value

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of a read; a query without columns has none in its document."""
        return {
            "query_name": self.query_name,
            "target": None if self.target is None else dict(self.target),
            "row_count": len(self.rows),
            **({"columns": list(self.columns)} if self.columns else {}),
            **self.page,
            "rows": list(self.rows),
            "graph_commit_id": self.commit_id,
        }

    @property
    def header(self) -> str:
        """Where the rows are from, in one line."""
        count = format_count(len(self.rows), "row")
        if (total := self.page.get("total")) is not None:
            count += f" of {total:,}"
        if self.target is None:
            return f"{count} via {self.query_name}"
        place = next(f"{kind} {name}" for kind, name in self.target.items() if name is not None)
        return f"{count} from {place} via {self.query_name}"

    def to_footer(self) -> Iterator[str]:
        """How to ask for the next page, if there is one."""
        if (cursor := self.page.get("cursor")) is not None:
            yield f"cursor of the next page: {cursor}"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How wide a column of a table may be, and whether a longer value goes on below."""

    width: int = CELL_WIDTH_MAX
    is_wrapped: bool = False

    def lines_of(self, text: str) -> list[str]:
        """A value as the lines of its cell."""
        if self.is_wrapped:
            return _wrap_text(escape_unprintable(text), self.width)
        # Cut before and after escaping: a long text is not escaped whole only to be cut.
        return [_truncate_text(escape_unprintable(text[: self.width + 1]), self.width)]


def format_table(rows: ResultRows, layout: TableLayout | None = None) -> Iterator[str]:
    """A header, then columns under each other."""
    yield escape_unprintable(rows.header)
    if not rows.columns:
        return
    layout = layout or TableLayout()
    names = [layout.lines_of(name) for name in rows.columns]
    cells = [
        [layout.lines_of(_format_cell(row.get(name))) for name in rows.columns] for row in rows.rows
    ]
    lines = [line for row in cells for line in _split_row_lines(row)]
    head = _split_row_lines(names)
    widths = measure_columns([*head, *lines])
    yield from (_format_table_row(line, widths) for line in head)
    yield "-+-".join("-" * width for width in widths)
    yield from (_format_table_row(line, widths) for line in lines)
    yield from rows.to_footer()


def format_kv(rows: ResultRows) -> Iterator[str]:
    """A header, then a line for every value, with an empty line between rows."""
    yield escape_unprintable(rows.header)
    if not rows.rows:
        yield "(no rows)"
    for number, row in enumerate(rows.rows, 1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for name in rows.columns:
            yield f"{escape_unprintable(name)}: {escape_unprintable(_format_cell(row.get(name)))}"
    yield from rows.to_footer()


def format_csv(rows: ResultRows) -> Iterator[str]:
    """The names of the columns, then a line for every row."""
    yield ",".join(map(_quote_csv, rows.columns))
    for row in rows.rows:
        yield ",".join(_quote_csv(_format_cell(row.get(name))) for name in rows.columns)


def format_jsonl(rows: ResultRows) -> Iterator[str]:
    """A line about the rows, then a document for every row."""
    yield _encode_compact(
        {
            "kind": "metadata",
            "query_name": rows.query_name,
            "target": None if rows.target is None else dict(rows.target),
            "row_count": len(rows.rows),
            **rows.page,
        }
    )
    yield from map(_encode_compact, rows.rows)


LINE_FORMATS: Final[Mapping[str, Callable[[ResultRows], Iterator[str]]]] = {
    "kv": format_kv,
    "csv": format_csv,
    "jsonl": format_jsonl,
}


def _format_table_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " | ".join(map(pad_text, cells, widths)).rstrip()


def _split_row_lines(cells: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """A row of cells with several lines each, as rows of texts."""
    return list(zip_longest(*cells, fillvalue=""))


def _truncate_text(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return chop_cells(text, width - 1)[0] + "…"


def _wrap_text(text: str, width: int) -> list[str]:
    return chop_cells(text, width) or [""]


def _format_cell(value: object) -> str:
    return value if isinstance(value, str) else _encode_compact(value)


def _encode_compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote_csv(text: str) -> str:
    if _CSV_QUOTED.search(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Explanation:
    """The operators of a query, from its result down."""

    query_name: str
    target: Mapping[str, str | None]
    explained: Explained
    commit_id: str

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of `explain`."""
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "operators": self.explained.to_dicts(),
            "graph_commit_id": self.commit_id,
        }

    def to_lines(self) -> Iterator[str]:
        """An operator per line, under titles."""
        place = next(f"{kind} {name}" for kind, name in self.target.items() if name is not None)
        yield f"plan of {self.query_name} on {place}"
        rows = [
            (
                row.operator,
                row.access,
                row.index,
                _format_number(row.estimated_rows),
                _format_number(row.actual_rows),
                "" if row.time_ms is None else f"{row.time_ms:.2f}",
                row.detail,
            )
            for row in self.explained.rows
        ]
        yield from align_columns([_TITLES, *rows], right=_NUMBERS)


def _format_number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
