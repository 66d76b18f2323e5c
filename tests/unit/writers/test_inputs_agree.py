"""Both readers of JSON lines and the model: the same rows, or the same line refused."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import LoadError
from omnigraph.writers.inputs import Dialect, Text, arrow_json, read_input
from omnigraph.writers.inputs.input_rows import InputOptions
from omnigraph.writers.load_records import LoadMode, build_load_change
from unit.writers.loaded_rows import DIALECTS, Row, accept, loaded_rows, model_rows

SCHEMA = accept(
    """
    node N {
      s: String?  e: enum(a, b)?  t: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?
      day: Date?  at: DateTime?  b: Blob?  v: Vector(2)?
      ss: [String]?  is: [I32]?  ds: [F64]?  days: [Date]?  ats: [DateTime]?  ts: [Bool]?
    }
    node Id { id: I64? }
    node K { k: String @key  n: F64 }
    edge E: N -> N { since: DateTime? }
    """
)

NUMBERS = [
    "0", "-0", "-0.0", "1", "-1", "1.0", "1.5", "1e2", "1E+2", "-1e-2", "2147483647", "2147483648",
    "-2147483649", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "1e39", "3.4028235677973366e38", "1e400",
    "-1e400", "1e-400", "0.1", "16777217", "123456789012345678901234567890", "2e-46",
    "1.00000017881393432617187499", "NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x1",
    "-", "1e", "253402300800000", "-62135596800001",
]  # fmt: skip
TEXTS = [
    '""', '"x"', '"é"', '"😀"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00x"', '"\\u0000"',
    '"a\\n"', '"\\u0041"', '"\\/"', '"\\x"', '"tab\there"', "'x'", '"open', '"null"', '"base64:"',
    '"base64:aGk="', '"base64:aGk"', '"base64:a-_="', '"http://x"', '"2024-01-02"', '"2024-1-2"',
    '"2024-02-30"', '"0001-01-01"', '"-0012-05-06"', '"+10999-12-31"', '"2024-01-02T03:04:05Z"',
    '"2024-01-02T03:04:05"', '"2024-01-02 03:04:05.5"', '"2024-01-02T03:04:05.678+05:30"',
    '"2024-01-02T03:04:05.6780Z"', '"2024-01-02T03:04:05.6789Z"', '"2024-01-02T24:00:00Z"',
    '"2024-01-02T03:04:60Z"', '"2024-01-02T03:04Z"', '"2024-01-02t03:04:05z"', '"someday"',
    '"2024-01-02T03:04:05+24:00"', '"9999-12-31T23:59:59-01:00"', '"0000-01-01T00:00:00Z"',
    '"2024-01-02\\n"', '"2024-01-02T03:04:05Z\\n"', '"٢٠٢٤-01-02"',
]  # fmt: skip
OTHERS = ["null", "true", "false", "{}", '{"a":1}', "[]", "nul", ""]
scalars = st.sampled_from(NUMBERS + TEXTS + OTHERS)
plain_scalars = st.sampled_from(["1", "-0", "2.5", '"x"', "true", "null", '"2024-01-02"', "19724"])
lists = st.lists(plain_scalars, max_size=3).map(lambda items: f"[{','.join(items)}]")
values = scalars | lists
properties = [
    "s", "e", "t", "i", "l", "u", "w", "f", "d", "day", "at", "b", "v",
    "ss", "is", "ds", "days", "ats", "ts",
]  # fmt: skip
names = st.sampled_from([*properties * 3, "id", "x", "_rowid", "src", "\\u0073", "\\u0069d", "k"])
members = st.tuples(names, values).map(lambda pair: f'"{pair[0]}":{pair[1]}')
data = st.lists(members, max_size=4).map(lambda found: f"{{{','.join(found)}}}") | scalars
envelope = st.one_of(
    st.sampled_from(['"type":"N"', '"type":"N"', '"type": "N"', '"type":"Id"', '"type":"K"']),
    st.sampled_from(['"edge":"E","from":"a","to":"b"', '"edge":"e","to":"b"', '"edge":"E"']),
    st.sampled_from(['"type":"n"', '"type":null', '"ty\\u0070e":"N"', '"edge":"F"']),
    data.map(lambda text: f'"data":{text}'),
    data.map(lambda text: f'"data":{text}'),
    st.sampled_from(['"id":"x"', '"id":null', '"id":3', '"\\u0069d":null', '"from":null', '"x":1']),
)
objects = st.lists(envelope, max_size=4).map(lambda found: f"{{{','.join(found)}}}")
typed = st.tuples(st.sampled_from(["N", "N", "Id", "K"]), data).map(
    lambda pair: f'{{"type":"{pair[0]}","data":{pair[1]}}}'
)
lines = st.one_of(
    typed,
    typed,
    objects,
    typed.map(lambda text: f" {text}\r"),
    typed.map(lambda text: text + text),
    typed.map(lambda text: f"{text},"),
    st.sampled_from(["", " ", "\r", "\u00a0", "[]", "null", "3", "{", "}", "[" * 3000, "\x0b"]),
)


def outcome(text: str, dialect: Dialect, *, lines_min: int) -> dict[str, list[Row]] | int:
    """The rows of a text, or the number of the record that is refused first."""
    with patch.object(arrow_json, "_LINES_MIN", lines_min):
        try:
            found = read_input(Text(text), SCHEMA, InputOptions(dialect))
            loaded = build_load_change(found, LoadMode.MERGE)
        except LoadError as failure:
            return failure.record
    return loaded_rows(loaded)


def expected(text: str, dialect: Dialect) -> dict[str, list[Row]] | int:
    try:
        return model_rows(text, SCHEMA, is_strict=dialect is Dialect.STRICT)
    except LoadError as failure:
        return failure.record


def without_fresh_ids(found: dict[str, list[Row]] | int) -> Any:
    """Rows with the sign of zeros, and without ids that are fresh."""
    if isinstance(found, int):
        return found
    return {
        key: [repr(sorted({**row, "@id": _known(row["@id"])}.items())) for row in rows]
        for key, rows in found.items()
    }


def _known(entity_id: str) -> str:
    return "new" if len(entity_id) == 26 else entity_id


def assert_agreement(text: str, dialect: Dialect) -> None:
    wanted = without_fresh_ids(expected(text, dialect))
    for lines_min in (1, 10**9):
        found = without_fresh_ids(outcome(text, dialect, lines_min=lines_min))
        assert found == wanted, (lines_min, text)


@pytest.mark.slow
@given(lines)
def test_one_line_is_read_as_the_model_reads_it(line: str) -> None:
    for dialect in DIALECTS:
        assert_agreement(line, dialect)


@given(st.lists(lines, max_size=6), st.sampled_from(DIALECTS))
def test_several_lines_are_read_as_the_model_reads_them(text: list[str], dialect: Dialect) -> None:
    assert_agreement("\n".join(text), dialect)


@pytest.mark.slow
@pytest.mark.parametrize("value", NUMBERS + TEXTS + OTHERS)
def test_every_odd_value_is_read_alike_in_every_property(value: str) -> None:
    for name in properties:
        for shown in (value, f"[{value}]", f"[1,{value}]"):
            assert_agreement(f'{{"type":"N","data":{{"{name}":{shown}}}}}', Dialect.STRICT)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "line",
    [
        '{"type":"N","id":null}',
        '{"type":"N","data":null}',
        '{"type":"N","data":{"id":null}}',
        '{"type":"N","data":{"s":null}}',
        '{"type":"N","\\u0069d":null}',
        '{"type":"N","d\\u0061ta":null}',
        '{"type":"N","data":{"\\u0073":"x"}}',
        '{"type":"N","id":"x","data":{"id":"y"}}',
        '{"type":"N","data":{"id":"y"},"id":"x"}',
        '{"type":"Id","data":{"id":null}}',
        '{"type":"Id","id":null,"data":{"id":1}}',
        '{"type":"Id","id":"x","data":{"id":1}}',
        '{"edge":"E","from":"a","to":"b","data":{"id":null}}',
        '{"edge":"E","from":"a","to":"b","data":{"id":3}}',
        '{"edge":"E","from":null,"to":"b"}',
        '{"edge":"E","from":"a"}',
        '{"data":{"s":"x"},"type":"N"}',
        '{"id":"x","edge":"e","to":"b","from":"a"}',
        '{"type":"N","type":"N"}',
        '{"id":"x","id":"x","type":"N"}',
        '{"type":"N","data":{"s":"x"},"data":{}}',
        '{"type":"N","edge":"E","from":"a","to":"b"}',
        '{"edge":"E","from":"a","to":"b","type":"N"}',
    ],
)
def test_every_odd_envelope_is_read_alike(line: str, dialect: Dialect) -> None:
    assert_agreement(line, dialect)


def test_an_object_over_two_lines_does_not_make_up_for_two_on_one() -> None:
    two_and_a_half = '{"type":"T"}{"type":"T"}\n{"type":"T","data":\n{"type":"T"}}\n'
    schema = accept("node T { type: String? }")
    with patch.object(arrow_json, "_LINES_MIN", 1), pytest.raises(LoadError) as failure:
        read_input(Text(two_and_a_half), schema, InputOptions())
    assert (failure.value.record, failure.value.count) == (1, 3)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_floats_keep_all_their_digits(numbers: list[float]) -> None:
    text = "\n".join(json.dumps({"type": "N", "data": {"d": x, "ds": [x]}}) for x in numbers)
    found = outcome(text, Dialect.STRICT, lines_min=1)
    assert isinstance(found, dict)
    assert [repr(row["d"]) for row in found["node:N"]] == [repr(x) for x in numbers]
