"""What is wrong with single records, as it crosses processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from omnigraph.errors import Violation
from omnigraph.writers.validate.findings import Finding, Findings, Positions

# A unit tells so many one by one; the others are counted.
SPLIT_PROBLEMS_MAX: Final = 1_000
# A whole load keeps so many.
LOAD_PROBLEMS_MAX: Final = 10_000


class CheckStage(IntEnum):
    """Where a load of one process would have found it; an earlier step is told first."""

    READ = 0
    DUPLICATE = 1
    EXISTS = 2
    FORM = 3
    RULES = 4
    GRAPH = 5


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """A violation at a record, by its number in its unit; 0 stands for the file as a whole."""

    stage: CheckStage
    number: int
    violation: Violation
    hint: str | None = None


class RowFindings(Findings):
    """Findings that also know their rows, all of them, so that the rows can be left out."""

    def __init__(self, told_max: int) -> None:
        super().__init__(told_max)
        self.told: list[tuple[int, Violation]] = []
        self._bad: list[Positions] = []

    def add(self, finding: Finding) -> None:
        """Collect what one check found."""
        self.count += len(finding.rows)
        self._bad.append(finding.rows)
        room = max(self._shown_max - len(self.told), 0)
        self.told += [(row, finding.build_violation(row)) for row in finding.rows[:room].tolist()]

    def add_by_row(self, findings: Sequence[Finding]) -> None:
        """Collect what several checks found in the same rows."""
        for finding in findings:
            self.add(finding)

    @property
    def rows(self) -> Positions:
        """Every row that something is wrong with, in order."""
        found = np.concatenate([*self._bad, np.empty(0, np.int64)])
        return np.unique(found)
