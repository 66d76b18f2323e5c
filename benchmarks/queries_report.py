"""Measurements of several engines as one table: medians in milliseconds, ratios and budgets."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.table import Table

# A turn of an engine: at least so often and for so long, but not much longer than this.
TURN_LEAST: Final = 3
TURN_MS: Final = 30.0
TURN_MS_MAX: Final = 1_000.0
_VERDICTS: Final = {None: "", True: "yes", False: "NO"}
# A slow engine is not asked again and again.
_MS_MAX: Final = 4_000.0

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: a median per engine, and a ratio beside its budget."""

    work: str
    medians: dict[str, float] = field(default_factory=dict)
    measured: str = ""
    budget: str = ""
    is_met: bool | None = None


def faster_by(work: str, medians: dict[str, float], ours: str, *, budget: float) -> Line:
    """How many times faster we are than the best of the others; at least the budget."""
    ratio = min(ms for name, ms in medians.items() if name != ours) / medians[ours]
    return Line(work, medians, f"{ratio:.2f}x faster", f">= {budget}x", ratio >= budget)


def within(work: str, medians: dict[str, float], ours: str, *, budget: float) -> Line:
    """Our time as a multiple of the best of the others; at most the budget."""
    ratio = medians[ours] / min(ms for name, ms in medians.items() if name != ours)
    return Line(work, medians, f"{ratio:.2f}x", f"<= {budget}x", ratio <= budget)


def limited(work: str, value: float, unit: str, *, budget: float) -> Line:
    """A value of ours that must not exceed a budget."""
    return Line(work, {}, f"{value:.2f} {unit}", f"<= {budget} {unit}", value <= budget)


def take_turns(works: Mapping[str, Sequence[Work]], *, rounds: int) -> dict[str, float]:
    """The median of each engine in milliseconds; they take turns, so that noise hits all.

    An engine has a work for each thing it is asked. Its turn lasts a while: after the turns of the
    others, the caches of the machine hold nothing of it. The first turn of each is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for each in works.values():
        _turn(each)
    for number in range(rounds):
        names = list(works)[:: 1 if number % 2 else -1]
        for name in names:
            if sum(times[name]) < _MS_MAX:
                times[name] += _turn(works[name])
    return {name: statistics.median(each) for name, each in times.items()}


def _turn(works: Sequence[Work]) -> list[float]:
    times: list[float] = []
    while not times or (sum(times) < TURN_MS_MAX and _is_short(times, works)):
        times += [time_ms(work) for work in works]
    return times


def _is_short(times: Sequence[float], works: Sequence[Work]) -> bool:
    return len(times) < TURN_LEAST * len(works) or sum(times) < TURN_MS


def time_ms(work: Work) -> float:
    """How long something takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def print_lines(title: str, engines: Sequence[str], lines: Iterable[Line]) -> None:
    """The table, once all lines are measured, with how busy the machine was."""
    load, began = os.getloadavg()[0], time.perf_counter()
    table = Table(title=f"{title}; medians in ms on {os.cpu_count()} cores")
    table.add_column("work")
    for name in (*engines, "measured", "budget", "met"):
        table.add_column(name, justify="right")
    for line in lines:
        shown = (_shown(line.medians.get(name)) for name in engines)
        verdict = _VERDICTS[line.is_met]
        table.add_row(line.work, *shown, line.measured, line.budget, verdict)
    console = Console(width=None if Console().is_terminal else 140)
    console.print(table)
    took = time.perf_counter() - began
    console.print(f"load {load:.1f} before and {os.getloadavg()[0]:.1f} after, {took:.0f} s")


def _shown(ms: float | None) -> str:
    if ms is None:
        return ""
    return f"{ms:.2f}" if ms < 100 else f"{ms:.0f}"
