"""Records: the wording of refusals, many lines at once, and records as Python objects."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from omnigraph.errors import LoadError
from omnigraph.writers.inputs import Dialect, exact_json, json_reader
from unit.model_world import SCHEMA as LIBRARY
from unit.writers.loaded_rows import DIALECTS, accept, edge, node, read, rows_of

SCHEMA = accept(LIBRARY)
AUTHOR = '"type":"Author","data":{"handle":"eve","name":"Eve"}'
EDGE = '"edge":"Wrote","from":"ann","to":"b3"'
KEPT = "node N { p: %s? }"


def refusal(source: Any, *, dialect: Dialect = Dialect.STRICT) -> LoadError:
    with pytest.raises(LoadError) as failure:
        read(source, SCHEMA, dialect=dialect)
    return failure.value


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("[1]", "a record must be one object, got [1]"),
        ('{"data":{}}', "expected 'type' or 'edge' field, exactly one of 'type' or 'edge'"),
        (f"{{{AUTHOR}}} {{{AUTHOR}}}", "invalid strict JSON: Extra data at character 56"),
        (f'{{{AUTHOR},"edge":"Wrote"}}', "exactly one of 'type' or 'edge' is needed"),
        (f'{{{AUTHOR},"x":1}}', "unknown top-level field 'x'"),
        (f'{{{AUTHOR},"_rowid":1}}', "reserved physical state '_rowid'"),
        (f'{{{AUTHOR},"dta":{{}}}}', "unknown top-level field 'dta'; did you mean 'data'?"),
        (
            '{"type":"Author","data":{"handle":"eve","name":"E","nam":1}}',
            "unknown input field 'nam' of Author; did you mean 'name'?",
        ),
        (
            '{"type":"Author","data":{"handle":"eve","name":"E","_x":1}}',
            "reserved physical state '_x'",
        ),
        ('{"type":"Author","type":"Book"}', "duplicate JSON member 'type'"),
        ('{"type":"Author","data":{"a":{"b":1,"b":2}}}', "duplicate JSON member 'b'"),
        ('{"type":"Author","data":3}', "field 'data' must be an object, got 3"),
        ('{"type":"Autor"}', "unknown type 'Autor'; did you mean 'Author'?"),
        ('{"edge":"Wrot","from":"a","to":"b"}', "unknown edge 'Wrot'; did you mean 'Wrote'?"),
        ('{"type":3}', "field 'type' must be a string, got 3"),
        ('{"edge":"Wrote","from":"ann"}', "requires field 'to'"),
        ('{"edge":"Wrote","from":"ann","to":3}', "field 'to' must be a string, got 3"),
        (f'{{{EDGE},"data":{{"src":"ann"}}}}', "reserved structural state 'src'"),
        (f'{{{EDGE},"id":3}}', "field 'id' must be a string, got 3"),
        (f'{{{EDGE},"id":"e","data":{{"id":"e"}}}}', "the id stands both beside the type and in"),
        (
            '{"type":"Author","data":{"handle":"eve","name":"E","score":"x"}}',
            "Author.score: expects Float64, got 'x'",
        ),
        (
            '{"type":"Author","data":{"handle":"eve","name":"E","score":NaN}}',
            "invalid strict JSON: NaN is not a number",
        ),
        ('{"type":"N","id":"\\ud800"}', "surrogates not allowed"),
    ],
)  # fmt: skip
def test_a_refusal_says_where_and_why(record: str, message: str) -> None:
    failure = refusal(f"\n{record}")
    assert (failure.record, failure.count) == (2, 1)
    assert str(failure).startswith(f"input line 2: {message}")
    assert failure.violations[0].place == "input line 2"


def test_a_bad_value_is_told_to_programs_too() -> None:
    (violation,) = refusal('{"type":"Author","data":{"handle":"eve","name":5}}').violations
    assert (violation.rule, violation.type_name, violation.property, violation.value) == (
        "value", "Author", "name", "5",
    )  # fmt: skip


def test_twenty_bad_lines_are_told_and_the_others_counted() -> None:
    text = "\n".join(['{"type":"Autor"}'] * 300)
    failure = refusal(text)
    assert (len(failure.violations), failure.count) == (20, 300)
    assert str(failure).endswith("\n… and 280 more")


def test_a_long_value_is_cut_in_messages() -> None:
    failure = refusal(json.dumps({"type": "Author", "data": {"handle": 5, "name": "x" * 10_000}}))
    assert len(str(failure)) < 300
    failure = refusal(json.dumps({"type": "Author", "data": {"handle": "e", "score": "9" * 5000}}))
    assert len(str(failure)) < 300


# ---- many lines ----


def test_ordinary_lines_never_meet_the_exact_reader() -> None:
    lines = [json.dumps({"type": "Author", "data": {"handle": f"h{n}", "name": "x", "score": n,
             "bornOn": "1980-01-02"}}) for n in range(100)]  # fmt: skip
    lines += [json.dumps({"id": f"w{n}", "edge": "wrote", "from": "a", "to": "b",
              "data": {"since": "2024-01-02T00:00:00+01:00"}}) for n in range(100)]  # fmt: skip
    book: dict[str, Any] = {"id": "b", "isbn": "b", "title": "", "tags": [], "state": "out"}
    book |= {"blurb": None, "vec": [1, 2.5], "cover": "base64:aGk="}
    lines += [json.dumps({"type": "Book", "data": book})] * 100
    with patch.object(exact_json.RecordReader, "read_record", side_effect=AssertionError):
        for dialect in DIALECTS:
            found = read("\n".join([*lines, ""]), SCHEMA, dialect=dialect)
            assert [len(each.rows) for each in found.types.values()] == [100, 100, 100]


def test_counts_for_dates_never_meet_the_exact_reader() -> None:
    text = '{"type":"N","data":{"day":1,"at":2,"days":[3],"ats":[4]}}\n' * 100
    schema = "node N { day: Date?  at: DateTime?  days: [Date]?  ats: [DateTime]? }"
    with patch.object(exact_json.RecordReader, "read_record", side_effect=AssertionError):
        found = read(text, schema).types[node("N")]
    row = {"@id": None, "day": 1, "at": 2, "days": (3,), "ats": (4,)}
    assert rows_of(found.rows, found.shape) == [row] * 100


def test_odd_lines_among_many_keep_their_places_and_their_order() -> None:
    lines = [f'{{"type":"Author","data":{{"handle":"h{n}","name":"x"}}}}' for n in range(2000)]
    lines[700] = '{ "data" : {"name":"x","handle":"h700","score":-0}, "type":"Author"}'
    lines[1500] = '  {"type":"Author","data":{"handle":"h1500","name":"\\u0041"}} \r'
    lines[1] = ""
    found = read("\n".join(lines), SCHEMA).types[node("Author")]
    rows = rows_of(found.rows, found.shape)
    assert [row["handle"] for row in rows] == [f"h{n}" for n in range(2000) if n != 1]
    assert [found.origins.order_of(row)[1] for row in (0, 1, 699, 1499)] == [1, 3, 701, 1501]
    assert repr(rows[699]["score"]) == "0.0"
    lines[1999] = lines[1999].replace("}", "]")
    assert refusal("\n".join(lines)).record == 2000


def test_a_null_end_among_many_lines_is_told_as_what_it_is() -> None:
    good = '{"edge":"In","from":"a","to":"b"}\n' * 100
    assert "line 101: field 'to' must be a string, got null" in str(
        refusal(good + '{"edge":"In","from":"a","to":null}\n' + good)
    )
    assert "line 101: requires field 'to'" in str(refusal(good + '{"edge":"In","from":"a"}\n'))


def test_two_objects_on_a_line_are_two_records_of_the_compatible_dialect_only() -> None:
    text = "\n".join([f"{{{AUTHOR}}}"] * 100 + [f"{{{AUTHOR}}}{{{AUTHOR}}}"] + ["[]"])
    assert refusal(text).record == 101
    assert refusal(text, dialect=Dialect.COMPATIBLE).record == 103


# ---- records as objects ----


def test_records_may_be_python_objects() -> None:
    since = datetime(2024, 1, 2, tzinfo=UTC)
    source = [
        {"type": "Author", "data": {"handle": "eve", "name": "Eve", "bornOn": date(1980, 1, 2)}},
        {"edge": "Wrote", "from": "eve", "to": "b", "data": {"since": since}},
        {"type": "Book", "data": {"isbn": "b", "title": "B", "state": "out", "cover": b"hi",
                                  "vec": np.array([1, 0.5]), "tags": ("a", "b")}},
    ]  # fmt: skip
    found = read(iter(source), SCHEMA).types
    rows = {key.name: rows_of(each.rows, each.shape)[0] for key, each in found.items()}
    assert rows["Author"]["bornOn"] == 3653
    assert rows["Wrote"]["since"] == 19724 * 86_400_000
    assert (rows["Book"]["cover"], rows["Book"]["vec"], rows["Book"]["tags"]) == (
        b"hi", (1.0, 0.5), ("a", "b"),
    )  # fmt: skip
    assert found[edge("Wrote")].origins.location_of(0) == "records record 2"


@pytest.mark.parametrize(
    ("value", "property_type", "expected"),
    [
        (np.int64(3), "I32", 3),
        (np.float32(0.5), "F64", 0.5),
        (np.True_, "Bool", True),
        (Decimal("0.5"), "F64", 0.5),
        (datetime(2024, 1, 2), "DateTime", 19724 * 86_400_000),
        (np.datetime64("2024-01-02"), "Date", 19724),
        (date(2024, 1, 2), "DateTime", 19724 * 86_400_000),
    ],
)
def test_a_native_value_is_kept(value: Any, property_type: str, expected: Any) -> None:
    found = read([{"type": "N", "data": {"p": value}}], KEPT % property_type).types[node("N")]
    assert rows_of(found.rows, found.shape)[0]["p"] == expected


@pytest.mark.parametrize(
    ("value", "property_type", "fragment"),
    [
        (datetime(2024, 1, 2), "Date", "invalid Date literal"),
        (datetime(2024, 1, 2, microsecond=1), "DateTime", "invalid DateTime literal"),
        (float("nan"), "F64", "nan is not a finite number, as F64 needs"),
        pytest.param(10**5000, "F64", "an integer of thousands of digits exceeds F64", id="vast"),
        pytest.param(10**5000, "I64", "exceeds Int64 range", id="vast integer"),
        (10**400, "F32", "exceeds F32 range"),
        ("\ud800", "String", "surrogates not allowed"),
        ({1, 2}, "[I32]", "expects [I32]"),
        (object(), "String", "expects String"),
        (b"x", "String", "expects String, got b'x'"),
    ],
)
def test_a_native_value_that_does_not_fit_is_refused(
    value: Any, property_type: str, fragment: str
) -> None:
    with pytest.raises(LoadError) as failure:
        read([{"type": "N", "data": {"p": value}}], KEPT % property_type)
    assert fragment in str(failure.value)
    assert str(failure.value).startswith("records record 1: N.p: ")


def test_a_record_that_is_no_mapping_is_refused() -> None:
    assert "records record 2: a record must be one object" in str(
        refusal([{"type": "Author", "data": {"handle": "e", "name": "E"}}, 3])
    )


def test_an_unknown_property_is_told_with_its_type_to_programs_too() -> None:
    text = '{"type":"Author","data":{"handle":"eve","name":"E","nam":1}}'
    (violation,) = refusal(text).violations
    assert (violation.rule, violation.type_name, violation.property) == ("member", "Author", "nam")


@pytest.mark.parametrize("blank", ["", "   ", " \t", "\r"])
def test_lines_of_blanks_never_meet_the_exact_reader(blank: str) -> None:
    text = f"{blank}\n" * 200 + "{" + AUTHOR + "}\n"
    with (
        patch.object(exact_json.RecordReader, "read_record") as read_one,
        patch.object(json_reader, "_read_line", wraps=json_reader._read_line) as read_line,
    ):
        read(text, SCHEMA)
    assert (read_one.call_count, read_line.call_count) == (1, 1)


def test_digits_beyond_milliseconds_are_refused_with_what_to_do() -> None:
    schema = KEPT % "DateTime"
    line = '{"type":"N","data":{"p":"2024-01-02T03:04:05.1234%s"}}'
    with pytest.raises(LoadError, match="at most milliseconds are kept") as failure:
        read(line % "5", schema)
    assert "'compatible'" in str(failure.value.hint)
    for source, dialect in (
        (line % "5", Dialect.COMPATIBLE),
        (line[:-6] + '000"}}', Dialect.STRICT),
    ):
        read(source, schema, dialect=dialect)
    with pytest.raises(LoadError, match="invalid DateTime") as failure:
        read('{"type":"N","data":{"p":"soon"}}', schema)
    assert failure.value.hint is None


def test_hints_fit_all_that_is_told() -> None:
    schema = "node N { p: DateTime? }"
    bad = '{"type":"N","data":{"p":"2024-01-02T03:04:05.12345"}}\n'
    with pytest.raises(LoadError) as failure:
        read(bad * 2 + '{"type":"M"}\n', schema)
    assert failure.value.count == 3
    assert str(failure.value.hint).count("milliseconds") == 1
