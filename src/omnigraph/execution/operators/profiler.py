"""What the parts of a run took: rows and time, added up over morsels."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class StepProfile:
    """The rows that a part gave, and the seconds that it took."""

    rows: int = 0
    seconds: float = 0.0


class Profiler:
    """Records the rows and the time of parts, each by its name."""

    def __init__(self) -> None:
        self.spent: dict[Hashable, StepProfile] = defaultdict(StepProfile)
        self._since = time.perf_counter()

    def start(self) -> None:
        """Begin to measure the next part."""
        self._since = time.perf_counter()

    def record(self, part: Hashable, rows: int) -> None:
        """End to measure a part, and begin with the next one."""
        now = time.perf_counter()
        spent = self.spent[part]
        spent.rows += rows
        spent.seconds += now - self._since
        self._since = time.perf_counter()

    def record_step(self, step: Hashable, rows: int) -> None:
        """The same for a step after the pattern."""
        self.record(id(step), rows)


class _NullProfiler(Profiler):
    def __init__(self) -> None:
        self.spent = {}

    def start(self) -> None:
        """Measure nothing."""

    def record(self, part: Hashable, rows: int) -> None:
        """Note nothing."""


NULL_PROFILER: Final[Profiler] = _NullProfiler()
