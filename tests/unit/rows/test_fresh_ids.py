from __future__ import annotations

import time

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.ids import decode_ulid_ms, encode_ulid
from omnigraph.rows.entity_ids import generate_ids

NOW = 1_700_000_000_123


@given(st.binary(min_size=22, max_size=22), st.integers(0, 2**48 - 1))
def test_an_id_is_the_one_before_it_and_a_random_step(drawn: bytes, now: int) -> None:
    rest = iter((drawn[:8], drawn[8:10], drawn[10:]))
    ids = generate_ids(3, now_ms=now, random_bytes=lambda count: next(rest)[:count])
    value = now << 80 | (int.from_bytes(drawn[8:10]) & 0x7FFF) << 64 | int.from_bytes(drawn[:8])
    for place, id_ in enumerate(ids.to_pylist()):
        step = drawn[10 + 4 * place : 14 + 4 * place]
        value += int.from_bytes(step, "little") + 1
        assert id_ == encode_ulid(value)


def test_a_carry_goes_into_the_upper_bits_and_never_into_the_time() -> None:
    ids = generate_ids(5, now_ms=NOW, random_bytes=lambda count: b"\xff" * count).to_pylist()
    assert ids == sorted(set(ids))
    assert {decode_ulid_ms(id_) for id_ in ids} == {NOW}


def test_many_ids_are_distinct_ascending_and_of_one_moment() -> None:
    ids = generate_ids(100_000, now_ms=NOW)
    ids.validate(full=True)
    assert ids.type == pa.utf8()
    texts = ids.to_pylist()
    assert texts == sorted(set(texts))
    assert {decode_ulid_ms(text) for text in texts} == {NOW}


def test_two_calls_of_one_moment_do_not_meet() -> None:
    first, second = (set(generate_ids(10_000, now_ms=NOW).to_pylist()) for _ in range(2))
    assert first.isdisjoint(second)


def test_the_moment_is_now_unless_given() -> None:
    before = time.time_ns() // 1_000_000
    moment = decode_ulid_ms(generate_ids(1)[0].as_py())
    assert moment is not None
    assert before <= moment <= time.time_ns() // 1_000_000


def test_no_ids_are_an_empty_array() -> None:
    assert generate_ids(0).to_pylist() == []
