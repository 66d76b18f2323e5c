"""JSON texts as frames: columns as declared, or as Spark finds them in the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph.diagnostics.shown import shown
from omnigraph.errors import SourceRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT_COLUMN: Final = "value"
CORRUPT: Final = "_corrupt_record"
_STRICT: Final = "FAILFAST"
_SHOWN_MAX: Final = 5


def frame_of_texts(texts: pa.Array, columns: str | None, spark: SparkSession) -> DataFrame:
    """The records of texts that this process holds."""
    table = pa.table({TEXT_COLUMN: texts.cast(pa.string())})
    return frame_of_lines(spark.createDataFrame(table), columns, spark)


def frame_of_lines(lines: DataFrame, columns: str | None, spark: SparkSession) -> DataFrame:
    """The records of a frame of texts; a text that is no JSON is refused."""
    if columns is not None:
        return spark.read.json(lines, schema=columns, mode=_STRICT)
    return without_corrupt(spark.read.json(lines), "the source")


def without_corrupt(records: DataFrame, name: str) -> DataFrame:
    """Records whose columns were found in their texts; a text that is no JSON is refused."""
    if CORRUPT not in records.columns:
        return records
    bad = records.select(CORRUPT).where(f"{CORRUPT} IS NOT NULL").limit(_SHOWN_MAX).toArrow()
    told = "; ".join(shown(text) for text in bad[CORRUPT].to_pylist())
    raise SourceRefused(f"{name} holds records that are no JSON objects: {told}")
