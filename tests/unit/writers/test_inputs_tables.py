"""Tables and frames: which Arrow types become which properties, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a package of their own
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pds
import pytest

from omnigraph.errors import LoadError
from omnigraph.writers.inputs import Dialect
from unit.writers.loaded_rows import accept, edge, node, read, rows_of

DAY = 19724
DAY_MS = DAY * 86_400_000


def kept(values: Any, property_type: str, *, dialect: Dialect = Dialect.STRICT) -> list[Any]:
    """What a nullable property keeps of the values of a column."""
    table = pa.table({"p": values})
    found = read(table, f"node N {{ p: {property_type}? }}", type="N", dialect=dialect)
    incoming = found.types[node("N")]
    assert incoming.rows.schema.types[1:] == incoming.shape.schema.types[1:]
    return [row["p"] for row in rows_of(incoming.rows, incoming.shape)]


def refusal(values: Any, property_type: str, *, dialect: Dialect = Dialect.STRICT) -> LoadError:
    with pytest.raises(LoadError) as failure:
        kept(values, property_type, dialect=dialect)
    return failure.value


def timestamps(unit: str, zone: str | None, *counts: int | None) -> pa.Array:
    return pa.array(counts, pa.int64()).cast(pa.timestamp(unit, zone))


@pytest.mark.parametrize(
    ("values", "property_type", "expected"),
    [
        (pa.array(["a", None], pa.large_string()), "String", ["a", None]),
        (pa.array(["a", "b"], pa.string_view()), "String", ["a", "b"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "String", ["a", "b", "a"]),
        (pa.array(["a", "b"]), "enum(a, b)", ["a", "b"]),
        (pa.nulls(2), "I32", [None, None]),
        (pa.array([1, None], pa.int8()), "I32", [1, None]),
        (pa.array([2**64 - 1], pa.uint64()), "U64", [2**64 - 1]),
        (pa.array([-(2**63), 2**63 - 1]), "I64", [-(2**63), 2**63 - 1]),
        (pa.array([3.0, None]), "I32", [3, None]),
        (pa.array([float(2**53)]), "U64", [2**53]),
        (pa.array([Decimal("7.00"), None]), "I64", [7, None]),
        (pa.array([1, 2], pa.int64()), "F64", [1.0, 2.0]),
        (pa.array([2**53 + 1], pa.int64()), "F64", [float(2**53)]),
        (pa.array([0.1, None]), "F32", [0.10000000149011612, None]),
        (pa.array([Decimal("0.5")]), "F64", [0.5]),
        (pa.array(np.array([0.5], np.float16)), "F32", [0.5]),
        (pa.array([True, None]), "Bool", [True, None]),
        (pa.array([DAY], pa.int32()).cast(pa.date32()), "Date", [DAY]),
        (pa.array([DAY, None], pa.int64()), "Date", [DAY, None]),
        (pa.array([date(2024, 1, 2)], pa.date64()), "Date", [DAY]),
        (pa.array(["2024-01-02", "2024-1-2", None]), "Date", [DAY, DAY, None]),
        (timestamps("ns", None, DAY_MS * 1_000_000, None), "Date", [DAY, None]),
        (timestamps("s", "UTC", -86_400), "Date", [-1]),
        (timestamps("us", None, DAY_MS * 1000, None), "DateTime", [DAY_MS, None]),
        (timestamps("ms", "Europe/Berlin", DAY_MS), "DateTime", [DAY_MS]),
        (timestamps("s", None, -1), "DateTime", [-1000]),
        (pa.array([DAY], pa.int32()).cast(pa.date32()), "DateTime", [DAY_MS]),
        (pa.array([date(2024, 1, 2)], pa.date64()), "DateTime", [DAY_MS]),
        (pa.array([5], pa.uint8()), "DateTime", [5]),
        (pa.array(["2024-01-02T02:00:00+02:00", "2024-01-02"]), "DateTime", [DAY_MS, DAY_MS]),
        (pa.array([b"hi", None, b""]), "Blob", [b"hi", None, b""]),
        (pa.array([b"hi"], pa.binary(2)), "Blob", [b"hi"]),
        (pa.array(["base64:aGk=", "base64:", None]), "Blob", [b"hi", b"", None]),
        (pa.array([["a"], [], None]), "[String]", [("a",), (), None]),
        (pa.array([["a"], None], pa.large_list(pa.large_string())), "[String]", [("a",), None]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), "[I32]", [(1, 2), None]),
        (pa.array([["1970-01-02"], None]), "[Date]", [(1,), None]),
        (pa.array([[1.0, 0.5], None]), "Vector(2)", [(1.0, 0.5), None]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), "Vector(2)", [(1.0, 2.0), None]),
        (pa.array([None, [1, 2]], pa.large_list(pa.float32())), "Vector(2)", [None, (1.0, 2.0)]),
    ],
)  # fmt: skip
def test_a_column_becomes_a_property(values: pa.Array, property_type: str, expected: Any) -> None:
    assert kept(values, property_type) == expected
    chunked = pa.chunked_array([values.slice(0, 1), values.slice(1)], values.type)
    assert kept(chunked, property_type) == expected


@pytest.mark.parametrize(
    ("values", "property_type", "row", "fragment"),
    [
        ([1, 2**31], "I32", 2, "N.p: 2147483648 exceeds Int32 range"),
        ([-1], "U64", 1, "N.p: -1 exceeds UInt64 range"),
        ([1.0, 2.5], "I32", 2, "expects Int32, got 2.5"),
        ([float("nan")], "I32", 1, "N.p"),
        ([1e300], "I64", 1, "N.p"),
        ([2.0**63], "I64", 1, "N.p"),
        ([2.0**31], "I32", 1, "N.p"),
        ([Decimal("1.5")], "I32", 1, "N.p"),
        ([1.0, 1e39], "F32", 2, "1e+39 exceeds F32 range"),
        ([float("inf")], "F64", 1, "inf is not a finite number, as F64 needs"),
        ([float("nan")], "F64", 1, "nan is not a finite number, as F64 needs"),
        (["2024-01-02", "soon"], "Date", 2, "invalid Date literal 'soon'"),
        (["2024-02-30"], "Date", 1, "invalid Date literal"),
        ([datetime(2024, 1, 2, 3, tzinfo=UTC)], "Date", 1, "invalid Date literal '2024-01-02T03"),
        ([datetime(2024, 1, 2, 0, 0, 0, 1, tzinfo=UTC)], "DateTime", 1, "invalid DateTime literal"),
        ([10**15], "DateTime", 1, "1000000000000000 exceeds DateTime range"),
        (["base64:!"], "Blob", 1, "invalid base64"),
        (["http://x"], "Blob", 1, "external URI"),
        ([["a", None]], "[String]", 1, "null is not allowed as an element"),
        ([[1], [2**31]], "[I32]", 2, "exceeds Int32 range"),
        ([[1.0, 2.0], [1.0]], "Vector(2)", 2, "expects 2 numbers, got 1"),
        ([[1.0, None]], "Vector(2)", 1, "null is not allowed as an element"),
        ([[1.0, float("inf")]], "Vector(2)", 1, "inf is not a finite number, as F32"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_row(
    values: list[Any], property_type: str, row: int, fragment: str
) -> None:
    failure = refusal(pa.array(values), property_type)
    assert failure.count == 1
    assert failure.record == row
    assert fragment in str(failure)
    (violation,) = failure.violations
    assert (violation.place, violation.type_name, violation.property) == (
        f"table row {row}",
        "N",
        "p",
    )


@pytest.mark.parametrize(
    ("values", "property_type"),
    [
        (["1"], "I32"),
        ([1], "String"),
        ([b"x"], "String"),
        ([1], "Bool"),
        ([True], "I64"),
        (["1.5"], "F64"),
        ([1.5], "Date"),
        ([{"a": 1}], "String"),
        ([1], "[I32]"),
        (["x"], "Vector(1)"),
        ([1], "Blob"),
        ([[["x"]]], "[String]"),
    ],
)
def test_a_column_of_a_wrong_type_is_refused_as_a_whole(
    values: list[Any], property_type: str
) -> None:
    failure = refusal(pa.array(values), property_type)
    assert f"N.p: expects {property_type}?, the column is of Arrow type" in str(failure)


def test_a_compatible_table_may_lose_digits_and_keep_nulls_in_lists() -> None:
    micros = timestamps("us", None, -1)
    assert kept(micros, "DateTime", dialect=Dialect.COMPATIBLE) == [-1]
    refusal(micros, "DateTime")
    assert kept([["a", None]], "[String]", dialect=Dialect.COMPATIBLE) == [("a", None)]


def test_text_that_is_no_utf8_is_refused_with_its_row() -> None:
    broken = pa.array([b"ok", b"\xff"]).view(pa.string())
    failure = refusal(broken, "String")
    assert (failure.record, failure.count) == (2, 1)


def test_only_twenty_of_many_bad_values_are_told() -> None:
    failure = refusal(pa.array([2**40] * 100_000), "I32")
    assert (len(failure.violations), failure.count) == (20, 100_000)
    assert str(failure).endswith("… and 99980 more")


def test_an_edge_table_has_its_ends_in_from_and_to() -> None:
    schema = "node A { k: I64 @key }  edge E: A -> A { w: F64? }"
    table = pa.table({"from": [1, 2], "to": ["2", "1"], "w": [0.5, None]})
    found = read(table, schema, type="e").types[edge("E")]
    assert rows_of(found.rows, found.shape) == [
        {"@id": None, "@src": "1", "@dst": "2", "w": 0.5},
        {"@id": None, "@src": "2", "@dst": "1", "w": None},
    ]


@pytest.mark.parametrize("column", ["id", "@id"])
def test_a_given_identity_is_in_a_column_of_its_own(column: str) -> None:
    found = read(pa.table({column: ["x", None]}), "node N {}", type="N").types[node("N")]
    assert found.rows["__id"].to_pylist() == ["x", None]


def test_a_declared_id_is_a_property_of_the_table() -> None:
    table = pa.table({"id": [7], "@id": ["x"]})
    found = read(table, "node N { id: I64 }", type="N").types[node("N")]
    assert rows_of(found.rows, found.shape) == [{"@id": "x", "id": 7}]


@pytest.mark.parametrize(
    ("columns", "type_", "fragment"),
    [
        ({"nme": ["x"], "name": ["x"]}, "P", "unknown column 'nme' of P; did you mean 'name'?"),
        ({"age": [1]}, "P", "non-nullable property 'name' has null or invalid values: the table"),
        (
            {"name": ["x"], "id": ["x"], "@id": ["x"]},
            "P",
            "both in column 'id' and in column '@id'",
        ),
        ({"name": ["x"], "from": ["x"]}, "P", "unknown column 'from'"),
        ({"from": ["x"]}, "Knows", "requires field 'to'"),
        ({"name": ["x"]}, "Persn", "unknown type 'Persn'; did you mean 'P'?"),
        ({"name": ["x"]}, "edge:P", "unknown type 'edge:P'"),
        ({"name": ["x"]}, None, "give the type"),
    ],
)
def test_columns_must_be_those_of_the_type(
    columns: dict[str, list[Any]], type_: str | None, fragment: str
) -> None:
    schema = "node P { name: String  age: I32? }  edge Knows: P -> P"
    with pytest.raises(LoadError) as failure:
        read(pa.table(columns), schema, type=type_)
    assert fragment.removesuffix("; did you mean 'P'?") in str(failure.value)
    assert failure.value.record == 0
    assert str(failure.value).startswith("table: ")


def test_a_column_that_is_there_twice_is_refused() -> None:
    table = pa.Table.from_arrays([pa.array(["x"])] * 2, names=["name", "name"])
    with pytest.raises(LoadError, match="column 'name' is there twice"):
        read(table, "node P { name: String }", type="P")


def test_a_missing_required_value_is_told_together_with_bad_ones() -> None:
    table = pa.table({"name": [None, "x"], "age": [1, 2**40]})
    with pytest.raises(LoadError) as failure:
        read(table, "node P { name: String  age: I32 }", type="P")
    assert (failure.value.record, failure.value.count) == (1, 2)


def test_every_kind_of_frame_gives_the_same_rows() -> None:
    columns = {"name": ["a", "b"], "age": [1, None], "at": [datetime(2024, 1, 2), None]}
    table = pa.table(columns)
    accepted = accept("node P { name: String @key  age: I64?  at: DateTime? }")
    sources: list[Any] = [
        table,
        table.to_batches()[0],
        table.to_reader(),
        pds.dataset(table),
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pl.DataFrame(columns).lazy().collect(),
    ]
    expected = [
        {"@id": None, "name": "a", "age": 1, "at": DAY_MS},
        {"@id": None, "name": "b", "age": None, "at": None},
    ]
    for source in sources:
        found = read(source, accepted, type="P").types[node("P")]
        assert rows_of(found.rows, found.shape) == expected, type(source)


def test_one_column_alone_is_no_table() -> None:
    for column in (pa.array(["a"]), pa.chunked_array([["a"]]), pd.Series(["a"]), pl.Series(["a"])):
        with pytest.raises(LoadError, match=r"^table: "):
            read(column, "node P { name: String }", type="P")


def test_a_pandas_frame_of_mixed_objects_is_refused() -> None:
    frame = pd.DataFrame({"name": ["a", 1]})
    with pytest.raises(LoadError, match="name"):
        read(frame, "node P { name: String }", type="P")


def test_an_instant_with_a_zone_is_that_instant() -> None:
    berlin = timezone(timedelta(hours=1))
    frame = pd.DataFrame({"at": [pd.Timestamp(2024, 1, 2, 1, tz=berlin)]})
    found = read(frame, "node P { at: DateTime? }", type="P").types[node("P")]
    assert rows_of(found.rows, found.shape)[0]["at"] == DAY_MS


def test_an_empty_table_still_names_its_type() -> None:
    table = pa.table({"name": pa.array([], pa.string())})
    assert read(table, "node P { name: String }", type="P").types[node("P")].rows.num_rows == 0


def test_rows_are_numbered_over_all_batches() -> None:
    values = [1] * 70_000 + [2**40]
    assert refusal(pa.array(values), "I32").record == 70_001


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("count", [-(2**62), 2**63 - 1])
@pytest.mark.parametrize("property_type", ["DateTime", "Date"])
def test_an_instant_that_python_cannot_hold_is_refused(
    unit: str, count: int, property_type: str
) -> None:
    assert "N.p: " in str(refusal(timestamps(unit, None, count), property_type))


def test_an_instant_out_of_range_is_told_as_its_count() -> None:
    failure = refusal(timestamps("s", None, 2**62), "DateTime")
    assert "4611686018427387904 timestamp[s]" in str(failure)


def test_microseconds_of_a_frame_are_kept_if_they_are_zero() -> None:
    whole = pd.Timestamp("2024-01-02T00:00:00.123")
    for unit in ("us", "ns"):
        frame = pd.DataFrame({"p": pd.Series([whole]).astype(f"datetime64[{unit}]")})
        assert kept(frame["p"], "DateTime") == [DAY_MS + 123]
    for odd in (whole + pd.Timedelta(1, "us"), whole + pd.Timedelta(1, "ns")):
        failure = refusal(pd.Series([odd]), "DateTime")
        assert "at most milliseconds are kept" in str(failure)
        assert "'compatible'" in str(failure.hint)
        assert kept(pd.Series([odd]), "DateTime", dialect=Dialect.COMPATIBLE) == [DAY_MS + 123]


VIEWS = pa.array(["a", "b", None], pa.string_view())


@pytest.mark.parametrize(
    ("values", "property_type", "expected"),
    [
        (pa.DictionaryArray.from_arrays([1, 0, 2, None], VIEWS), "String", ["b", "a", None, None]),
        (pa.DictionaryArray.from_arrays([1, 0], VIEWS), "enum(a, b)", ["b", "a"]),
        (pa.DictionaryArray.from_arrays([0, 1, 0], VIEWS).slice(1), "String", ["b", "a"]),
        (pa.DictionaryArray.from_arrays([1], pa.array([5, 7])), "I32", [7]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], VIEWS[:2]), "String", ["a", "a", "b"]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], VIEWS[:2])[1:], "String", ["a", "b"]),
        (pa.array([b"x"], pa.binary_view()), "Blob", [b"x"]),
        (pa.array([["a"], None], pa.list_view(pa.string_view())), "[String]", [("a",), None]),
        (
            pa.array([["a"], []], pa.large_list(pa.dictionary(pa.uint32(), pa.string()))),
            "[String]",
            [("a",), ()],
        ),
    ],
)
def test_dictionaries_runs_and_views_are_values_like_others(
    values: pa.Array, property_type: str, expected: list[Any]
) -> None:
    assert kept(values, property_type) == expected


def test_categories_and_enums_of_polars_are_texts() -> None:
    frame = pl.DataFrame({"c": ["a", "b", None], "e": ["x", "y", "x"], "l": [["a"], ["b"], None]})
    frame = frame.with_columns(
        pl.col("c").cast(pl.Categorical),
        pl.col("e").cast(pl.Enum(["x", "y"])),
        pl.col("l").cast(pl.List(pl.Categorical)),
    )
    schema = "node N { c: String?  e: enum(x, y)  l: [String]? }"
    incoming = read(frame, schema, type="N").types[node("N")]
    found = [(row["c"], row["e"], row["l"]) for row in rows_of(incoming.rows, incoming.shape)]
    assert found == [("a", "x", ("a",)), ("b", "y", ("b",)), (None, "x", None)]
