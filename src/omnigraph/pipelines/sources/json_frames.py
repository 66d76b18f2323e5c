"""JSON texts as frames: columns as declared, or as Spark finds them in the texts.

A text that is not a JSON object, or that does not have the declared columns, is a record without
values whose text is in a column of its own: the mapping refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.errors import SourceRefusedError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.pipelines.mapping.row_guards import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT_COLUMN: Final = "value"
PERMISSIVE: Final = "PERMISSIVE"
_SHOWN_MAX: Final = 5
# In Java's spelling: half of a character, and what looks like one but is not.
_HALF_ESCAPE: Final = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_WHOLE_ESCAPES: Final = r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_MARK: Final = "half of a character is escaped: "


def decode_numbered_lines(lines: DataFrame, columns: str | None, spark: SparkSession) -> DataFrame:
    """The records of a frame of texts with other columns beside them, which stay there."""
    from pyspark.sql import functions  # noqa: PLC0415 — Spark is here by now

    others = [name for name in lines.columns if name != TEXT_COLUMN]
    records = decode_lines(lines.select(TEXT_COLUMN), columns, spark)
    found = _require_any_record(records).schema
    values = functions.from_json(TEXT_COLUMN, found, {"mode": PERMISSIVE}).alias(TEXT_COLUMN)
    return mark_half_characters(lines).select(*others, values).select(*others, f"{TEXT_COLUMN}.*")


def decode_lines(lines: DataFrame, columns: str | None, spark: SparkSession) -> DataFrame:
    """The records of a frame of texts."""
    lines = mark_half_characters(lines)
    if columns is not None:
        return spark.read.json(lines, schema=with_corrupt_column(columns), mode=PERMISSIVE)
    return spark.read.json(lines)


def mark_half_characters(lines: DataFrame) -> DataFrame:
    """Texts of which those that escape half of a character are not JSON: no text can hold it.

    Spark would put a question mark in its place.
    """
    from pyspark.sql import functions  # noqa: PLC0415 — Spark is here by now

    text = functions.col(TEXT_COLUMN)
    others = functions.regexp_replace(text, _WHOLE_ESCAPES, " ")
    is_bad = text.rlike(_HALF_ESCAPE) & others.rlike(_HALF_ESCAPE)
    marked = functions.concat(functions.lit(_HALF_MARK), text)
    return lines.withColumn(TEXT_COLUMN, functions.when(is_bad, marked).otherwise(text))


def with_corrupt_column(columns: str) -> str:
    """Declared columns, and one more for the text of a record that does not have them."""
    return f"{columns}, `{CORRUPT}` string"


def _require_any_record(records: DataFrame) -> DataFrame:
    """Records whose columns were found in their texts; some text must be a JSON object."""
    if records.columns != [CORRUPT]:
        return records
    # Spark does not read this column alone unless something else is computed with it.
    texts = records.selectExpr(f"make_valid_utf8({CORRUPT}) AS {CORRUPT}", f"length({CORRUPT})")
    bad = texts.limit(_SHOWN_MAX).toArrow()
    shown = "; ".join(sanitize_text(text) for text in bad[CORRUPT].to_pylist())
    raise SourceRefusedError(f"the source holds records that are not JSON objects: {shown}")
