"""Records from any format of Spark, from a query over other sources, or from Python code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.errors import OmnigraphError, SourceFailedError, SourceRefusedError
from omnigraph.lang.quoting import sanitize_message
from omnigraph.pipelines.config.definition import PythonSource, Source, SparkSource, SqlSource
from omnigraph.pipelines.mapping.mapping_sql import quote_literal, quote_name
from omnigraph.pipelines.mapping.record_ids import is_record_id_column, number_by_content
from omnigraph.pipelines.mapping.row_guards import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Marks a module of a file that a definition names.
_LOADED: Final = "__omnigraph_source__"


def sort_queries_last(sources: Mapping[str, Source]) -> list[str]:
    """The names of sources in the order in which they are opened: queries read the others."""
    return sorted(sources, key=lambda name: isinstance(sources[name], SqlSource))


def read_frame(source: SparkSource, spark: SparkSession) -> DataFrame:
    """What a data source of Spark reads."""
    reader = spark.read.format(source.format).options(**source.options)
    if source.columns is not None:
        reader = reader.schema(source.columns)
    paths = list(source.paths)
    return number_by_content(reader.load(paths) if len(paths) > 1 else reader.load(*paths))


@contextmanager
def open_query(
    source: SqlSource, spark: SparkSession, others: Mapping[str, DataFrame]
) -> Iterator[DataFrame]:
    """The rows of a query; the other sources are views of the session until the end."""
    made: list[str] = []
    try:
        for name, records in others.items():
            # A view of the caller is not replaced: Spark refuses a second one.
            _hide_numbers(name, records).createTempView(quote_name(name))
            made.append(name)
        yield number_by_content(spark.sql(source.query))
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def _hide_numbers(name: str, records: DataFrame) -> DataFrame:
    """Records without the columns of ours; one that cannot be read fails the query."""
    if CORRUPT in records.columns:
        reason = quote_literal(f"source '{name}' has a record that cannot be read")
        records = records.where(f"assert_true({quote_name(CORRUPT)} IS NULL, {reason}) IS NULL")
    hidden = [each for each in records.columns if is_record_id_column(each) or each == CORRUPT]
    return records.drop(*hidden)


def call_function(source: PythonSource, spark: SparkSession) -> DataFrame:
    """What a function returns, as a frame."""
    function = find_function(source.function, source.folder)
    try:
        found = function(spark, dict(source.options))
        frame = found if hasattr(found, "sparkSession") else _read_arrow(found, spark)
    except OmnigraphError:
        raise
    except Exception as failure:
        reason = sanitize_message(f"{type(failure).__name__}: {failure}")
        raise SourceFailedError(f"{source.function} failed: {reason}") from failure
    return number_by_content(frame)


def _read_arrow(found: Any, spark: SparkSession) -> DataFrame:  # Any: what a function returned
    if isinstance(found, pa.Table):
        return spark.createDataFrame(found)
    batches: list[pa.RecordBatch] = []
    for each in found if isinstance(found, Iterable) else (found,):
        batches += each.to_batches() if isinstance(each, pa.Table) else [each]
    if not batches or not all(isinstance(each, pa.RecordBatch) for each in batches):
        raise SourceRefusedError(
            "the function returned no DataFrame, Arrow table or batches",
            hint="an Arrow table without rows has columns, and is an answer",
        )
    return spark.createDataFrame(pa.Table.from_batches(batches))


def find_function(named: str, folder: str) -> Any:  # Any: a function of the user
    """The function that is named as `module:name`: of a file in the folder, or installed."""
    module_name, _, name = named.partition(":")
    beside = Path(folder, *module_name.split(".")).with_suffix(".py")
    try:
        if beside.is_file():
            module = _load_file(module_name, beside)
        else:
            module = importlib.import_module(module_name)
        return getattr(module, name)
    except (ImportError, AttributeError, SyntaxError, OSError) as failure:
        message = f"function '{named}' is not found: {sanitize_message(str(failure))}"
        hint = f"write it in {beside}, or install its module"
        raise SourceRefusedError(message, hint=hint) from failure


def _load_file(name: str, file: Path) -> ModuleType:
    """A module of a file, as it is now: two definitions may have files of one name."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "a file of Python has a loader"
    assert spec.loader is not None, "as above"
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(name)
    if known is None or hasattr(known, _LOADED):
        # Decorators look for the module of a function here. One that is installed stays.
        setattr(module, _LOADED, True)
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
