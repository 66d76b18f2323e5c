"""What pipelines rely on of Spark: expressions are tried without ending a job."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import find_spark_home as home
from pyspark.core import context
from pyspark.sql import session
from pyspark.sql.classic import dataframe as frame

import omnigraph
from omnigraph.pipelines.mapping.row_guards import build_failure_condition
from omnigraph.spark.spark_session import ANSI, get_strict_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

# What fails for the second of two records, and has a result or is null for the first.
FAILING = [
    "int(word)",
    "cast(word AS decimal(4, 2))",
    "cast(day AS timestamp)",
    "to_date(day)",
    "to_date(day, 'yyyy-MM-dd')",
    "to_timestamp(day)",
    "make_date(2024, month, 1)",
    "100 / number",
    "100 % number",
    "cast(large AS int)",
    "large + 4611686018427387904",
    "large * large",
    "items[number - 1]",
    "element_at(items, number)",
    "element_at(items, 2 - number)",
    "raise_error(word)",
    "assert_true(number = 1)",
    "variant_get(parse_json(json), '$.a', 'int')",
    "url_decode(url)",
    "from_json(json, 'a int', map('mode', 'FAILFAST')).a",
    "to_number(word, '99')",
    "hex(to_binary(hexed, 'hex'))",
    "transform(array(word), w -> int(w))",
    "named_struct('a', int(word)).a",
    "CASE WHEN number = 0 THEN int(word) ELSE 0 END",
]
# What has a result for both, or is null.
RIGHT = ["word", "try_cast(word AS int)", "number + 1", "large", "items", "nothing", "int(nothing)"]

# Private names of PySpark that nothing public stands for, and why they are used.
PRIVATE = {
    "_active_spark_context": "sessions of other threads are found without making one",
    "_gateway": "Java is started with a limit of time; one that ended is forgotten",
    "_jvm": "it is forgotten with the gateway",
    "_instantiatedSession": "it is forgotten with the gateway",
    "_find_spark_home": "the Java that is started is the one that PySpark would start",
}


@pytest.fixture
def records(spark: SparkSession) -> DataFrame:
    rows = [
        ("7", "2024-02-03", 2, 1, 5, [1], '{"a":1}', "a", "00", None),
        ("abc", "2024-13-45", 13, 0, 2**62 + 1, [1], '{"a":', "%zz", "0g", None),
    ]
    names = "word string, day string, month int, number int, large long, items array<int>"
    # Rows of a task: constants would be computed before it.
    frame = spark.createDataFrame(
        rows, f"{names}, json string, url string, hexed string, nothing string"
    )
    return frame.repartition(1).sortWithinPartitions("number", ascending=False)


# Its first record fails: an error has no other record.
NEVER = {"raise_error(word)"}


@pytest.mark.slow
@pytest.mark.parametrize("sql", FAILING)
def test_whatever_fails_inside_is_told_and_ends_no_job(records: DataFrame, sql: str) -> None:
    found = records.selectExpr(
        "word", f"{build_failure_condition(sql)} AS failed", "number + 1 AS other"
    ).collect()
    expected = [("7", sql in NEVER, 2), ("abc", True, 1)]
    assert [tuple(row) for row in found] == expected
    with pytest.raises(Exception, match=r"."):
        records.selectExpr(sql).collect()


@pytest.mark.parametrize("sql", RIGHT)
def test_what_has_a_result_or_is_null_does_not_fail(records: DataFrame, sql: str) -> None:
    found = records.selectExpr(f"{build_failure_condition(sql)} AS failed").collect()
    assert [row.failed for row in found] == [False, False]


def test_a_part_that_columns_share_is_not_computed_outside_of_what_tries_it(
    records: DataFrame,
) -> None:
    guarded = f"CASE WHEN {build_failure_condition('int(word)')} THEN NULL ELSE int(word) END"
    items = [
        f"{guarded} AS a",
        f"{guarded} + 1 AS b",
        f"{build_failure_condition('int(word) + 1')} AS c",
    ]
    found = records.selectExpr(*items).where("a IS NULL OR a > 0").collect()
    assert [tuple(row) for row in found] == [(7, 8, False), (None, None, True)]


def test_a_session_of_our_own_fails_where_that_of_the_caller_gives_nulls(
    spark: SparkSession,
) -> None:
    lenient = spark.newSession()
    lenient.conf.set(ANSI, "false")
    question = "SELECT int(word) AS found FROM VALUES ('abc') AS t(word)"
    tried = (
        f"SELECT {build_failure_condition('int(word)')} AS failed FROM VALUES ('abc') AS t(word)"
    )
    assert lenient.sql(question).collect()[0].found is None
    assert not lenient.sql(tried).collect()[0].failed
    ours = get_strict_session(lenient)
    assert ours.sql(tried).collect()[0].failed
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        ours.sql(question).collect()
    assert lenient.conf.get(ANSI) == "false"


def test_private_names_of_pyspark_are_few_and_there() -> None:
    sources = "".join(inspect.getsource(each) for each in (context, session, frame, home))
    known = set(re.findall(r"\b_[A-Za-z]\w*", sources))
    folder = Path(inspect.getfile(omnigraph)).parent
    files = [path for path in folder.rglob("*.py") if "pyspark" in path.read_text()]
    used = {name for path in files for name in _iter_private_names(path)}
    assert used & known == PRIVATE.keys()


def _iter_private_names(path: Path) -> Iterator[str]:
    """Names with an underscore that a module uses of something else than itself."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names = [name]
            case ast.ImportFrom(module=str(module)) if module.startswith("pyspark"):
                names = [each.name for each in node.names]
            case _:
                continue
        yield from (
            each
            for each in names
            if each.isidentifier() and each.startswith("_") and not each.startswith("__")
        )
