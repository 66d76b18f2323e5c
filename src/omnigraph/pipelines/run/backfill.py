"""Backfills: the slots of a time that has passed, oldest first, each of them once.

A backfill that ended anywhere goes on there when it is started again: what its targets have is
found in their graphs, and nothing else is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from omnigraph.errors import InvalidArgumentError
from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import SlotInterval, iter_intervals, uses_slots
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, UNCHANGED, Ledger, Run
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions, run_pipeline
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.schema.schema_shape import JsonObject

BACKFILL: Final = "backfill"
# More slots than these are a mistake: a year of minutes.
SLOTS_MAX: Final = 600_000


@dataclass(frozen=True, slots=True)
class BackfilledSlot:
    """A slot of a backfill: its run, or that its targets have it already."""

    interval: SlotInterval
    run: Run | None

    @property
    def status(self) -> str:
        """How its run ended; `done` if it was done before."""
        return "done" if self.run is None else self.run.status

    def to_json(self) -> JsonObject:
        """The part of a backfill's document about a slot."""
        return {
            "slot": self.interval.name,
            "start": self.interval.start.isoformat(),
            "end": self.interval.end.isoformat(),
            "status": self.status,
            "run": None if self.run is None else self.run.to_json(),
        }


def list_backfill(pipeline: Pipeline, start: datetime, end: datetime) -> list[SlotInterval]:
    """The slots of a pipeline within a time; an error if it has none."""
    if pipeline.schedule is None or not uses_slots(pipeline):
        reason = f"pipeline '{pipeline.name}' reads the same in every slot"
        hint = "name ${SLOT_START} and ${SLOT_END} in its sources"
        raise InvalidArgumentError("name", reason, hint=hint)
    found: list[SlotInterval] = []
    for interval in iter_intervals(pipeline.schedule, start, end):
        if len(found) == SLOTS_MAX:
            raise InvalidArgumentError("to", f"more than {SLOTS_MAX} slots are in between")
        found.append(interval)
    if not found:
        reason = f"no slot of '{pipeline.schedule}' begins and ends in between"
        raise InvalidArgumentError("from", reason)
    return found


def run_backfill(
    pipeline: Pipeline, slots: list[SlotInterval], options: RunOptions
) -> Iterator[BackfilledSlot]:
    """Run the slots that are not done, in turn; one that fails ends the backfill."""
    unchanged = _list_unchanged(pipeline, options)
    for interval in slots:
        if interval.name in unchanged or _is_done(pipeline, interval, options):
            yield BackfilledSlot(interval, None)
            continue
        ran = run_pipeline(pipeline, replace(options, slot=interval.name, trigger=BACKFILL))
        yield BackfilledSlot(interval, ran)
        if ran.status != SUCCEEDED:
            return


def _list_unchanged(pipeline: Pipeline, options: RunOptions) -> set[str]:
    """The slots whose newest run found nothing to change: there is no commit to find."""
    resolver = Resolver.from_environment(pipeline, options.environment)
    newest: dict[str, Run] = {}
    for run in Ledger.open(resolver.resolve_ledger(), pipeline.name).iter_newest_runs():
        newest.setdefault(run.slot, run)
    return {
        slot
        for slot, run in newest.items()
        if run.targets and {target.status for target in run.targets} == {UNCHANGED}
    }


def _is_done(pipeline: Pipeline, interval: SlotInterval, options: RunOptions) -> bool:
    """Whether every target has the load of a slot, and it was not undone."""
    resolver = Resolver.from_environment(pipeline, options.environment)
    ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
    with ExitStack() as stack, resolver.hide_secrets_in_errors():
        running = RunContext(pipeline, options, resolver, ledger, stack)
        return running.has_loads(Slot(interval.name, {}), running.open_graphs())
