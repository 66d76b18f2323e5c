"""When pipelines run: cron expressions, in UTC, and the slots they stand for.

A slot is the minute for which a run is due. It names the run, so that one slot is run once however
often a scheduler looks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from croniter import croniter

_CRON_FIELDS: Final = 5
# A scheduler that was down takes up the newest slot within this time; older ones are skipped.
SLOT_DELAY_MAX: Final = timedelta(days=1)


def is_schedule(text: str) -> bool:
    """Whether a text is a cron expression of five fields that ever comes true."""
    return len(text.split()) == _CRON_FIELDS and croniter.is_valid(text, strict=True)


def find_due_slot(schedule: str, now: datetime) -> datetime | None:
    """The newest slot that is not in the future, unless it is too long ago."""
    # The previous one of a moment later: a slot at this very minute is due.
    later = now.astimezone(UTC) + timedelta(microseconds=1)
    slot: datetime = croniter(schedule, later).get_prev(datetime)
    return None if now - slot > SLOT_DELAY_MAX else slot


def compute_next_slot(schedule: str, now: datetime) -> datetime:
    """The first slot that is still to come."""
    found: datetime = croniter(schedule, now.astimezone(UTC)).get_next(datetime)
    return found


def format_slot(slot: datetime) -> str:
    """The name of a slot in keys and branches."""
    return slot.astimezone(UTC).strftime("%Y-%m-%dT%H-%MZ")
