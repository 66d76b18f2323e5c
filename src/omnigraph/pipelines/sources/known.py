"""The columns of a source, as far as they are known before it is asked.

A definition declares them, the kind of the source says them, or the first of its files on this
machine has them in its header. Services, databases and stores elsewhere are not asked.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, assert_never

from omnigraph.pipelines.definition import (
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    Source,
)
from omnigraph.pipelines.encodings import UTF_8
from omnigraph.pipelines.sources import files, graph_feed, kafka
from omnigraph.pipelines.sources.json_lines import with_corrupt_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Formats whose files begin or end with their columns.
_HEADER_FORMATS: Final = ("csv", "parquet", "orc")


def find_declared_columns(source: Source) -> str | None:
    """The columns of the records of a source, as Spark writes them, if its definition says them."""
    match source:
        case FileSource() | HttpSource():
            return None if source.columns is None else with_corrupt_column(source.columns)
        case FeedSource():
            return graph_feed.find_declared_columns(source)
        case KafkaSource():
            return kafka.build_declared_columns(source)
        case PostgresSource():
            return None
        case _:
            assert_never(source)


def find_header_files(source: Source) -> files.FileListing | None:
    """The files of a source on this machine, if the first of them tells its columns."""
    if not isinstance(source, FileSource) or source.columns is not None:
        return None
    # Spark, which looks at headers, knows few encodings.
    if source.encoding != UTF_8:
        return None
    if any("://" in path for path in source.paths) or _is_json_source(source):
        return None
    found = files.list_files(source)
    return found if found.format in _HEADER_FORMATS else None


def read_header_frame(
    source: FileSource, found: files.FileListing, spark: SparkSession
) -> DataFrame:
    """The columns of the first file of a source; no row is read."""
    return files.read_local_frame(source, [found.files[0].uri], found.format, spark)


def _is_json_source(source: FileSource) -> bool:
    """Whether there is no need to look for the files: those of this format have no header."""
    if source.format is not None:
        return source.format not in _HEADER_FORMATS
    return all(files.ENDINGS.get(PurePath(path).suffix) == "json" for path in source.paths)
