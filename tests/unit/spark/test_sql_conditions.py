from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    StringContains,
    StringStartsWith,
)

from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.sql_conditions import translate_condition, translate_filter

COLUMNS = {"@id": "__id", "age": "c1", "name": "c2", "date": "c3", "from": "c4"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("age > 3", "`c1` > 3"),
        ("name = 'age > 3'", "`c2` = 'age > 3'"),
        ("name = 'it''s' AND age IS NOT NULL", "`c2` = 'it''s' AND `c1` IS NOT NULL"),
        ("`@id` in ('a') or \"age\" in (1,2)", "`__id` in ('a') or `c1` in (1,2)"),
        ("@id = 'a'", "`__id` = 'a'"),
        ("lower(name) like 'a%'", "lower(`c2`) like 'a%'"),
        ("date > date '2026-01-01'", "`c3` > date '2026-01-01'"),
        ("age between 1e3 and 2.5", "`c1` between 1e3 and 2.5"),
        ("`from` = 'x'", "`c4` = 'x'"),
        ("age in (1)", "`c1` in (1)"),
    ],
)
def test_names_become_columns_and_texts_stay(given: str, expected: str) -> None:
    assert translate_condition(given, COLUMNS) == expected


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidArgumentError, match="no property 'agge'") as caught:
        translate_condition("agge > 3", COLUMNS)
    assert caught.value.hint == "did you mean 'age'?"


KINDS = {
    "age": ("c1", pa.int32()),
    "name": ("c2", pa.utf8()),
    "born": ("c3", pa.date32()),
    "seen": ("c4", pa.date64()),
    "score": ("c5", pa.float64()),
    "tags": ("c6", pa.list_(pa.utf8())),
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (EqualTo(("age",), 3), "`c1` = 3"),
        (EqualTo(("age",), True), None),
        (EqualTo(("name",), "it's"), "`c2` = 'it''s'"),
        (GreaterThan(("score",), 1.5), "`c5` > 1.5"),
        # The two zeros and what is no number are for Spark.
        (EqualTo(("score",), 0.0), None),
        (EqualTo(("score",), float("nan")), None),
        (LessThanOrEqual(("born",), date(1970, 1, 3)), "`c3` <= arrow_cast(2, 'Date32')"),
        (
            EqualTo(("seen",), datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)),
            "`c4` = arrow_cast(5, 'Date64')",
        ),
        # A table has milliseconds only.
        (EqualTo(("seen",), datetime(1970, 1, 1, 0, 0, 0, 5001, UTC)), None),
        (In(("age",), (1, 2)), "`c1` IN (1, 2)"),
        (In(("age",), ()), None),
        (IsNull(("tags",)), "`c6` IS NULL"),
        (IsNotNull(("age",)), "`c1` IS NOT NULL"),
        (StringStartsWith(("name",), "a"), "starts_with(`c2`, 'a')"),
        (StringContains(("name",), "a"), None),
        (EqualTo(("unknown",), 1), None),
        (EqualTo(("a", "b"), 1), None),
    ],
)
def test_only_what_a_table_answers_alike_is_pushed_down(
    asked: Filter, expected: str | None
) -> None:
    assert translate_filter(asked, KINDS) == expected
