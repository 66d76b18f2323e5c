"""Messages of Kafka topics in bounded ranges: from where the last run ended to the end of now.

A record has `key`, `value`, `topic`, `partition`, `offset` and `timestamp`; with `columns`, the
value is read as JSON and its members stand beside the others instead of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, TopicPartition

from omnigraph.errors import SourceFailed, SourceRefused
from omnigraph.pipelines.definition import KafkaSource
from omnigraph.pipelines.sources.json_lines import PERMISSIVE, with_corrupt
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIMEOUT_S: Final = 15.0
_BATCH: Final = 10_000
# So many waits in a row without a message are the end of patience.
_WAITS_MAX: Final = 8
_SCHEMA: Final = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        # Spark takes no other unit.
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_COLUMNS: Final = (
    "key string, value string, topic string, partition int, offset long, timestamp timestamp"
)

# A range of offsets: topic, partition, first, and the one behind the last.
Range = tuple[str, int, int, int]


def position(source: KafkaSource, after: Any) -> JsonObject:  # Any: a position, or None
    """The ranges of a run: each partition from where the last one ended."""
    known = {} if after is None else {(each[0], each[1]): each[3] for each in after["ranges"]}
    ranges: list[Range] = []
    with _consumer(source) as consumer:
        for topic in source.topics:
            for number in _partitions(consumer, topic):
                place = TopicPartition(topic, number)
                low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
                first = known.get((topic, number))
                if first is None:
                    first = low if source.start == "beginning" else high
                elif first < low:
                    message = f"{topic}/{number}: messages {first} to {low - 1} were not read"
                    raise SourceRefused(f"{message} before Kafka removed them")
                ranges.append((topic, number, first, high))
    return {
        "kind": "kafka",
        "ranges": [list(each) for each in bounded(ranges, source.messages_max)],
    }


def bounded(ranges: Sequence[Range], messages_max: int) -> list[Range]:
    """The ranges cut so that they hold at most so many messages, each about the same share."""
    share = max(messages_max // max(len(ranges), 1), 1)
    return [(topic, number, low, min(high, low + share)) for topic, number, low, high in ranges]


def count(position: JsonObject) -> int:
    """How many offsets a position covers."""
    return sum(max(high - low, 0) for _, _, low, high in position["ranges"])


def frame(source: KafkaSource, position: JsonObject, spark: SparkSession) -> DataFrame:
    """The messages of a position: one task for each partition of a topic."""
    ranges = [tuple(each) for each in position["ranges"] if each[3] > each[2]]
    task = partial(read_ranges, _options(source), ranges)
    parts = max(len(ranges), 1)
    messages = spark.range(0, len(ranges), 1, parts).mapInArrow(task, _COLUMNS)
    if source.columns is None:
        return messages
    others = [name for name in _SCHEMA.names if name != "value"]
    columns = with_corrupt(source.columns).replace("'", "\\'")
    parsed = f"from_json(value, '{columns}', map('mode', '{PERMISSIVE}')) AS value"
    return messages.selectExpr(*others, parsed).selectExpr(*others, "value.*")


def read_ranges(
    options: Mapping[str, str], ranges: Sequence[Range], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The messages of the ranges whose numbers are in a partition of the job."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _messages(options, ranges[number])


def _messages(options: Mapping[str, str], asked: Range) -> Iterator[pa.RecordBatch]:
    topic, partition, low, high = asked
    consumer = Consumer(dict(options))
    try:
        consumer.assign([TopicPartition(topic, partition, low)])
        waits = 0
        while True:
            # Any: offsets may be missing in its types, which a message that came never lacks
            found: list[Any] = list(consumer.consume(_BATCH, timeout=_TIMEOUT_S / _WAITS_MAX))
            for message in found:
                if message.error() is not None:
                    raise SourceFailed(f"{topic}/{partition}: {message.error().str()}")
            kept = [message for message in found if message.offset() < high]
            if kept:
                yield _batch(kept)
            # Offsets have gaps where messages were compacted away, so the place says where it ends.
            place = consumer.position([TopicPartition(topic, partition)])[0].offset
            if place >= high or len(kept) < len(found):
                return
            waits = 0 if found else waits + 1
            if waits >= _WAITS_MAX:
                raise SourceFailed(f"{topic}/{partition}: no message came before offset {high}")
    except KafkaException as failure:
        raise SourceFailed(f"Kafka cannot be read: {failure.args[0].str()}") from failure
    finally:
        consumer.close()


def _batch(messages: Sequence[Any]) -> pa.RecordBatch:  # Any: the library has no types
    columns = {
        "key": [_text(message.key()) for message in messages],
        "value": [_text(message.value()) for message in messages],
        "topic": [message.topic() for message in messages],
        "partition": [message.partition() for message in messages],
        "offset": [message.offset() for message in messages],
        "timestamp": [1000 * message.timestamp()[1] for message in messages],
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


@contextmanager
def _consumer(source: KafkaSource) -> Iterator[Any]:  # Any: the library has no types
    consumer = Consumer(_options(source))
    try:
        yield consumer
    except KafkaException as failure:
        raise SourceFailed(f"Kafka cannot be read: {failure.args[0].str()}") from failure
    finally:
        consumer.close()


def _partitions(consumer: Any, topic: str) -> list[int]:  # Any: the library has no types
    found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    if found.error is not None:
        raise SourceRefused(f"topic '{topic}': {found.error.str()}")
    return sorted(found.partitions)


def _options(source: KafkaSource) -> dict[str, str]:
    return {
        "group.id": "omnigraph",
        "enable.auto.commit": "false",
        "allow.auto.create.topics": "false",
        # Nothing of the client's own goes to the terminal of a command.
        "log_level": "0",
        **source.options,
        "bootstrap.servers": source.servers,
    }
