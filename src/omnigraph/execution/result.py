"""The result of a read: Arrow inside, and every form that callers like to have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.errors import ExecutionError, InvalidArgumentError, LibraryMissingError
from omnigraph.html_views import display_view, render_table, wrap_view
from omnigraph.lang.quoting import escape_unprintable
from omnigraph.query.logical_plan import ResultColumn
from omnigraph.rows.json_encoding import encode_json_values

# A notebook shows so many rows; the count is always shown.
HTML_ROWS_MAX = 50
# A shell shows fewer, and less of each value.
TEXT_ROWS_MAX = 20
CELL_CHARACTERS_MAX = 40
# A vector or a list is known by its first elements.
LIST_ITEMS_MAX = 8
_ITEMS_SHOWN = 3


class Result:
    """Rows in the order of the query, if it has one; never changes.

    `commit_id` is the commit that they were read from. Of a query with `after $cursor`, which
    `has_cursor`, `cursor` asks for the page after this one; it is None for the last page. Of one
    with `total`, `total` counts the rows of all pages.
    """

    def __init__(
        self,
        columns: tuple[ResultColumn, ...],
        rows: pa.Table,
        *,
        commit_id: str | None = None,
        total: int | None = None,
        cursor: str | None = None,
        has_cursor: bool = False,
    ) -> None:
        self.columns = columns
        self._rows = rows
        self.commit_id = commit_id
        self.total = total
        self.cursor = cursor
        self.has_cursor = has_cursor

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; DateTimes are timestamps, a bare node is a struct."""
        return self._rows

    def to_pandas(self) -> Any:  # pandas is optional, and so is its type
        """The rows as a pandas data frame.

        Integers and booleans with nulls keep their type, as the nullable types of pandas.
        """
        try:
            # Only who asks for pandas needs it.
            import pandas  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as failure:
            raise LibraryMissingError("pandas") from failure
        frame = self._rows.to_pandas()
        for name, column in zip(self._rows.column_names, self._rows.columns, strict=True):
            kind = column.type
            if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
                is_boolean = pa.types.is_boolean(kind)
                nullable = (
                    "boolean" if is_boolean else str(kind).replace("i", "I").replace("u", "U")
                )
                dtype = pandas.api.types.pandas_dtype(nullable)
                frame[name] = column.to_pandas(types_mapper=lambda _, found=dtype: found)
        return frame

    def to_polars(self) -> Any:  # polars is optional, and so is its type
        """The rows as a polars data frame."""
        try:
            # Only who asks for polars needs it.
            import polars  # noqa: PLC0415
        except ImportError as failure:
            raise LibraryMissingError("polars") from failure
        return polars.from_arrow(self._rows)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of Python values."""
        try:
            rows: list[dict[str, Any]] = self._rows.to_pylist()
        except (OverflowError, ValueError) as failure:
            raise ExecutionError(
                f"a Date is outside the years of Python's dates: {failure}",
                hint="use to_arrow() or to_json_rows()",
            ) from failure
        return rows

    def to_json_rows(self) -> list[dict[str, Any]]:
        """The rows as `json.dumps` takes them; nulls are explicit."""
        names = self._rows.column_names
        if not names:
            return [{} for _ in range(len(self))]
        columns = [encode_json_values(column) for column in self._rows.itercolumns()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def describe_page(self) -> dict[str, Any]:
        """What a document has beside the rows: the cursor of the next page, and the total."""
        cursor = {"cursor": self.cursor} if self.has_cursor else {}
        return cursor if self.total is None else {**cursor, "total": self.total}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __len__(self) -> int:
        count: int = self._rows.num_rows
        return count

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def show(self, rows: int = TEXT_ROWS_MAX) -> None:
        """Show the first rows: a notebook displays a table, anything else prints one."""
        if rows < 0:
            raise InvalidArgumentError("rows", f"{rows!r} is not a number of rows")
        display_view(self._render_html(rows), self._format_text(rows))

    def __repr__(self) -> str:
        """The first rows as a table, for a shell."""
        return self._format_text(TEXT_ROWS_MAX)

    def _repr_html_(self) -> str:
        return self._render_html(HTML_ROWS_MAX)

    def _format_text(self, rows_max: int) -> str:
        lines = [[column.name for column in self.columns]]
        lines += [[_format_text(value) for value in row] for row in self._take_rows(rows_max)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        shown = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        rest = max(0, len(self) - rows_max)
        more = f", {rest} more not shown" if rest else ""
        count = f"{len(self)} row{'' if len(self) == 1 else 's'}{more}"
        return "\n".join([*(shown if self.columns else []), f"({count})"])

    def _render_html(self, rows_max: int) -> str:
        rows = [
            [None if value is None else _format_value(value) for value in row]
            for row in self._take_rows(rows_max)
        ]
        names = [column.name for column in self.columns]
        return wrap_view(render_table(names, rows, shown=len(rows), total=len(self)))

    def _take_rows(self, rows_max: int) -> list[list[Any]]:  # Any: JSON values
        first = Result(self.columns, self._rows.slice(0, rows_max))
        return [list(row.values()) for row in first.to_json_rows()]


def _format_text(value: Any) -> str:  # Any: a JSON value
    """A value in a cell of a shell: short, and on one line."""
    text = "" if value is None else escape_unprintable(_format_value(value))
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[: CELL_CHARACTERS_MAX - 1]}…"


def _format_value(value: Any) -> str:  # Any: a JSON value
    """A value with long lists abbreviated, at any depth."""
    match value:
        case list() if len(value) > LIST_ITEMS_MAX:
            first = ", ".join(map(_format_value, value[:_ITEMS_SHOWN]))
            return f"[{first}, … {len(value)} values]"
        case list():
            return f"[{', '.join(map(_format_value, value))}]"
        case dict():
            members = (f"{name}: {_format_value(each)}" for name, each in value.items())
            return f"{{{', '.join(members)}}}"
        case _:
            return str(value)
