"""Which writes of an actor are admitted: a bounded number, of a bounded size, at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from omnigraph.server.request_failures import refuse_overload

ANONYMOUS: Final = "anonymous"


@dataclass(slots=True)
class _Load:
    writes: int = 0
    nbytes: int = 0


class AdmissionControl:
    """What each actor has under way; used by the thread of the event loop alone."""

    def __init__(self, *, writes_max: int, bytes_max: int) -> None:
        self._writes_max = writes_max
        self._bytes_max = bytes_max
        self._loads: dict[str, _Load] = {}

    @contextmanager
    def admit(self, actor: str | None, nbytes: int) -> Iterator[None]:
        """Count a write until its end; one too many is refused before it starts."""
        name = actor or ANONYMOUS
        load = self._loads.get(name) or _Load()
        if load.writes + 1 > self._writes_max:
            raise refuse_overload(f"more than {self._writes_max} writes are under way")
        if load.nbytes + nbytes > self._bytes_max:
            raise refuse_overload(f"writes of more than {self._bytes_max} bytes are under way")
        self._loads[name] = load
        load.writes += 1
        load.nbytes += nbytes
        try:
            yield
        finally:
            load.writes -= 1
            load.nbytes -= nbytes
            if not load.writes:
                self._loads.pop(name, None)

    @property
    def writes(self) -> int:
        """How many writes are under way."""
        return sum(load.writes for load in self._loads.values())
