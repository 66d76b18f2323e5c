"""Which slot a run stands for, and what it reads: decided once, before anything is written.

A slot is the same for every attempt at the same work: the minute of a schedule, the content of
files, the number and the position of a batch of a followed source. Other sources have no such name;
their slot is fresh, unless the last run that began did not succeed: then it is that one's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.errors import SourceRefusedError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.config.definition import Pipeline, Source
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, Ledger
from omnigraph.pipelines.sources import SourceState, is_followed, read_source_state
from omnigraph.pipelines.sources.file_source import FileListing

_DIGEST_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The slot that is wanted, by a person or a schedule."""

    slot: str | None
    is_scheduled: bool = False
    # Whether sources that are read by increments begin anew.
    is_full: bool = False
    # Whether the definition names the time of the slot, so that each slot is other work.
    is_interval: bool = False

    @property
    def is_explicit(self) -> bool:
        """Whether this very slot is wanted, whatever the files hold."""
        return self.slot is not None and (self.is_interval or not self.is_scheduled)


@dataclass(frozen=True, slots=True)
class Slot:
    """The name of the work, and what it reads of each source."""

    name: str
    source_states: Mapping[str, SourceState]
    # The number of a batch of followed sources.
    batch: int | None = None
    # Whether the name stands for what the files hold, not for a piece of work: a target has it
    # only as long as nothing else was loaded after it.
    is_content: bool = False

    @property
    def position(self) -> dict[str, Any]:  # Any: JSON, of each kind its own
        """What the ledger keeps of it."""
        return {name: found.position for name, found in self.source_states.items()}

    @property
    def resume(self) -> dict[str, Any]:  # Any: as above
        """What a batch keeps of it, for the next one."""
        return {
            name: found.position if found.resume is None else found.resume
            for name, found in self.source_states.items()
        }

    @property
    def warnings(self) -> list[str]:
        """What was left out of sources of files."""
        listings = [found.listing for found in self.source_states.values()]
        return [text for each in listings if isinstance(each, FileListing) for text in each.skipped]

    @property
    def is_empty(self) -> bool:
        """Whether every source is followed and has nothing new."""
        return all(found.is_empty for found in self.source_states.values())


def choose_slot(
    pipeline: Pipeline, sources: Mapping[str, Source], ledger: Ledger, asked: SlotRequest
) -> Slot:
    """The slot of a run that begins now."""
    if any(is_followed(source) for source in sources.values()):
        return _choose_batch(sources, ledger, is_full=asked.is_full)
    surveys = {name: read_source_state(source) for name, source in sources.items()}
    contents = [found.content for found in surveys.values()]
    # The same files are the same work, also in the next hour of a schedule.
    if all(content is not None for content in contents) and not asked.is_explicit:
        whole = "\n".join([pipeline.content, *map(str, contents)])
        return Slot(f"files-{_compute_digest(whole)}", surveys, is_content=True)
    return Slot(asked.slot or _find_unfinished_slot(ledger) or generate_ulid(), surveys)


def _find_unfinished_slot(ledger: Ledger) -> str | None:
    """The slot of the last run that began, if that did not succeed.

    One that was refused before, by a secret that is not set, says nothing about earlier ones.
    """
    last = next((run for run in ledger.iter_newest_runs() if run.targets), None)
    return None if last is None or last.status == SUCCEEDED else last.slot or None


def _choose_batch(sources: Mapping[str, Source], ledger: Ledger, *, is_full: bool) -> Slot:
    """The last batch again if it was not finished, else the next one; a full one is the next.

    Two runs at once name the same batch, because only one can say what it is.
    """
    last = ledger.find_last_batch()
    if last is not None and not is_full and not ledger.is_batch_finished(last[0]):
        number, batch = last
    else:
        number = 0 if last is None else last[0] + 1
        after = {} if last is None or is_full else last[1]["position"]
        fresh = {
            name: read_source_state(each, after=after.get(name)) for name, each in sources.items()
        }
        slot = Slot(_format_batch_name(number, fresh), fresh)
        # What was left out is noted, too: the next run does not come to it again.
        if slot.is_empty and last is not None and not slot.warnings:
            return slot
        batch = ledger.claim_batch(number, {"position": slot.resume, "slot": slot.name})
        if batch["slot"] == slot.name:
            return replace(slot, batch=number)
    position = batch["position"]
    added = [name for name, each in sources.items() if is_followed(each) and name not in position]
    if added:
        raise SourceRefusedError(
            f"{', '.join(added)}: added to the sources while batch {number} is not finished",
            hint="run the pipeline without it, then add it again",
        )
    surveys = {
        name: read_source_state(each, at=position[name])
        if is_followed(each)
        else read_source_state(each)
        for name, each in sources.items()
    }
    return Slot(batch["slot"], surveys, batch=number)


def _format_batch_name(number: int, surveys: Mapping[str, SourceState]) -> str:
    # Numbers begin anew with another ledger: what is read distinguishes batches.
    position = {name: found.position for name, found in surveys.items()}
    return f"batch-{number:08}-{_compute_digest(json.dumps(position, sort_keys=True))}"


def _compute_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
