"""What there is to read: the position of a source, which its reader then reads and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.pipelines.definition import (
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    Source,
)
from omnigraph.pipelines.sources import files, graph_feed, http, kafka, postgres


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a run reads of a source.

    `position` is what the ledger keeps. `content` says what is in it, if that is known before it
    is read: equal contents are equal records. `state` is for the reader alone.
    """

    position: Any  # Any: JSON, of each kind its own
    content: str | None = None
    listing: Any = None  # Any: of each kind its own
    # Of a followed source, whether there is anything behind the last position.
    is_empty: bool = False


def is_followed(source: Source) -> bool:
    """Whether each run goes on where the last one ended."""
    return isinstance(source, FeedSource | KafkaSource)


def read_source_state(
    source: Source, *, after: Any = None, at: Any = None
) -> SourceState:  # Any: positions
    """Look at a source: of a followed one what is behind a position, or again what is at one."""
    match source:
        case FileSource():
            found = files.list_files(source)
            return SourceState(
                files.describe_position(found), content=files.compute_digest(found), listing=found
            )
        case PostgresSource():
            return SourceState(postgres.describe_position(source))
        case HttpSource():
            return SourceState(http.describe_position(source))
        case FeedSource():
            if at is None:
                position = graph_feed.compute_position(source, after)
            else:
                position = graph_feed.normalize_position(source, at)
            return SourceState(position, is_empty=position["from"] == position["to"])
        case KafkaSource():
            position = kafka.compute_position(source, after) if at is None else at
            return SourceState(position, is_empty=kafka.count_offsets(position) == 0)
        case _:
            assert_never(source)
