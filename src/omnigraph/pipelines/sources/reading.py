"""A frame of what a survey found, for as long as it is used."""

from __future__ import annotations

from collections.abc import Iterator
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
from omnigraph.pipelines.sources import files, graph_feed, http, kafka, postgres
from omnigraph.pipelines.sources.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def opened(source: Source, found: Survey, spark: SparkSession) -> Iterator[DataFrame]:
    """The records of a source; what they need, such as a snapshot, is held until the end."""
    match source:
        case FileSource():
            yield files.frame(source, found.state, spark)
        case PostgresSource():
            with postgres.frame(source, spark) as rows:
                yield rows
        case HttpSource():
            yield http.frame(source, spark)
        case FeedSource():
            yield graph_feed.frame(source, found.position, spark)
        case KafkaSource():
            yield kafka.frame(source, found.position, spark)
        case _:
            assert_never(source)


def require_same(source: Source, found: Survey) -> None:
    """Refuse a source whose records are not pinned and are not those that a survey found."""
    if isinstance(source, FileSource):
        files.require_same(source, found.state)
