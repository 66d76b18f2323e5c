"""Clean-up by itself: when it runs, and what turns it on and off."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.engine import auto_cleanup
from omnigraph.engine.auto_cleanup import COMMITS_MIN, INTERVAL_S, AutoCleanup, read_policy
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.storage import open_objects
from omnigraph.versioning.gc.gc_roots import Policy


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (None, None),
        ("", None),
        ("off", None),
        ("on", auto_cleanup.DEFAULT),
        ("keep=5", Policy(keep=5)),
        ("older-than=2d", Policy(older_than_s=172_800.0)),
        ("keep=5,older-than=90", Policy(5, 90.0)),
    ],
)
def test_the_environment_says_what_is_kept(text: str | None, policy: Policy | None) -> None:
    assert read_policy({} if text is None else {auto_cleanup.VARIABLE: text}) == policy


@pytest.mark.parametrize("text", ["yes", "keep=0", "keep=-1", "keep=x", "older-than=5x", "k=1"])
def test_a_policy_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=auto_cleanup.VARIABLE):
        read_policy({auto_cleanup.VARIABLE: text})


class Watch:
    """An automatic clean-up with a clock of its own, which counts its clean-ups."""

    def __init__(self, name: str) -> None:
        self.now, self.cleaned = INTERVAL_S, 0
        self.executor = ThreadPoolExecutor(1)
        self.cleanup = AutoCleanup(
            open_objects(f"memory://{name}"),
            self.executor,
            clean=self.clean,
            now_us=lambda: int(self.now * 1_000_000),
        )

    def clean(self) -> None:
        self.cleaned += 1

    def commit(self, times: int) -> int:
        for _ in range(times):
            self.cleanup.consider(None)  # type: ignore[arg-type]  # it looks at no snapshot
            self.executor.submit(lambda: None).result()
        return self.cleaned


def test_it_runs_after_enough_commits_and_enough_time() -> None:
    watch = Watch("auto-cleanup-runs")
    assert watch.commit(COMMITS_MIN - 1) == 0
    assert watch.commit(1) == 1
    assert watch.commit(COMMITS_MIN) == 1
    watch.now += INTERVAL_S
    assert watch.commit(COMMITS_MIN) == 2


def test_one_process_sees_that_another_one_was_at_it() -> None:
    first, second = Watch("auto-cleanup-shared"), Watch("auto-cleanup-shared")
    assert first.commit(COMMITS_MIN) == 1
    assert second.commit(COMMITS_MIN) == 0


def test_a_failed_clean_up_is_remembered_and_tried_again_later() -> None:
    watch = Watch("auto-cleanup-fails")

    def fail() -> None:
        raise StorageError("delete", "a", "no")

    watch.cleanup._clean = fail
    watch.commit(COMMITS_MIN)
    assert isinstance(watch.cleanup.last_error, StorageError)
    watch.cleanup._clean = watch.clean
    watch.now += INTERVAL_S
    assert watch.commit(COMMITS_MIN) == 1
