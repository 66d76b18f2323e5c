"""Which slot a run stands for, and what it reads: decided once, before anything is written.

A slot is the same for every attempt at the same work: the minute of a schedule, the content of
files, the number of a batch of a followed source. Other sources have no such name; their slot is
fresh, unless the last run did not succeed: then it is that one's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.ids import new_ulid
from omnigraph.pipelines.definition import Pipeline, Source
from omnigraph.pipelines.ledger import SUCCEEDED, Ledger, Run
from omnigraph.pipelines.sources import Survey, is_followed, survey

# How many of the newest runs are looked at for one of the same slot.
RUNS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """The slot that somebody wants: a person, or a schedule."""

    slot: str | None
    is_scheduled: bool = False

    @property
    def is_explicit(self) -> bool:
        """Whether a person wants this very slot."""
        return self.slot is not None and not self.is_scheduled


@dataclass(frozen=True, slots=True)
class Slot:
    """The name of the work, and what it reads of each source."""

    name: str
    surveys: Mapping[str, Survey]
    # The number of a batch of followed sources.
    batch: int | None = None

    @property
    def position(self) -> dict[str, Any]:  # Any: JSON, of each kind its own
        """What the ledger keeps of it."""
        return {name: found.position for name, found in self.surveys.items()}

    @property
    def is_empty(self) -> bool:
        """Whether every source is followed and has nothing new."""
        return all(found.is_empty for found in self.surveys.values())


def choose_slot(
    pipeline: Pipeline, sources: Mapping[str, Source], ledger: Ledger, asked: Asked
) -> Slot:
    """The slot of a run that begins now."""
    if any(is_followed(source) for source in sources.values()):
        return _batch(sources, ledger)
    surveys = {name: survey(source) for name, source in sources.items()}
    contents = [found.content for found in surveys.values()]
    # The same files are the same work, also in the next hour of a schedule.
    if all(content is not None for content in contents) and not asked.is_explicit:
        whole = "\n".join([pipeline.content, *map(str, contents)])
        return Slot("files-" + hashlib.sha256(whole.encode()).hexdigest()[:16], surveys)
    return Slot(asked.slot or _unfinished(ledger) or new_ulid(), surveys)


def earlier_success(ledger: Ledger, slot: str, target: str) -> Run | None:
    """A run of a slot that wrote to a target, among the newest ones."""
    for run in ledger.runs(limit=RUNS_LOOKED_AT):
        found = run.target(target)
        if run.slot == slot and found is not None and found.status == SUCCEEDED:
            return run
    return None


def _unfinished(ledger: Ledger) -> str | None:
    """The slot of the last run, if that did not succeed."""
    last = next(iter(ledger.runs(limit=1)), None)
    return None if last is None or last.status == SUCCEEDED else last.slot or None


def _batch(sources: Mapping[str, Source], ledger: Ledger) -> Slot:
    """The last batch again if it was not finished, else the next one.

    Two runs at once name the same batch, because only one can say what it is.
    """
    last = ledger.last_batch()
    if last is not None and not ledger.is_finished(last[0]):
        number, batch = last
    else:
        number = 0 if last is None else last[0] + 1
        after = {} if last is None else last[1]["position"]
        fresh = {name: survey(each, after=after.get(name)) for name, each in sources.items()}
        slot = Slot(_batch_name(number), fresh)
        if slot.is_empty and last is not None:
            return slot
        batch = ledger.claim(number, {"position": slot.position})
    position = batch["position"]
    surveys = {
        name: survey(each, at=position[name]) if is_followed(each) else survey(each)
        for name, each in sources.items()
    }
    return Slot(_batch_name(number), surveys, batch=number)


def _batch_name(number: int) -> str:
    return f"batch-{number:08}"
