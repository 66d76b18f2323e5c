"""Tables of sources of dlt: a run extracts them anew, as dlt normalizes them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import (
    OmnigraphError,
    SourceFailedError,
    SourceRefusedError,
)
from omnigraph.errors.query_errors import require_extra
from omnigraph.ids import generate_ulid
from omnigraph.lang.quoting import sanitize_message
from omnigraph.pipelines.config.definition import DltSource
from omnigraph.pipelines.mapping.record_ids import number_by_content
from omnigraph.pipelines.sources.spark_source import find_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What dlt puts between the name of a table and that of a list in its records.
_NESTED: Final = "__"


def require_function(source: DltSource) -> str:
    """The function of a source; without one its tables only come from a pipeline of dlt."""
    if source.function is not None:
        return source.function
    raise SourceRefusedError(
        f"table '{source.table}' is delivered by dlt",
        hint="run the pipeline of dlt whose destination is this definition, or give a 'function'",
    )


def read_frame(source: DltSource, spark: SparkSession) -> DataFrame:
    """The records of a table."""
    try:
        rows = extract_table(source)
    except OmnigraphError:
        raise
    except Exception as failure:
        # dlt puts the step that failed around what happened.
        cause = failure.__cause__ or failure
        reason = sanitize_message(f"{type(cause).__name__}: {cause}")
        raise SourceFailedError(f"{source.function} failed: {reason}") from failure
    return number_by_content(spark.createDataFrame(rows))


def extract_table(source: DltSource) -> pa.Table:
    """Run a source of dlt with a pipeline that ends with it, and keep nothing but the table."""
    # dlt reports what it does to its makers; a run of ours does so if it is asked to.
    os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")
    with require_extra("dlt"):
        import dlt  # noqa: PLC0415 — an optional library

        from omnigraph.pipelines.sources import dlt_packages  # noqa: PLC0415 — it imports dlt
    found = find_function(require_function(source), source.folder)(**source.options)
    with tempfile.TemporaryDirectory(prefix="omnigraph-dlt-") as folder:
        pipeline = dlt.pipeline(
            pipeline_name=f"omnigraph_{generate_ulid()}",
            pipelines_dir=str(Path(folder, "work")),
            destination=dlt_packages.PackageDestination(str(Path(folder, "packages"))),
        )
        try:
            info = pipeline.run(_select_resource(found, source.table))
            schema = pipeline.default_schema
        finally:
            pipeline.deactivate()
        tables = [
            pq.read_table(
                dlt_packages.list_table_files(Path(folder, "packages", each), source.table, schema)
            )
            for each in info.loads_ids or [""]
        ]
        return pa.concat_tables(tables, promote_options="permissive")


def _select_resource(found: Any, table: str) -> Any:  # Any: what dlt runs
    """The resource of a table alone, if it has the name of the table."""
    root = table.partition(_NESTED)[0]
    if root in getattr(found, "resources", ()):
        return found.with_resources(root)
    return found
