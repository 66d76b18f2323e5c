"""Records and columns of Python as Arrow tables: what `type=` makes of a list or a dict.

A list of records of one type is a table whose columns are the members that occur. In a merge,
records with different members become different tables, because a column that a table does not have
is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.writers.inputs.row_sink import RowNumbers

# Records that become one table: enough for Arrow to be quick, and few enough to be small.
RECORDS_PER_TABLE = 65_536
_FAILURES = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


class WrongColumnError(ValueError):
    """A column that does not become an Arrow column; the message names it."""


def iter_record_chunks(records: Iterable[Any]) -> Iterator[list[Any]]:  # Any: a record, or not
    """The records, so many at a time."""
    source = iter(records)
    while chunk := list(islice(source, RECORDS_PER_TABLE)):
        yield chunk


def build_record_tables(
    records: Sequence[Mapping[str, Any]],
    *,
    first_number: int,
    is_patch: bool,
    optional: Collection[str] = (),
) -> list[tuple[pa.Table, RowNumbers]]:
    """Tables of records with the number of each row; `WrongColumnError` if one is not possible.

    The tables have the members of their records, of which some may lack any in a patch, and
    `optional` ones always. What others lack is null.
    """
    numbers = np.arange(first_number, first_number + len(records), dtype=np.int64)
    names = list(dict.fromkeys(chain.from_iterable(records)))
    counted = frozenset(names if is_patch else optional).intersection(names)
    if not counted or all(len(record) == len(names) for record in records):
        return [(_build_table(records, names), numbers)]
    groups: dict[frozenset[str], list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(frozenset(counted - record.keys()), []).append(place)
    return [
        (
            _build_table(
                [records[place] for place in places],
                [name for name in names if name not in missing],
            ),
            numbers[places],
        )
        for missing, places in groups.items()
    ]


def build_column_table(columns: Mapping[str, Any]) -> pa.Table:
    """The table of a dict of columns; `WrongColumnError` if they are not columns of one table."""
    _require_names(columns)
    arrays = {name: _build_array(name, values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
        raise WrongColumnError(f"the columns have different lengths: {shown}")
    return pa.table(arrays)


def is_rectangular(columns: Mapping[str, Any]) -> bool:
    """Whether columns are lists of one length."""
    lists = [values for values in columns.values() if isinstance(values, list | tuple)]
    return len(lists) == len(columns) and len(set(map(len, lists))) == 1


def iter_column_records(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a dict of columns, one by one."""
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _build_table(records: Sequence[Mapping[str, Any]], names: Collection[str]) -> pa.Table:
    _require_names(names)
    return pa.table(
        {name: _build_array(name, [record.get(name) for record in records]) for name in names}
    )


def _require_names(names: Collection[object]) -> None:
    """Refuse names that are not text, and a table without columns, which has no rows either."""
    if not names:
        raise WrongColumnError("the records have no members")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise WrongColumnError(f"{wrong[0]!r} is not the name of a column")


def _infer_array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        # Arrow takes integers for signed ones, whatever they are.
        return pa.array(values, pa.uint64())


def _build_array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:  # Any: what holds values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | Mapping) or hasattr(values, "columns"):
        raise WrongColumnError(
            f"'{name}' is a {type(values).__name__}, not a column: with a type, a dict holds the"
            " columns of that type; without one, a source for each type"
        )
    try:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        if type(values).__module__.partition(".")[0] == "pandas":
            return pa.array(values, from_pandas=True)
        if isinstance(values, np.ndarray):
            return pa.array(values)
        listed = list(values)
        array = _infer_array(listed)
    except _FAILURES as failure:
        raise WrongColumnError(f"'{name}': {failure}") from failure
    _require_one_kind(name, listed, array.type)
    return array


# Arrow makes one column of values of these kinds, and loses what only one of them has: that a text
# is not bytes, the time of a day, or the zone of a time.
_KIND_OF: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], object]], ...]] = (
    (pa.types.is_binary, lambda value: isinstance(value, str)),
    (pa.types.is_date, lambda value: isinstance(value, datetime)),
    (pa.types.is_timestamp, lambda value: getattr(value, "tzinfo", None) is None),
)


def _require_one_kind(name: str, values: Iterable[Any], type_: pa.DataType) -> None:
    """Refuse values of which Arrow converts some in silence."""
    if pa.types.is_list(type_):
        elements = chain.from_iterable(value for value in values if value is not None)
        _require_one_kind(name, elements, type_.value_type)
        return
    for is_such, find_kind in _KIND_OF:
        if is_such(type_) and len({find_kind(each) for each in values if each is not None}) > 1:
            raise WrongColumnError(f"'{name}' has values of different kinds")
