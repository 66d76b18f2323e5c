"""Memory is bounded: what was not used for longest is given up, and can be made again."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from omnigraph.execution.sources.topology.append_array import AppendArray
from omnigraph.execution.sources.topology.memory_cache import (
    CachePartition,
    MemoryCache,
    compute_default_bytes,
)


class Bytes:
    """Something of a size."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_what_was_not_used_for_longest_is_given_up_first() -> None:
    memory = MemoryCache(100)
    one, two = CachePartition(memory), CachePartition(memory)
    first = one.get("a", lambda: Bytes(40))
    two.get("a", lambda: Bytes(40))
    assert one.get("a", lambda: Bytes(1)) is first
    one.get("b", lambda: Bytes(40))
    assert (one.names, two.names) == (["a", "b"], [])
    assert memory.nbytes == 80


def test_a_piece_that_is_larger_than_all_memory_is_still_given_to_who_asks() -> None:
    memory = MemoryCache(10)
    parts = CachePartition(memory)
    assert parts.get("a", lambda: Bytes(1_000)).nbytes == 1_000
    parts.get("b", lambda: Bytes(1_000))
    assert parts.names == ["b"]


def test_the_cost_of_a_piece_stays_the_same_with_many_versions() -> None:
    memory = MemoryCache(10**9)
    versions: list[CachePartition] = []

    def cost_of(count: int) -> float:
        best = 1.0
        for _ in range(count):
            versions.append(CachePartition(memory))
            started = time.thread_time()
            for name in "abcdefgh":
                versions[-1].get(name, lambda: Bytes(1))
            best = min(best, time.thread_time() - started)
        return best

    few = cost_of(50)
    cost_of(2_000)
    assert cost_of(50) < 10 * few


def test_a_piece_that_another_thing_shares_is_counted_once() -> None:
    memory = MemoryCache(100)
    older, newer = CachePartition(memory), CachePartition(memory)
    piece = older.get("a", lambda: Bytes(60))
    older.share()
    newer.keep("a", piece)
    assert memory.nbytes == 60
    assert older.peek("a") is piece
    del older
    assert memory.nbytes == 60


def test_pieces_of_what_nobody_has_any_more_do_not_count() -> None:
    memory = MemoryCache(100)
    CachePartition(memory).get("a", lambda: Bytes(90))
    assert memory.nbytes == 0


def test_those_who_ask_at_once_wait_for_the_first() -> None:
    parts = CachePartition(MemoryCache(100))
    made: list[int] = []
    found: list[Bytes] = []

    def make() -> Bytes:
        made.append(1)
        time.sleep(0.05)
        return Bytes(1)

    threads = [
        threading.Thread(target=lambda: found.append(parts.get("a", make))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len({id(each) for each in found}) == 1


def test_a_failure_is_tried_again_by_the_next_who_asks() -> None:
    parts = CachePartition(MemoryCache(100))

    def fail() -> Bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        parts.get("a", fail)
    assert parts.get("a", lambda: Bytes(3)).nbytes == 3


def test_a_share_of_the_memory_of_the_machine_is_the_usual_bound() -> None:
    assert MemoryCache().bytes_max == compute_default_bytes() > 2**20


def test_an_array_that_grows_is_copied_only_where_two_go_different_ways() -> None:
    first = AppendArray(np.arange(3)).append(np.array([3]))
    ours = first.append(np.array([4, 5]))
    theirs = first.append(np.array([7]))
    assert np.shares_memory(first.values, ours.values)
    assert not np.shares_memory(first.values, theirs.values)
    assert first.values.tolist() == [0, 1, 2, 3]
    assert ours.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert theirs.values.tolist() == [0, 1, 2, 3, 7]
    assert ours.append(np.arange(10_000)).values.tolist()[:7] == [0, 1, 2, 3, 4, 5, 0]
    assert first.append(np.zeros(0, np.int64)) is first
