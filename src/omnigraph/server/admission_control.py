"""Which writes of an actor are admitted: a bounded number, of a bounded size, at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Final

from omnigraph.server.request_failures import refuse_overload

ANONYMOUS: Final = "anonymous"


@dataclass(slots=True)
class _Load:
    writes: int = 0
    nbytes: int = 0


class AdmissionControl:
    """What each actor has under way; safe to share between threads."""

    def __init__(self, *, writes_max: int, bytes_max: int) -> None:
        self._writes_max = writes_max
        self._bytes_max = bytes_max
        self._loads: dict[str, _Load] = {}
        # Agents' writes are admitted in their threads, all others in the event loop.
        self._lock = Lock()

    @contextmanager
    def admit(self, actor: str | None, nbytes: int) -> Iterator[None]:
        """Count a write until its end; one too many is refused before it starts."""
        name = actor or ANONYMOUS
        with self._lock:
            self._begin(name, nbytes)
        try:
            yield
        finally:
            with self._lock:
                self._end(name, nbytes)

    def _begin(self, name: str, nbytes: int) -> None:
        load = self._loads.get(name) or _Load()
        if load.writes + 1 > self._writes_max:
            raise refuse_overload(f"more than {self._writes_max} writes are under way")
        if load.nbytes + nbytes > self._bytes_max:
            raise refuse_overload(f"writes of more than {self._bytes_max} bytes are under way")
        self._loads[name] = load
        load.writes += 1
        load.nbytes += nbytes

    def _end(self, name: str, nbytes: int) -> None:
        load = self._loads[name]
        load.writes -= 1
        load.nbytes -= nbytes
        if not load.writes:
            del self._loads[name]

    @property
    def writes(self) -> int:
        """How many writes are under way."""
        with self._lock:
            return sum(load.writes for load in self._loads.values())
