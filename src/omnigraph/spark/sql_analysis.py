"""Analyses expressions in Spark before they run: their types, or why they are invalid."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import Observation, functions
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from omnigraph.spark.spark_failures import FAILURES, format_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS: Final = "rows"
_CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)

# PySpark writes what it raises to standard error too, with these.
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_is_expected: Final[ContextVar[bool]] = ContextVar("_is_expected", default=False)
_NO_ROUTINE: Final = "UNRESOLVED_ROUTINE"


class UnresolvedError(Exception):
    """An expression that Spark cannot understand over these columns; the text says why."""


def select_items(frame: DataFrame, items: Sequence[str]) -> DataFrame:
    """A select of SQL items, analysed at once."""
    with translate_analysis_errors():
        found = frame.selectExpr(*items)
        _ = found.schema
    return found


def filter_rows(frame: DataFrame, condition: str) -> DataFrame:
    """The rows for which a condition of SQL is true, analysed at once."""
    with translate_analysis_errors():
        found = frame.where(condition)
        _ = found.schema
    return found


@contextmanager
def translate_analysis_errors() -> Iterator[None]:
    """Raise what Spark does not understand as `Unresolved`, and log nothing."""
    try:
        with suppress_error_logging():
            yield
    except (AnalysisException, ParseException) as failure:
        raise UnresolvedError(reason_of(failure)) from failure


@contextmanager
def suppress_error_logging() -> Iterator[None]:
    """Failures that are expected are not written to standard error by PySpark."""
    for name in _LOGGERS:
        # A logger has it once, however often it is added, and for good: another thread may use it.
        PySparkLogger.getLogger(name).addFilter(_is_logged)
    before = _is_expected.set(True)
    try:
        yield
    finally:
        _is_expected.reset(before)


def _is_logged(_record: logging.LogRecord) -> bool:
    return not _is_expected.get()


def get_arrow_types(frame: DataFrame) -> dict[str, pa.DataType]:
    """The Arrow type of each column, without reading any row."""
    return {
        field.name: to_arrow_type(field.dataType, timezone="UTC") for field in frame.schema.fields
    }


def get_spark_types(frame: DataFrame) -> dict[str, str]:
    """The type of each column as Spark writes it."""
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def observe_count(frame: DataFrame) -> tuple[DataFrame, Callable[[], int | None]]:
    """The same rows, and how many there are: to be asked after a job that read all of them."""
    seen = Observation()
    watched = frame.observe(seen, functions.count(functions.lit(1)).alias(_ROWS))

    def get_count() -> int | None:
        try:
            return seen.get.get(_ROWS)
        except FAILURES:
            # Spark counted nothing where it knew that no row was needed, and what a job wrote is
            # written, whatever becomes of its numbers.
            return None

    return watched, get_count


def reason_of(failure: Exception) -> str:
    """The sentence of a failure, without its class, its state and its plan."""
    text = str(failure).strip().split("\n\n")[0].split(";\n")[0]
    first = text.splitlines()[0] if text else type(failure).__name__
    return _STATE.sub("", _CLASS.sub("", first)).strip()


def find_syntax_error(sql: str, spark: SparkSession) -> str | None:
    """Why a text is not an expression over any columns; None for one that may be."""
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
    """A frame with these columns; `Unresolved` says why a text declares none."""
    schema = columns if isinstance(columns, str) else from_arrow_schema(columns)
    with translate_analysis_errors():
        return spark.createDataFrame([], schema)
