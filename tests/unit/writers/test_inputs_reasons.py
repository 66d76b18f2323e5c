"""A record with several mistakes is told with all of them, whatever it is read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import LoadError
from omnigraph.writers.inputs import Dialect, InputSource
from unit.writers.loaded_rows import accept, read

SCHEMA = accept(
    """
    node P { name: String @key  full: String  age: I32?  day: Date?  x: F64? }
    edge Knows: P -> P { since: I32  day: Date? }
    """
)
MISSING = "non-nullable property '%s' has null or invalid values (%s)"


def reasons(source: InputSource | str, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(LoadError) as failure:
        read(source, SCHEMA, **options)
    assert failure.value.count == len(failure.value.violations)
    return [(str(each.place).rpartition(" ")[2], each.message) for each in failure.value.violations]


PEOPLE = [
    ("1", "P.age: expects Int32, got 'old'"),
    ("1", "P.day: invalid Date literal 'soon'"),
    ("1", MISSING % ("full", "P")),
    ("3", MISSING % ("name", "P")),
]


@pytest.mark.parametrize("count", [0, 300])
def test_a_record_is_told_with_all_its_values_that_do_not_fit(count: int) -> None:
    lines = [
        '{"type":"P","data":{"name":"ann","age":"old","day":"soon"}}',
        '{"type":"P","data":{"name":"bob","full":"B"}}',
        '{"type":"P","data":{"full":"C"}}',
    ]
    lines += [f'{{"type":"P","data":{{"name":"p{n}","full":"x"}}}}' for n in range(count)]
    assert reasons("\n".join(lines)) == PEOPLE


def test_a_row_is_told_with_all_its_values_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("name,full,age,day\nann,,old,soon\nbob,B,,\n,C,1,\n")
    found = reasons(path, type="P")
    assert found == [(str(int(row) + 1), message) for row, message in PEOPLE]
    table = pa.table(
        {
            "name": ["ann", "bob", None],
            "full": [None, "B", "C"],
            "age": [2**31, None, 1],
            "x": [float("nan"), 1.0, None],
        }
    )
    assert reasons(table, type="P") == [
        ("1", "P.age: 2147483648 exceeds Int32 range"),
        ("1", "P.x: nan is not a finite number, as F64 needs"),
        ("1", MISSING % ("full", "P")),
        ("3", MISSING % ("name", "P")),
    ]


def test_a_bad_value_that_must_be_there_is_not_told_as_missing() -> None:
    assert reasons('{"edge":"Knows","from":"a","to":"b","data":{"since":"x","day":"y"}}') == [
        ("1", "Knows.day: invalid Date literal 'y'"),
        ("1", "Knows.since: expects Int32, got 'x'"),
    ]
    table = pa.table({"from": ["a"], "to": ["b"], "since": [2**40]})
    assert reasons(table, type="Knows") == [("1", "Knows.since: 1099511627776 exceeds Int32 range")]


def test_members_that_are_unknown_and_missing_are_told_together() -> None:
    line = '{"edge":"Knows","to":3,"weather":"x","data":{"since":1,"dy":"y","far":2}}'
    assert reasons(line) == [
        ("1", "unknown top-level field 'weather'"),
        ("1", "unknown input field 'dy' of Knows; did you mean 'day'?"),
        ("1", "unknown input field 'far' of Knows"),
        ("1", "requires field 'from'"),
        ("1", "field 'to' must be a string, got 3"),
    ]
    dates = '{"edge":"Knows","to":"b","data":{"day":"y"}}'
    assert reasons(dates, dialect=Dialect.COMPATIBLE) == [
        ("1", "requires field 'from'"),
        ("1", "Knows.day: invalid Date literal 'y'"),
        ("1", MISSING % ("since", "Knows")),
    ]
