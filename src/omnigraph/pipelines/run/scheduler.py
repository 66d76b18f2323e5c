"""Running what is due: each slot of a schedule once, however often it is examined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.config.definition import (
    Pipeline,
    compute_next_slot,
    find_due_slot,
    format_slot,
)
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import FAILED, INTERRUPTED, RUNNING, Ledger, Run
from omnigraph.pipelines.run.pipeline_run import SCHEDULE, RunOptions, format_failure, run_pipeline

# By how much the clocks of two schedulers may differ: no run of a slot is older than that.
CLOCK_SKEW_MAX: Final = timedelta(hours=1)
# A slot whose runs are killed each time, as for want of memory, is given up after so many.
INTERRUPTED_RUNS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A pipeline that was due: its run, or why there is none."""

    pipeline: str
    slot: str
    run: Run | None = None
    error: str | None = None


def run_due(
    pipelines: Sequence[Pipeline], now: datetime, options: RunOptions
) -> Iterator[ScheduledRun]:
    """Run every pipeline whose newest slot has not been run; one failure stops no other."""
    for pipeline in pipelines:
        slot = None if pipeline.schedule is None else find_due_slot(pipeline.schedule, now)
        if slot is None:
            continue
        ran = _run_slot(pipeline, slot, options)
        if ran is not None:
            yield ran


def find_next_due(pipelines: Sequence[Pipeline], now: datetime) -> datetime | None:
    """When the next pipeline is due; None if none has a schedule."""
    slots = [
        compute_next_slot(each.schedule, now) for each in pipelines if each.schedule is not None
    ]
    return min(slots, default=None)


def _run_slot(pipeline: Pipeline, slot: datetime, options: RunOptions) -> ScheduledRun | None:
    name = format_slot(slot)
    try:
        resolver = Resolver.from_environment(pipeline, options.environment)
    except OmnigraphError as failure:
        return ScheduledRun(pipeline.name, name, error=failure.message)
    try:
        ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
        runs = _list_unfinished_runs(ledger, slot)
        if runs is None:
            return None
        if options.yields_to_others and any(run.status == RUNNING for run in runs):
            return None
        if len(runs) >= INTERRUPTED_RUNS_MAX:
            return _abandon_slot(pipeline.name, name, ledger, runs)
        approve = pipeline.digest if pipeline.digest in options.approved else None
        asked = replace(options, trigger=SCHEDULE, slot=name, approve=approve)
        return ScheduledRun(pipeline.name, name, run_pipeline(pipeline, asked))
    except Exception as failure:  # noqa: BLE001 — a schedule goes on, and the ledger shows it
        return ScheduledRun(pipeline.name, name, error=format_failure(failure, resolver))


def _list_unfinished_runs(ledger: Ledger, slot: datetime) -> list[Run] | None:
    """The runs of a slot; None once one ended, well or not: people run a failed one again.

    One that was stopped did not end: the work is taken up.
    """
    found, name = [], format_slot(slot)
    for run in ledger.iter_newest_runs(since=slot - CLOCK_SKEW_MAX):
        if name in (run.slot, run.requested_slot):
            if run.is_over and run.status != INTERRUPTED:
                return None
            found.append(run)
    return found


def _abandon_slot(
    pipeline: str, slot: str, ledger: Ledger, runs: Sequence[Run]
) -> ScheduledRun | None:
    """A failed run instead of one more, unless another one may still be under way."""
    if any(run.status == RUNNING for run in runs):
        return None
    error = f"{len(runs)} runs of slot {slot} were interrupted (run it with --slot {slot})"
    log = ledger.start_run({"slot": slot, "asked": slot, "trigger": SCHEDULE})
    log.add_event("finished", {"status": FAILED, "error": error})
    return ScheduledRun(pipeline, slot, ledger.find_run(log.run_id))
