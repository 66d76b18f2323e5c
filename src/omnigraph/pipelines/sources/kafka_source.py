"""Messages of Kafka topics in bounded ranges: from where the last run ended to the end of now.

A record has `key`, `value`, `topic`, `partition`, `offset` and `timestamp`; with `columns`, the
value is read as JSON and its members stand beside the others instead of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import KafkaSource
from omnigraph.pipelines.config.text_encodings import REPLACEMENT, decode_text
from omnigraph.pipelines.mapping.record_ids import PART, ROW, number_by_values
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources.json_frames import (
    PERMISSIVE,
    mark_half_characters,
    with_corrupt_column,
)
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIMEOUT_S: Final = 15.0
_BATCH: Final = 10_000
# The client waits so long for a batch to fill, also after the last message.
_WAIT_S: Final = 0.25
# So many waits in a row without a message are the end of patience.
_WAITS_MAX: Final = 60
_SCHEMA: Final = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        # Spark takes no other unit.
        ("timestamp", pa.timestamp("us", "UTC")),
        # The text of a message that is not text.
        (CORRUPT, pa.string()),
    ]
)
_COLUMNS: Final = (
    "key string, value string, topic string, partition int, offset long, timestamp timestamp,"
    f" `{CORRUPT}` string"
)

# The library's names for events of its own begin like private ones.
_PARTITION_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 — see above
_LOST_OFFSET_CODES: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001 — see above
# What to do where messages of a range can never be read any more.
_LOST_HINT: Final = "a pipeline of another name begins anew, at its 'start'"

# A range of offsets: topic, partition, first, and the one after the last.
OffsetRange = tuple[str, int, int, int]


def compute_position(source: KafkaSource, after: Any) -> JsonObject:  # Any: a position, or None
    """The ranges of a run: each partition from where the last one ended."""
    known = {} if after is None else {(each[0], each[1]): each[3] for each in after["ranges"]}
    ranges: list[OffsetRange] = []
    with _open_consumer(_build_options(source)) as consumer:
        for topic in source.topics:
            ends = {number: end for (name, number), end in known.items() if name == topic}
            partitions = _list_partitions(consumer, topic)
            if gone := sorted(ends.keys() - set(partitions)):
                message = f"topic '{topic}' has no partition {gone[0]} any more: it was made anew"
                raise SourceRefusedError(message, hint=_LOST_HINT)
            for number in partitions:
                place = TopicPartition(topic, number)
                low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
                # A partition that a topic got meanwhile has only new messages.
                is_whole = bool(ends) or source.start == "beginning"
                first = ends.get(number, low if is_whole else high)
                _require_offset(f"{topic}/{number}", first, (low, high))
                ranges.append((topic, number, first, high))
    return {
        "kind": "kafka",
        "ranges": [list(each) for each in limit_ranges(ranges, source.messages_max)],
    }


def _require_offset(name: str, first: int, held: tuple[int, int]) -> None:
    """Refuse to go on at an offset that a partition does not hold."""
    low, high = held
    if first < low:
        message = f"{name}: messages {first} to {low - 1} were not read before Kafka removed them"
        raise SourceRefusedError(message, hint=_LOST_HINT)
    if first > high:
        message = f"{name} ends at offset {high}, but was read up to {first}: it was made anew"
        raise SourceRefusedError(message, hint=_LOST_HINT)


def limit_ranges(ranges: Sequence[OffsetRange], messages_max: int) -> list[OffsetRange]:
    """The ranges cut so that they hold at most so many messages, each about the same share."""
    share = max(messages_max // max(len(ranges), 1), 1)
    return [(topic, number, low, min(high, low + share)) for topic, number, low, high in ranges]


def count_offsets(position: JsonObject) -> int:
    """How many offsets a position covers."""
    return sum(max(high - low, 0) for _, _, low, high in position["ranges"])


def build_declared_columns(source: KafkaSource) -> str:
    """The columns of a record, as Spark writes them."""
    if source.columns is None:
        return _COLUMNS
    others = _COLUMNS.removesuffix(f", `{CORRUPT}` string")
    return others.replace("value string", with_corrupt_column(source.columns))


def read_frame(source: KafkaSource, position: JsonObject, spark: SparkSession) -> DataFrame:
    """The messages of a position: one task for each partition of a topic."""
    ranges = [tuple(each) for each in position["ranges"] if each[3] > each[2]]
    task = partial(read_ranges, _build_options(source), ranges)
    parts = max(len(ranges), 1)
    messages = spark.range(0, len(ranges), 1, parts).mapInArrow(task, _COLUMNS)
    messages = number_by_values(messages, part="xxhash64(topic, partition)", row="offset")
    if source.columns is None:
        return messages
    others = [name for name in _SCHEMA.names if name not in ("value", CORRUPT)]
    columns = with_corrupt_column(source.columns).replace("'", "\\'")
    parsed = f"from_json(value, '{columns}', map('mode', '{PERMISSIVE}')) AS value"
    others += [PART, ROW]
    messages = mark_half_characters(messages)
    return messages.selectExpr(*others, parsed).selectExpr(*others, "value.*")


def read_ranges(
    options: Mapping[str, str], ranges: Sequence[OffsetRange], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The messages of the ranges whose numbers are in a partition of the job."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _read_messages(options, ranges[number])


def _read_messages(options: Mapping[str, str], asked: OffsetRange) -> Iterator[pa.RecordBatch]:
    topic, partition, low, high = asked
    with _open_consumer(options) as consumer:
        consumer.assign([TopicPartition(topic, partition, low)])
        place, waits = low, 0
        while place < high:
            # Any: offsets may be missing in its types, which a message that came never lacks
            found: list[Any] = list(consumer.consume(_BATCH, timeout=_WAIT_S))
            kept = [each for each in found if each.error() is None and each.offset() < high]
            if any(each.offset() < low for each in kept):
                raise SourceFailedError(
                    f"{topic}/{partition}: Kafka answers with offsets below {low}"
                )
            if kept:
                yield _build_batch(kept)
            # Offsets have gaps where messages were compacted away and after transactions, so
            # that only the place of the next message says where a range ends.
            place = max([place, *(_compute_next_offset(each, asked) for each in found)])
            waits = 0 if kept else waits + 1
            if waits >= _WAITS_MAX:
                raise SourceFailedError(
                    f"{topic}/{partition}: no message came before offset {high}"
                )


def _compute_next_offset(message: Any, asked: OffsetRange) -> int:  # Any: the library has no types
    """The offset after a message, or the one where the end of a partition was met."""
    topic, partition, low, high = asked
    error = message.error()
    if error is None:
        return int(message.offset()) + 1
    if error.code() == _PARTITION_END:
        return int(message.offset())
    if error.code() in _LOST_OFFSET_CODES:
        problem = f"{topic}/{partition}: Kafka does not hold messages {low} to {high - 1} any more"
        raise SourceRefusedError(problem, hint=_LOST_HINT)
    raise SourceFailedError(f"{topic}/{partition}: {error.str()}")


def _build_batch(messages: Sequence[Any]) -> pa.RecordBatch:  # Any: the library has no types
    values = [_decode_message_text(message.value()) for message in messages]
    columns = {
        # Keys are often numbers of some program: they do not make a message unreadable.
        "key": [_decode_message_text(message.key()).or_none for message in messages],
        "value": [value.display_text for value in values],
        CORRUPT: [None if value.is_text else value.display_text for value in values],
        "topic": [message.topic() for message in messages],
        "partition": [message.partition() for message in messages],
        "offset": [message.offset() for message in messages],
        "timestamp": [1000 * message.timestamp()[1] for message in messages],
    }
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class _DecodedText:
    """Bytes of a message as a text to show, and whether they are text in UTF-8."""

    display_text: str | None
    is_text: bool = True

    @property
    def or_none(self) -> str | None:
        return self.display_text if self.is_text else None


def _decode_message_text(data: bytes | None) -> _DecodedText:
    if data is None:
        return _DecodedText(None)
    text, is_text = decode_text(data)
    # What cannot be read as JSON either.
    return _DecodedText(text if is_text else f"{REPLACEMENT}{text}", is_text)


@contextmanager
def _open_consumer(options: Mapping[str, str]) -> Iterator[Any]:  # Any: the library has no types
    try:
        consumer = Consumer(dict(options))
    except (KafkaException, ValueError, TypeError) as failure:
        raise SourceRefusedError(
            f"Kafka's options are refused: {_format_failure(failure)}"
        ) from failure
    try:
        yield consumer
    except KafkaException as failure:
        raise SourceFailedError(f"Kafka cannot be read: {_format_failure(failure)}") from failure
    finally:
        consumer.close()


def _format_failure(failure: Exception) -> str:
    reason = failure.args[0] if failure.args else failure
    return str(reason.str() if isinstance(reason, KafkaError) else reason)


def _list_partitions(consumer: Any, topic: str) -> list[int]:  # Any: the library has no types
    found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
    if found.error is not None:
        raise SourceRefusedError(f"topic '{topic}': {found.error.str()}")
    return sorted(found.partitions)


def _build_options(source: KafkaSource) -> dict[str, str]:
    return {
        "group.id": "omnigraph",
        "enable.auto.commit": "false",
        "allow.auto.create.topics": "false",
        # Nothing of the client's own goes to the terminal of a command.
        "log_level": "0",
        **source.options,
        "bootstrap.servers": source.servers,
        # An offset that is not there any more is an error, never a reason to go on elsewhere.
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
    }
