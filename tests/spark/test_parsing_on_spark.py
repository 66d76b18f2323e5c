"""What Spark's parser thinks of texts that are not run."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from omnigraph.spark.sql_analysis import UnresolvedError, build_empty_frame, find_syntax_error


@pytest.mark.parametrize(
    "sql",
    [
        "lower(x)",
        "a.b[0] + 1",
        "transform(a, x -> x + 1)",
        "CASE WHEN a THEN 1 END",
        "cast(a AS array<int>)",
        "`odd name`",
    ],
)
def test_an_expression_is_read_whatever_its_columns_are(spark: SparkSession, sql: str) -> None:
    assert find_syntax_error(sql, spark) is None


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("sku ++ (", "Syntax error at or near end of input"),
        ("a) + (b", "Syntax error at or near ')'"),
        ("a AS b", "Syntax error"),
        ("a, b", "Syntax error at or near ','"),
        ("'abc", "Syntax error"),
        ("a -- says nothing", "Syntax error at or near end of input"),
        ("cast(a AS strng)", "Unsupported data type"),
        ("lowr(upper(a))", "there is no function `lowr`"),
        ("x -> x", ""),
    ],
)
def test_what_is_no_expression_is_told(spark: SparkSession, sql: str, reason: str) -> None:
    assert (find_syntax_error(sql, spark) or "nothing").startswith(reason)
    assert find_syntax_error(sql, spark) is not None


def test_columns_are_a_text_or_a_schema(spark: SparkSession) -> None:
    assert build_empty_frame("a int, b array<string>", spark).columns == ["a", "b"]
    assert build_empty_frame(pa.schema([("a", pa.int32())]), spark).columns == ["a"]
    with pytest.raises(UnresolvedError, match="Unsupported data type"):
        build_empty_frame("a strng", spark)
