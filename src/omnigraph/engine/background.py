"""Background threads: work that follows commits one by one, and parallel writes of tables."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

# How long closing a graph, or the end of the program, waits for the job that is being done. A job
# that is cut off has written files that nothing refers to.
STOP_TIMEOUT_S: Final = 5.0

# A commit touches a few tables; writing them at the same time costs as much as the slowest one.
TABLE_THREADS_MAX: Final = 8

P = ParamSpec("P")
T = TypeVar("T")


class Background(Executor):
    """An executor whose thread exists only while there is work, and never keeps a program alive.

    The threads of the standard executors are joined when the interpreter exits, with everything
    that waits for them still to be done.
    """

    def __init__(self) -> None:
        self._jobs = _Jobs()
        # Also called when the interpreter exits: a job that is being done gets a little time.
        self._finalizer = weakref.finalize(self, self._jobs.stop, STOP_TIMEOUT_S)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do a job some time later."""
        future: Future[T] = Future()
        self._jobs.add(_Job(future, lambda: fn(*args, **kwargs)))
        return future

    def has_time(self, is_urgent: bool) -> bool:
        """Whether a job may begin another piece of its work; after a stop, only an urgent one."""
        return self._jobs.has_time(is_urgent)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Begin no other job; wait a little for the one that is being done."""
        del cancel_futures  # What waits is never done: nothing depends on it.
        self._jobs.stop(STOP_TIMEOUT_S if wait else 0)


class TableThreads(Executor):
    """Threads that write the tables of a commit side by side, made when they are first needed.

    A write that is under way when the graph is closed goes on in its own thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._is_stopped = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do a job at the same time as others."""
        with self._lock:
            if not self._is_stopped:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(
                        TABLE_THREADS_MAX, thread_name_prefix="omnigraph-write"
                    )
                return self._pool.submit(fn, *args, **kwargs)
        future: Future[T] = Future()
        _Job(future, lambda: fn(*args, **kwargs)).run()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads go when they have done what they were given."""
        with self._lock:
            self._is_stopped = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait, cancel_futures=cancel_futures)


class _Job:
    """A call, and where its outcome goes."""

    __slots__ = ("call", "future")

    def __init__(self, future: Future[Any], call: Callable[[], Any]) -> None:
        self.future = future
        self.call = call

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.call())
        except BaseException as error:  # noqa: BLE001 — the caller of the future gets it
            self.future.set_exception(error)


class _Jobs:
    """The queue and its thread, apart from the executor so that a job does not keep that alive."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._thread: threading.Thread | None = None
        self._is_working = False
        self._is_stopped = False
        self._stop_at = float("inf")

    def has_time(self, is_urgent: bool) -> bool:
        return time.monotonic() < self._stop_at if is_urgent else not self._is_stopped

    def add(self, job: _Job) -> None:
        with self._changed:
            if self._is_stopped:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_jobs, name="omnigraph-background", daemon=True
                )
                self._thread.start()

    def stop(self, timeout_s: float) -> None:
        with self._changed:
            self._is_stopped = True
            self._stop_at = min(self._stop_at, time.monotonic() + timeout_s)
            # A thread that is just starting is about to begin the first job.
            while len(self._waiting) > (0 if self._is_working or self._thread is None else 1):
                self._waiting.pop().future.cancel()
            # The last reference to a graph may be that of a job, which cannot wait for itself.
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._thread is None, timeout_s)

    def _run_jobs(self) -> None:
        while (job := self._take_next()) is not None:
            job.run()
            del job

    def _take_next(self) -> _Job | None:
        with self._changed:
            self._is_working = bool(self._waiting)
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            self._changed.notify_all()
            return None
