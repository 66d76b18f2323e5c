"""The columns of properties whose values were converted, whose nulls were filled, or made anew.

Such a property gets another column, which no table of the branch has: older commits go on reading
the one before. `c7_2_i64` is the second column of property 7. A vector of another model begins
empty, in a column such as `c7_2_embed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from omnigraph.schema.property_types import ValueType

_EMBED: Final = "embed"
_CONVERTED: Final = re.compile(r"c([1-9][0-9]*)_([1-9][0-9]*)_[a-z0-9]+")


def name_first_column(number: int) -> str:
    """The column that a property is born with."""
    return f"c{number}"


def name_next_column(number: int, value: ValueType, *others: str) -> str:
    """The column of a property after some others that it has had."""
    return f"c{number}_{max(map(count_columns, others)) + 1}_{str(value).lower()}"


def name_filled_column(number: int, *others: str) -> str:
    """The same of a property whose nulls get its default."""
    return f"c{number}_{max(map(count_columns, others)) + 1}_filled"


def name_next_vector_column(number: int, *others: str) -> str:
    """The column of the vectors of another model, after some others of the property."""
    return f"c{number}_{max(map(count_columns, others)) + 1}_{_EMBED}"


def is_made_anew(column: str) -> bool:
    """Whether a column began empty: no values of another one were converted for it."""
    return _CONVERTED.fullmatch(column) is not None and column.endswith(f"_{_EMBED}")


def count_columns(column: str) -> int:
    """How many columns the property has had with this one."""
    found = _CONVERTED.fullmatch(column)
    return 1 if found is None else int(found[2])


def find_previous_column(column: str, others: Iterable[str]) -> str | None:
    """The column that the values of a converted one were made of, among some."""
    found = _CONVERTED.fullmatch(column)
    if found is None or is_made_anew(column):
        return None
    number = int(found[1])
    known = [
        each for each in others if each == name_first_column(number) or is_column_of(number, each)
    ]
    return max(known, key=count_columns, default=None)


def is_column_of(number: int, column: str) -> bool:
    """Whether a name is that of a converted column of a property."""
    found = _CONVERTED.fullmatch(column)
    return found is not None and int(found[1]) == number and int(found[2]) > 1
