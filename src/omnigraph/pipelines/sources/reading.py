"""A frame of what a survey found, for as long as it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from omnigraph.pipelines.definition import (
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    Source,
)
from omnigraph.pipelines.origins.numbering import PART, ROW
from omnigraph.pipelines.origins.packing import pin_partition_settings
from omnigraph.pipelines.sources import files, graph_feed, http, kafka, postgres
from omnigraph.pipelines.sources.survey import SourceState
from omnigraph.pipelines.sql import quote_literal, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def open_source(
    source: Source, found: SourceState, spark: SparkSession, *, staging: str | None = None
) -> Iterator[DataFrame]:
    """The records of a source; what they need, such as a snapshot, is held until the end.

    `staging` is the address of a graph that tasks reach too: what only this process can read is
    written beside it. Without one it goes to a folder of this machine.
    """
    match source:
        case FileSource():
            with pin_partition_settings(spark):
                yield files.read_frame(source, found.listing, spark)
        case PostgresSource():
            with postgres.open_frame(source, spark) as rows:
                yield rows
        case HttpSource():
            with http.open_frame(source, spark, staging) as records:
                yield records
        case FeedSource():
            yield graph_feed.read_frame(source, found.position, spark)
        case KafkaSource():
            yield kafka.read_frame(source, found.position, spark)
        case _:
            assert_never(source)


def build_location_sql(source: Source, columns: Sequence[str]) -> str:
    """SQL over a record with these columns: which of a source that is no files it is, for people.

    A column that says so, but that a record does not have once, is left out.
    """
    match source:
        case PostgresSource():
            known = [
                name for name in postgres.find_identity_columns(source) if columns.count(name) == 1
            ]
            items = [f"{quote_literal(f'{name} ')}, {quote_name(name)}" for name in known]
            table = quote_literal(source.table or "a query")
            return f"concat_ws(' ', {', '.join([table, *(f'concat({item})' for item in items)])})"
        case HttpSource():
            return f"concat('page ', {PART}, ' record ', {ROW})"
        case FeedSource():
            return "concat_ws(' ', 'commit', commit, type, id)"
        case KafkaSource():
            return "concat(topic, '/', partition, ' offset ', offset)"
        case FileSource():
            return "''"
        case _:
            assert_never(source)


def require_unchanged(source: Source, found: SourceState) -> None:
    """Refuse a source whose records are not pinned and are not those that a survey found."""
    if isinstance(source, FileSource):
        files.require_unchanged(source, found.listing)
