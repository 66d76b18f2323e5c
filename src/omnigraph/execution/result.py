"""The result of a read: Arrow inside, and every form that callers like to have."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.errors import ExecutionError, LibraryMissingError
from omnigraph.query.logical_plan import ResultColumn
from omnigraph.rows.json_encoding import encode_json_values

# A notebook shows so many rows; the count is always shown.
HTML_ROWS_MAX = 50


class Result:
    """Rows in the order of the query, if it has one; never changes."""

    def __init__(self, columns: tuple[ResultColumn, ...], rows: pa.Table) -> None:
        self.columns = columns
        self._rows = rows

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; DateTimes are timestamps, a bare node is a struct."""
        return self._rows

    def to_pandas(self) -> Any:  # pandas is optional, and so is its type
        """The rows as a pandas data frame."""
        try:
            return self._rows.to_pandas()
        except ImportError as failure:
            raise LibraryMissingError("pandas") from failure

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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __len__(self) -> int:
        count: int = self._rows.num_rows
        return count

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        shown = ", ".join(f"{column.name}: {column.type}" for column in self.columns)
        return f"<Result of {len(self)} rows: {shown}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(column.name)}</th>" for column in self.columns)
        first = Result(self.columns, self._rows.slice(0, HTML_ROWS_MAX))
        body = "".join(
            f"<tr>{''.join(map(_format_cell, row.values()))}</tr>" for row in first.to_json_rows()
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{len(self)} rows</p>"


def _format_cell(value: Any) -> str:  # Any: a JSON value
    return "<td></td>" if value is None else f"<td>{html.escape(str(value))}</td>"
