"""Against the broker that the client library brings for tests, which speaks the real protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import KafkaSource
from omnigraph.pipelines.sources.kafka_source import (
    _build_options,
    compute_position,
    count_offsets,
    limit_ranges,
    read_ranges,
)

QUIET = {"log_level": "0"}


@pytest.fixture
def broker() -> Iterator[tuple[str, Producer]]:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", **QUIET})
    found = producer.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{each.host}:{each.port}" for each in found), producer
    producer.flush(10)


def _produce(producer: Producer, numbers: range) -> None:
    for number in numbers:
        producer.produce("people", json.dumps({"id": number}), key=str(number))
    assert producer.flush(10) == 0


def _read(source: KafkaSource, found: dict[str, Any]) -> list[int]:
    ranges = [tuple(each) for each in found["ranges"] if each[3] > each[2]]
    numbers = pa.record_batch({"id": pa.array(range(len(ranges)), pa.int64())})
    batches = read_ranges(_build_options(source), ranges, iter([numbers]))
    return sorted(
        json.loads(value)["id"] for batch in batches for value in batch["value"].to_pylist()
    )


@pytest.mark.slow
def test_a_run_goes_on_where_the_last_one_ended(broker: tuple[str, Producer]) -> None:
    servers, producer = broker
    source = KafkaSource(servers, ("people",))
    _produce(producer, range(50))
    first = compute_position(source, None)
    assert count_offsets(first) == 50
    _produce(producer, range(50, 80))
    # What came meanwhile is not in the position, however late it is read.
    assert _read(source, first) == list(range(50))
    assert _read(source, first) == list(range(50))
    second = compute_position(source, first)
    assert _read(source, second) == list(range(50, 80))
    assert count_offsets(compute_position(source, second)) == 0


def test_a_first_run_may_start_at_the_end(broker: tuple[str, Producer]) -> None:
    servers, producer = broker
    _produce(producer, range(5))
    source = KafkaSource(servers, ("people",), start="now")
    first = compute_position(source, None)
    assert count_offsets(first) == 0
    _produce(producer, range(5, 7))
    assert _read(source, compute_position(source, first)) == [5, 6]


def test_a_run_takes_no_more_messages_than_it_may() -> None:
    ranges = [("t", 0, 0, 100), ("t", 1, 50, 60)]
    assert limit_ranges(ranges, 40) == [("t", 0, 0, 20), ("t", 1, 50, 60)]
    assert limit_ranges(ranges, 1) == [("t", 0, 0, 1), ("t", 1, 50, 51)]


def test_messages_that_kafka_removed_unread_are_told(broker: tuple[str, Producer]) -> None:
    servers, producer = broker
    _produce(producer, range(5))
    source = KafkaSource(servers, ("people",))
    lost = {"ranges": [["people", number, -3, -2] for number in range(4)]}
    with pytest.raises(SourceRefusedError, match="were not read before Kafka removed them"):
        compute_position(source, lost)


def test_a_topic_or_broker_that_is_not_there_is_told(
    broker: tuple[str, Producer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.pipelines.sources.kafka_source._TIMEOUT_S", 1.0)
    with pytest.raises(SourceRefusedError, match="topic 'nothing'"):
        compute_position(KafkaSource(broker[0], ("nothing",)), None)
    with pytest.raises(SourceFailedError, match="Kafka cannot be read"):
        compute_position(KafkaSource("127.0.0.1:1", ("people",)), None)
