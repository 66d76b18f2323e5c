"""Running what is due: each slot of a schedule once, whoever looks and however often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.definition import Pipeline
from omnigraph.pipelines.ledger import FAILED, INTERRUPTED, RUNNING, Ledger, Run
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import SCHEDULE, RunOptions, run_pipeline, told
from omnigraph.pipelines.schedule import due_slot, next_slot, slot_name

# By how much the clocks of two schedulers may differ: no run of a slot is older than that.
CLOCKS_APART_MAX: Final = timedelta(hours=1)
# A slot whose runs are killed each time, as for want of memory, is given up behind so many.
INTERRUPTED_RUNS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Ran:
    """A pipeline that was due: its run, or why there is none."""

    pipeline: str
    slot: str
    run: Run | None = None
    error: str | None = None


def run_due(pipelines: Sequence[Pipeline], now: datetime, options: RunOptions) -> Iterator[Ran]:
    """Run every pipeline whose newest slot has not been run; one failure stops no other."""
    for pipeline in pipelines:
        slot = None if pipeline.schedule is None else due_slot(pipeline.schedule, now)
        if slot is None:
            continue
        ran = _ran(pipeline, slot, options)
        if ran is not None:
            yield ran


def next_due(pipelines: Sequence[Pipeline], now: datetime) -> datetime | None:
    """When the next pipeline is due; None if none has a schedule."""
    slots = [next_slot(each.schedule, now) for each in pipelines if each.schedule is not None]
    return min(slots, default=None)


def _ran(pipeline: Pipeline, slot: datetime, options: RunOptions) -> Ran | None:
    name = slot_name(slot)
    try:
        resolver = Resolver.of(pipeline, options.environment)
    except OmnigraphError as failure:
        return Ran(pipeline.name, name, error=failure.message)
    try:
        ledger = Ledger.at(resolver.ledger(), pipeline.name)
        runs = _unended(ledger, slot)
        if runs is None:
            return None
        if len(runs) >= INTERRUPTED_RUNS_MAX:
            return _given_up(pipeline.name, name, ledger, runs)
        asked = replace(options, trigger=SCHEDULE, slot=name)
        return Ran(pipeline.name, name, run_pipeline(pipeline, asked))
    except Exception as failure:  # noqa: BLE001 — a schedule goes on, and the ledger tells of it
        return Ran(pipeline.name, name, error=told(failure, resolver))


def _unended(ledger: Ledger, slot: datetime) -> list[Run] | None:
    """The runs of a slot; None once one ended, well or not: people run a failed one again.

    One that was stopped did not end: the work is taken up.
    """
    found, name = [], slot_name(slot)
    for run in ledger.newest(since=slot - CLOCKS_APART_MAX):
        if name in (run.slot, run.asked):
            if run.is_over and run.status != INTERRUPTED:
                return None
            found.append(run)
    return found


def _given_up(pipeline: str, slot: str, ledger: Ledger, runs: Sequence[Run]) -> Ran | None:
    """A failed run instead of one more, unless another one may still be under way."""
    if any(run.status == RUNNING for run in runs):
        return None
    error = f"{len(runs)} runs of slot {slot} were interrupted (run it with --slot {slot})"
    log = ledger.start({"slot": slot, "asked": slot, "trigger": SCHEDULE})
    log.add("finished", {"status": FAILED, "error": error})
    return Ran(pipeline, slot, ledger.run(log.run_id))
