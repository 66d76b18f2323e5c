"""Numbers beside every record, by which it is found again if it cannot be written.

`part` and `row` together say which record it is, in every reading of the same source; records of
files that Spark opens have their file and their block too. They cost a few bytes of every row; the
lines of files, which Spark does not count, are looked for when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.pipelines.mapping.mapping_sql import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREFIX: Final = "__origin_"
PART: Final = f"{PREFIX}part"
ROW: Final = f"{PREFIX}row"
FILE: Final = f"{PREFIX}file"
BLOCK: Final = f"{PREFIX}block"
# Spark's own numbers of rows: those of a partition follow each other, from this power on.
_PARTITION_BITS: Final = 33
_NUMBER: Final = "monotonically_increasing_id()"


def is_record_id_column(column: str) -> bool:
    """Whether a column is one of these."""
    return column.startswith(PREFIX)


def number_by_file(records: DataFrame, format_: str) -> DataFrame:
    """Records of files that Spark opens; only Parquet counts its rows, others in their blocks."""
    if format_ == "parquet":
        row = f"_metadata.row_index AS {ROW}"
        part = f"xxhash64(_metadata.file_path) AS {PART}"
        return records.selectExpr("*", part, row, f"_metadata.file_path AS {FILE}")
    return number_by_block(add_block_columns(records))


def add_block_columns(records: DataFrame) -> DataFrame:
    """Records of files with the file and the block of each."""
    block = f"_metadata.file_block_start AS {BLOCK}"
    return records.selectExpr("*", f"_metadata.file_path AS {FILE}", block)


def number_by_block(records: DataFrame) -> DataFrame:
    """Records with a file and a block, by their numbers in their partitions."""
    # They are the same in another job only if that packs the files in the same way.
    return records.selectExpr("*", f"xxhash64({FILE}, {BLOCK}) AS {PART}", f"{_NUMBER} AS {ROW}")


def number_by_task(records: DataFrame) -> DataFrame:
    """Records that tasks of ours read, each of them one file, by their numbers in it from 0."""
    part = f"shiftright({_NUMBER}, {_PARTITION_BITS}) AS {PART}"
    return records.selectExpr("*", part, f"{_NUMBER} & {2**_PARTITION_BITS - 1}L AS {ROW}")


def number_by_content(records: DataFrame) -> DataFrame:
    """Records of a source without an order, by what is in them: equal ones are the same."""
    columns = ", ".join(map(quote_name, records.columns))
    return records.selectExpr("*", f"0L AS {PART}", f"xxhash64({columns}) AS {ROW}")


def number_by_values(records: DataFrame, *, part: str, row: str) -> DataFrame:
    """Records that say themselves which they are, by SQL over them."""
    return records.selectExpr("*", f"{part} AS {PART}", f"{row} AS {ROW}")
