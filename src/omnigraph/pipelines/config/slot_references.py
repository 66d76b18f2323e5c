"""`${SLOT}`, `${SLOT_START}` and `${SLOT_END}` in definitions: the time that a run stands for.

A schedule divides time: the slot of a run is the time between two of its minutes. It is named after
the one at which it ends, because that is when it can be run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from croniter import croniter

from omnigraph.config.yaml_reader import DOCUMENT_START, Findings
from omnigraph.errors import InvalidArgumentError
from omnigraph.pipelines.config.definition import Pipeline, format_slot, is_partial

_REFERENCE: Final = re.compile(r"\$\{(SLOT|SLOT_START|SLOT_END)(?::([^}]*))?\}")
_ISO: Final = "%Y-%m-%dT%H:%M:%SZ"
_SLOT_FORMAT: Final = "%Y-%m-%dT%H-%MZ"


@dataclass(frozen=True, slots=True)
class SlotInterval:
    """The time of a slot, from its start to before its end."""

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """What keys, branches and the ledger call the slot."""
        return format_slot(self.end)


def uses_slots(pipeline: Pipeline) -> bool:
    """Whether a definition names the time of its runs."""
    return any(_REFERENCE.search(text) for text in _iter_texts(_list_parts(pipeline)))


def strip_slots(text: str) -> str:
    """A text without the names of slots: what else it names are secrets."""
    return _REFERENCE.sub("", text)


def check_slots(pipeline: Pipeline, findings: Findings) -> None:
    """Report a definition that names slots which its runs do not have."""
    if not uses_slots(pipeline):
        return
    if pipeline.schedule is None:
        hint = 'give the pipeline a schedule, such as "0 0 * * *"'
        findings.add_problem(DOCUMENT_START, "${SLOT} needs a 'schedule'", hint=hint)
    parts = [name for name, source in pipeline.sources.items() if is_partial(source)]
    if parts:
        message = f"${{SLOT}} does not go with {', '.join(parts)}: it goes on where it ended"
        findings.add_problem(DOCUMENT_START, message, hint="leave one of them out")


def bind_slot(pipeline: Pipeline, interval: SlotInterval) -> Pipeline:
    """The definition with the times of a slot in place of their names."""
    sources, mappings = _bind(_list_parts(pipeline), interval)
    targets = zip(pipeline.targets, mappings, strict=True)
    return replace(
        pipeline,
        sources=sources,
        targets=tuple(
            replace(target, mapping=replace(target.mapping, rules=rules))
            for target, rules in targets
        ),
    )


def find_interval(schedule: str, slot: str | None, now: datetime) -> SlotInterval:
    """The slot of a name, or the newest one that is over."""
    if slot is None:
        end: datetime = croniter(schedule, _round_up(now)).get_prev(datetime)
        return _build_interval(schedule, end)
    try:
        end = datetime.strptime(slot, _SLOT_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        hint = f"it ends at a minute of the schedule: {format_slot(now)}"
        raise InvalidArgumentError("slot", f"'{slot}' is not a slot", hint=hint) from None
    found = _build_interval(schedule, end)
    if not croniter.match(schedule, end):
        hint = f"the one before it is {format_slot(found.start)}"
        raise InvalidArgumentError("slot", f"{slot} is not a minute of '{schedule}'", hint=hint)
    return found


def iter_intervals(schedule: str, start: datetime, end: datetime) -> Iterator[SlotInterval]:
    """The slots of a schedule that begin and end within a time, oldest first."""
    # A slot may begin at the start itself: the next minute of a moment before.
    times = croniter(schedule, start.astimezone(UTC) - timedelta(microseconds=1))
    first = times.get_next(datetime)
    while (following := times.get_next(datetime)) <= end:
        yield SlotInterval(first, following)
        first = following


def _build_interval(schedule: str, end: datetime) -> SlotInterval:
    return SlotInterval(croniter(schedule, end).get_prev(datetime), end)


def _round_up(now: datetime) -> datetime:
    # The previous minute of a moment later: a slot that ends at this very minute is over.
    return now.astimezone(UTC).replace(microsecond=1)


def _list_parts(pipeline: Pipeline) -> Any:  # Any: values of definitions, walked by their form
    return (pipeline.sources, tuple(target.mapping.rules for target in pipeline.targets))


def _bind(value: Any, interval: SlotInterval) -> Any:  # Any: as above
    match value:
        case str():
            return _REFERENCE.sub(lambda found: _format(found, interval), value)
        case tuple():
            return tuple(_bind(each, interval) for each in value)
        case list():
            return [_bind(each, interval) for each in value]
        case Mapping():
            return {name: _bind(each, interval) for name, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            given = {
                each.name: _bind(getattr(value, each.name), interval) for each in fields(value)
            }
            return replace(value, **given)
        case _:
            return value


def _format(found: re.Match[str], interval: SlotInterval) -> str:
    name, form = found[1], found[2]
    if name == "SLOT" and form is None:
        return interval.name
    return (interval.start if name == "SLOT_START" else interval.end).strftime(form or _ISO)


def _iter_texts(value: Any) -> Iterator[str]:  # Any: as above
    match value:
        case str():
            yield value
        case tuple() | list():
            for each in value:
                yield from _iter_texts(each)
        case Mapping():
            for each in value.values():
                yield from _iter_texts(each)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                yield from _iter_texts(getattr(value, each.name))
        case _:
            pass
