"""Turns of processes at one place."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from omnigraph.storage.objects.advisory_lock import WAIT_S_MAX, acquire_lock


def _hold(uri: str, is_held: Event, is_over: Event) -> None:
    with acquire_lock(uri, "stream"):
        is_held.set()
        is_over.wait(30)


def _waited_s(uri: str) -> float:
    start = time.monotonic()
    with acquire_lock(uri, "stream") as has_turns:
        assert has_turns
        return time.monotonic() - start


def test_a_turn_waits_for_the_one_before_but_not_for_ever(tmp_path: Path) -> None:
    (tmp_path / "stream").mkdir()
    context = multiprocessing.get_context("spawn")
    is_held, is_over = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), is_held, is_over))
    holder.start()
    try:
        assert is_held.wait(30)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGSTOP)
        assert _waited_s(str(tmp_path)) >= WAIT_S_MAX
    finally:
        # A process that dies has no turn any more.
        holder.kill()
        holder.join()
    assert _waited_s(str(tmp_path)) < WAIT_S_MAX


def test_the_next_one_in_a_process_comes_after_the_end(tmp_path: Path) -> None:
    (tmp_path / "stream").mkdir()
    for _ in range(3):
        assert _waited_s(str(tmp_path)) < WAIT_S_MAX


@pytest.mark.parametrize("uri", ["memory://turns", "s3://bucket/graph", "nowhere"])
def test_stores_without_turns_say_so(uri: str) -> None:
    with acquire_lock(uri, "stream") as has_turns:
        assert not has_turns
