"""What Spark's parser thinks of texts that are not run: expressions, and declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.pandas.types import from_arrow_schema

from omnigraph.spark.analysis import reason_of, resolving, unlogged
from omnigraph.spark.failures import FAILURES, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_ROUTINE: Final = "UNRESOLVED_ROUTINE"


def misread(sql: str, spark: SparkSession) -> str | None:
    """Why a text is no expression over any columns; None for one that may be."""
    # Alone, it may not close what it did not open; in parentheses, it has to be one value.
    return _misread(sql, spark) or _misread(f"({sql})", spark)


def _misread(sql: str, spark: SparkSession) -> str | None:
    try:
        with unlogged():
            _ = spark.range(0).selectExpr(sql).schema
    except ParseException as failure:
        return reason_of(failure)
    except AnalysisException as failure:
        return _routine(failure)
    except FAILURES as failure:
        return told(failure)
    return None


def _routine(failure: AnalysisException) -> str | None:
    """What is wrong whatever the columns are: a function that there is not."""
    if failure.getCondition() != _NO_ROUTINE:
        return None
    return f"there is no function {(failure.getMessageParameters() or {})['routineName']}"


def without_rows(columns: str | pa.Schema, spark: SparkSession) -> DataFrame:
    """A frame with these columns; `Unresolved` tells why a text declares none."""
    schema = columns if isinstance(columns, str) else from_arrow_schema(columns)
    with resolving():
        return spark.createDataFrame([], schema)
