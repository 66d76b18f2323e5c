"""What one request may use: memory, time, and work on selections of edges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from threading import Event
from typing import TYPE_CHECKING, Final

from omnigraph.errors import QueryCancelledError, QueryTimeoutError, ResourceLimitError
from omnigraph.query.query_settings import SETTINGS

if TYPE_CHECKING:
    from omnigraph.execution.operators.page_operator import Pager

MEMORY = "query_memory_bytes"
WORK = "traversal_work_limit"
WORK_LIMIT: Final = int(SETTINGS[WORK].default)
PATH_WORK = "path_work_limit"
PATH_WORK_LIMIT: Final = int(SETTINGS[PATH_WORK].default)


class Cancellation:
    """Stops the queries that it was given to, from any thread and for good."""

    def __init__(self) -> None:
        self._event = Event()
        self._acts: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Have the queries raise `QueryCancelledError`; queries begun later do so at once."""
        self._event.set()
        for act in [*self._acts]:
            act()

    @contextmanager
    def call_when_cancelled(self, act: Callable[[], None]) -> Iterator[None]:
        """Do something when it is cancelled within the context, or was before, from any thread."""
        self._acts.append(act)
        try:
            if self.is_cancelled:
                act()
            yield
        finally:
            self._acts.remove(act)

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or as soon as it is cancelled."""
        self._event.wait(seconds)

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()


class Budget:
    """The bounds of one request, from its text to its result; each is an error, never fewer rows.

    Memory is asked for before it is taken, so that a query that needs too much is refused and not
    killed. `deadline` is an instant of the monotonic clock.
    """

    def __init__(
        self,
        memory_bytes: int | None = None,
        deadline: float | None = None,
        work_limit: int = WORK_LIMIT,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._reserved = 0
        self._started = time.monotonic()
        self._deadline = deadline
        self._work_limit = work_limit
        self._worked = 0
        self._path_work_limit = PATH_WORK_LIMIT
        self._path_work = 0
        self._cancellation = cancellation

    def begin_part(self) -> Budget:
        """The bounds of one of several reads of the request: their time is shared."""
        part = Budget(self._memory_bytes, self._deadline, self._work_limit, self._cancellation)
        part._started = self._started
        part._path_work_limit = self._path_work_limit
        return part

    @contextmanager
    def reserve(self, nbytes: int) -> Iterator[None]:
        """Hold so much memory for the time of the context."""
        self.allocate(nbytes)
        try:
            yield
        finally:
            self.release(nbytes)

    def allocate(self, nbytes: int) -> None:
        """Hold so much memory until it is released."""
        self.require_memory(nbytes)
        self._reserved += nbytes

    def release(self, nbytes: int) -> None:
        """Give memory back that was held."""
        self._reserved -= nbytes

    def require_memory(self, nbytes: int) -> None:
        """Refuse the query if it cannot have so much memory beside what it holds."""
        limit, actual = self._memory_bytes, self._reserved + nbytes
        if limit is not None and actual > limit:
            raise ResourceLimitError(
                MEMORY,
                limit=limit,
                actual=actual,
                hint="ask for less, put a selective condition first, or allow more memory"
                " (--memory, or memory=)",
            )

    def has_room(self, nbytes: int) -> bool:
        """Whether the query can have so much memory beside what it holds."""
        return self._memory_bytes is None or self._reserved + nbytes <= self._memory_bytes

    def check_interrupts(self) -> None:
        """Stop the query if its time is over, or if it was cancelled."""
        if self._cancellation is not None and self._cancellation.is_cancelled:
            raise QueryCancelledError
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise QueryTimeoutError(round(max(self._deadline - self._started, 0.0), 3))

    @property
    def time_left(self) -> float | None:
        """How many seconds the query has left, none of them negative; None means no bound."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    @property
    def may_be_stopped(self) -> bool:
        """Whether a check can ever stop the query."""
        return self._deadline is not None or self._cancellation is not None

    @property
    def is_over(self) -> bool:
        """Whether a check would stop the query."""
        try:
            self.check_interrupts()
        except (QueryCancelledError, QueryTimeoutError):
            return True
        return False

    def limit_work(self, edges: int) -> None:
        """Let alternations and wildcards look at so many edges."""
        self._work_limit = edges

    def limit_path_work(self, edges: int) -> None:
        """Let paths look at so many edges."""
        self._path_work_limit = edges

    def spend_path_work(self, edges: int) -> None:
        """Count edges that a path examined."""
        self._path_work += edges
        if self._path_work > self._path_work_limit:
            raise ResourceLimitError(
                PATH_WORK,
                limit=self._path_work_limit,
                actual=self._path_work,
                hint=f"anchor one end, give a maximum, or raise the limit ('set {PATH_WORK} = …;')",
            )

    @property
    def work_left(self) -> int:
        """How many more edges alternations and wildcards may look at."""
        return self._work_limit - self._worked

    def spend_work(self, edges: int) -> None:
        """Count edges that an alternation or a wildcard examined."""
        self._worked += edges
        if self._worked > self._work_limit:
            raise ResourceLimitError(WORK, limit=self._work_limit, actual=self._worked)


class Access(StrEnum):
    """Where a read gets nodes and edges from; its answer is the same."""

    AUTO = "auto"
    TOPOLOGY = "topology"
    LOOKUPS = "lookups"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The choices of a request; no budget means no bound of its own, and no pager all rows."""

    access: Access = Access.AUTO
    budget: Budget | None = None
    pager: Pager | None = None


DEFAULT_OPTIONS: Final = ReadOptions()
