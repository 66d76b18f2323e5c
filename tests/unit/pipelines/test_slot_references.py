"""The time of a run in definitions, and the slots of a time that has passed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from omnigraph.errors import InvalidArgumentError, PipelineInvalidError
from omnigraph.pipelines.config.definition import Constant, Expression, FileSource, Pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import (
    bind_slot,
    find_interval,
    iter_intervals,
    uses_slots,
)
from omnigraph.pipelines.run.backfill import list_backfill
from unit.pipelines.definitions import PEOPLE, read

DAILY = "0 0 * * *"
NOW = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)


def _daily(folder: Path) -> Pipeline:
    text = PEOPLE.replace("paths: people.jsonl", "paths: 'in/${SLOT_START:%Y/%m/%d}/*.jsonl'")
    text = text.replace("name: full_name", '''name: "concat(full_name, '${SLOT_END}')"''')
    text = text.replace("level: {value: senior}", "level: {value: '${SLOT}'}")
    return read(folder, f'schedule: "{DAILY}"\n{text}')


def test_a_slot_is_the_time_before_the_minute_it_is_named_after(tmp_path: Path) -> None:
    pipeline = _daily(tmp_path)
    assert uses_slots(pipeline)
    found = find_interval(DAILY, None, NOW)
    assert (found.name, found.start.day, found.end.day) == ("2026-03-05T00-00Z", 4, 5)
    bound = bind_slot(pipeline, found)
    (source,) = bound.sources.values()
    assert isinstance(source, FileSource)
    assert source.paths[0].endswith("/in/2026/03/04/*.jsonl")
    values = bound.targets[0].mapping.rules[0].values
    name, level = values["name"], values["level"]
    assert isinstance(name, Expression)
    assert isinstance(level, Constant)
    assert name.sql == "concat(full_name, '2026-03-05T00:00:00Z')"
    assert level.value == "2026-03-05T00-00Z"
    assert not uses_slots(bound)
    # It is the same definition, and a slot is no secret.
    assert bound.digest == pipeline.digest
    Resolver(pipeline, {}).require_secrets()


def test_a_slot_is_found_by_its_name_and_no_other_text_is_one() -> None:
    assert find_interval(DAILY, "2026-03-02T00-00Z", NOW).start.day == 1
    with pytest.raises(InvalidArgumentError, match="'tuesday' is not a slot"):
        find_interval(DAILY, "tuesday", NOW)
    with pytest.raises(InvalidArgumentError, match="is not a minute of") as refused:
        find_interval(DAILY, "2026-03-02T01-00Z", NOW)
    assert "2026-03-02T00-00Z" in str(refused.value.hint)


def test_a_backfill_has_the_slots_that_begin_and_end_in_its_time(tmp_path: Path) -> None:
    pipeline = _daily(tmp_path)
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    found = list_backfill(pipeline, first, last)
    assert (len(found), found[0].start, found[-1].end) == (31, first, last)
    later = datetime(2026, 1, 1, 5, tzinfo=UTC)
    assert next(iter_intervals(DAILY, later, last)).start.day == 2
    # A part of the first slot is none, and midnight is that of UTC.
    assert next(iter_intervals(DAILY, first.replace(second=30), last)).start.day == 2
    east = timezone(timedelta(hours=2))
    assert next(iter_intervals(DAILY, first.astimezone(east), last)).start == first
    assert next(iter_intervals(DAILY, first.replace(tzinfo=east), last)).start == first
    with pytest.raises(InvalidArgumentError, match="begins and ends in between"):
        list_backfill(pipeline, later, first)
    with pytest.raises(InvalidArgumentError, match="reads the same in every slot"):
        list_backfill(read(tmp_path, PEOPLE), first, last)


def test_a_definition_that_has_no_slots_may_not_name_them(tmp_path: Path) -> None:
    text = PEOPLE.replace("paths: people.jsonl", "paths: '${SLOT}.jsonl'")
    with pytest.raises(PipelineInvalidError, match="needs a 'schedule'"):
        read(tmp_path, text)
    new = f'schedule: "{DAILY}"\n{text}'.replace(".jsonl'", ".jsonl', new_files: true")
    with pytest.raises(PipelineInvalidError, match="does not go with source"):
        read(tmp_path, new)
