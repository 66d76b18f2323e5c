"""Ranges that are not as they were claimed, on the broker that the client library brings.

It removes the oldest messages of a partition above 5 MiB by itself. It does not write the markers
of transactions, so one is sent to it as a broker would have written it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition import KafkaSource
from omnigraph.pipelines.sources.kafka_source import (
    _build_options,
    compute_position,
    count_offsets,
    read_ranges,
)

_TOPIC = "people"
_CONTROL = 0x30
_COMMIT = struct.pack(">hh", 0, 1)


class _Broker:
    """A broker and a producer that writes to the first partition of the topic."""

    def __init__(self) -> None:
        self._producer = Producer(
            {
                "test.mock.num.brokers": 1,
                "bootstrap.servers": "mock",
                "log_level": "0",
                "batch.num.messages": 10,
            }
        )
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.server = ",".join(f"{each.host}:{each.port}" for each in brokers)
        self.source = KafkaSource(self.server, (_TOPIC,))

    def produce(self, messages: int, size: int = 10) -> None:
        for _ in range(messages):
            self._producer.produce(_TOPIC, bytes(size), partition=0)
            self._producer.poll(0)
        assert self._producer.flush(20) == 0

    def end_transaction(self) -> None:
        """Append the marker that a transaction leaves: an offset without a message."""
        host, _, port = self.server.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(_marker_request())
            connection.recv(4)

    def close(self) -> None:
        self._producer.flush(10)


def _marker_request() -> bytes:
    value = struct.pack(">hi", 0, 0)
    # Lengths below 64 are one byte, doubled.
    record = bytes([0, 0, 0, 2 * len(_COMMIT)]) + _COMMIT + bytes([2 * len(value)]) + value + b"\0"
    records = bytes([2 * len(record)]) + record
    behind_crc = struct.pack(">hiqqqhii", _CONTROL, 0, 1, 1, 7, 0, -1, 1) + records
    behind_length = struct.pack(">ibI", 0, 2, 0) + behind_crc
    batch = struct.pack(">qi", 0, len(behind_length)) + behind_length
    topic = struct.pack(">h", len(_TOPIC)) + _TOPIC.encode()
    body = struct.pack(">hhii", -1, -1, 10_000, 1) + topic
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    header = struct.pack(">hhih", 0, 3, 1, -1)
    return struct.pack(">i", len(header) + len(body)) + header + body


@contextmanager
def _running() -> Iterator[_Broker]:
    broker = _Broker()
    try:
        yield broker
    finally:
        broker.close()


@pytest.fixture
def brokers() -> Iterator[tuple[_Broker, _Broker]]:
    with ExitStack() as stack:
        yield stack.enter_context(_running()), stack.enter_context(_running())


def _read(broker: _Broker, *asked: int) -> list[int]:
    """The offsets that are read of a range, or of all that there is."""
    ranges: Sequence[tuple[str, int, int, int]] = [(_TOPIC, 0, asked[0], asked[1])]
    numbers = pa.record_batch({"id": pa.array([0], pa.int64())})
    batches = read_ranges(_build_options(broker.source), ranges, iter([numbers]))
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


def test_messages_that_are_removed_behind_a_claim_are_told(
    brokers: tuple[_Broker, _Broker],
) -> None:
    broker, _ = brokers
    broker.produce(20, size=200_000)
    assert _read(broker, 5, 15) == list(range(5, 15))
    broker.produce(40, size=200_000)
    with pytest.raises(
        SourceRefusedError, match=r"does not hold messages 5 to 14 any more"
    ) as caught:
        _read(broker, 5, 15)
    assert caught.value.hint is not None
    assert _read(broker, 50, 60) == list(range(50, 60))


def test_a_topic_that_was_made_anew_is_not_skipped(brokers: tuple[_Broker, _Broker]) -> None:
    broker, anew = brokers
    broker.produce(30)
    claimed = compute_position(broker.source, None)
    assert count_offsets(claimed) == 30
    # To a client, another broker is a cluster whose topics were all made anew.
    anew.produce(10)
    with pytest.raises(
        SourceRefusedError, match=r"people/0 ends at offset 10, but was read up to 30"
    ):
        compute_position(anew.source, claimed)
    with pytest.raises(SourceRefusedError, match="does not hold messages 20 to 29 any more"):
        _read(anew, 20, 30)


def test_partitions_that_are_gone_are_told(brokers: tuple[_Broker, _Broker]) -> None:
    broker, _ = brokers
    broker.produce(1)
    known = compute_position(broker.source, None)
    more = {"ranges": [*known["ranges"], [_TOPIC, 99, 0, 5]]}
    with pytest.raises(SourceRefusedError, match="topic 'people' has no partition 99 any more"):
        compute_position(broker.source, more)


def test_a_partition_that_a_topic_gets_is_read_from_its_beginning(
    brokers: tuple[_Broker, _Broker],
) -> None:
    broker, _ = brokers
    broker.produce(3)
    source = KafkaSource(broker.server, (_TOPIC,), start="now")
    others = [each for each in compute_position(source, None)["ranges"] if each[1] != 0]
    assert count_offsets(compute_position(source, {"ranges": others})) == 3
    assert count_offsets(compute_position(source, None)) == 0


def test_a_range_may_end_with_the_marker_of_a_transaction(
    brokers: tuple[_Broker, _Broker],
) -> None:
    broker, _ = brokers
    broker.produce(3)
    broker.end_transaction()
    claimed = compute_position(broker.source, None)
    assert count_offsets(claimed) == 4
    assert _read(broker, 0, 4) == [0, 1, 2]
    assert count_offsets(compute_position(broker.source, claimed)) == 0
    broker.produce(2)
    assert _read(broker, 0, 4) == [0, 1, 2]
    assert _read(broker, 3, 6) == [4, 5]


@pytest.mark.parametrize("options", [{"security.protocol": "odd"}, {"nothing.such": "1"}])
def test_options_that_the_client_refuses_are_an_error_of_ours(options: dict[str, str]) -> None:
    source = KafkaSource("127.0.0.1:1", (_TOPIC,), options=options)
    with pytest.raises(SourceRefusedError, match="Kafka's options are refused"):
        compute_position(source, None)


def test_no_option_moves_a_range() -> None:
    source = KafkaSource("h:1", (_TOPIC,), options={"auto.offset.reset": "latest"})
    assert _build_options(source)["auto.offset.reset"] == "error"
