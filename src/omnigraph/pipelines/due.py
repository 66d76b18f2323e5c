"""Running what is due: each slot of a schedule once, whoever looks and however often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.definition import Pipeline
from omnigraph.pipelines.ledger import Ledger, Run
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import SCHEDULE, RunOptions, run_pipeline
from omnigraph.pipelines.schedule import due_slot, next_slot, slot_name
from omnigraph.pipelines.slots import RUNS_LOOKED_AT


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
        name = slot_name(slot)
        try:
            if not _was_tried(pipeline, name, options):
                asked = replace(options, trigger=SCHEDULE, slot=name)
                yield Ran(pipeline.name, name, run_pipeline(pipeline, asked))
        except OmnigraphError as failure:
            yield Ran(pipeline.name, name, error=failure.message)


def next_due(pipelines: Sequence[Pipeline], now: datetime) -> datetime | None:
    """When the next pipeline is due; None if none has a schedule."""
    slots = [next_slot(each.schedule, now) for each in pipelines if each.schedule is not None]
    return min(slots, default=None)


def _was_tried(pipeline: Pipeline, slot: str, options: RunOptions) -> bool:
    """Whether a run of the slot ended, well or not: a failed one is for people to run again."""
    resolver = Resolver.of(pipeline, options.environment)
    runs = Ledger.at(resolver.ledger(), pipeline.name).runs(limit=RUNS_LOOKED_AT)
    return any(run.is_over and slot in (run.slot, run.asked) for run in runs)
