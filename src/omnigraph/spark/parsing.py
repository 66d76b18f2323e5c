"""What Spark's parser thinks of texts that are not run: expressions, and declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.pandas.types import from_arrow_schema

from omnigraph.spark.analysis import reason_of, suppress_error_logging, translate_analysis_errors
from omnigraph.spark.failures import FAILURES, format_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_ROUTINE: Final = "UNRESOLVED_ROUTINE"


def find_syntax_error(sql: str, spark: SparkSession) -> str | None:
    """Why a text is no expression over any columns; None for one that may be."""
    # Alone, it may not close what it did not open; in parentheses, it has to be one value.
    return _parse_expression(sql, spark) or _parse_expression(f"({sql})", spark)


def _parse_expression(sql: str, spark: SparkSession) -> str | None:
    try:
        with suppress_error_logging():
            _ = spark.range(0).selectExpr(sql).schema
    except ParseException as failure:
        return reason_of(failure)
    except AnalysisException as failure:
        return _find_unknown_routine(failure)
    except FAILURES as failure:
        return format_failure(failure)
    return None


def _find_unknown_routine(failure: AnalysisException) -> str | None:
    """What is wrong whatever the columns are: a function that there is not."""
    if failure.getCondition() != _NO_ROUTINE:
        return None
    return f"there is no function {(failure.getMessageParameters() or {})['routineName']}"


def build_empty_frame(columns: str | pa.Schema, spark: SparkSession) -> DataFrame:
    """A frame with these columns; `Unresolved` tells why a text declares none."""
    schema = columns if isinstance(columns, str) else from_arrow_schema(columns)
    with translate_analysis_errors():
        return spark.createDataFrame([], schema)
