"""Backfills: each slot of a time that has passed is loaded once, wherever one ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.pipelines.run.backfill import list_backfill, run_backfill
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, SimulatedCrash, Steps
from spark.pipeline_world import company, defined, entities, loads

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
schedule: "0 0 * * *"
graphs: {company: company.omni}
source: {kind: files, paths: "in/${SLOT_START:%Y-%m-%d}.jsonl"}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          set: {handle: login, name: "concat(login, ' ', \'${SLOT}\')", level: {value: junior}}
"""
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
FROM, TO = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)


def _open_faulty(steps: Steps, uri: str) -> Objects:
    return FaultyObjects(open_objects(uri), steps)


def test_a_backfill_that_is_killed_goes_on_where_it_ended(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for day in DAYS:
        (tmp_path / "in" / f"{day}.jsonl").write_text(json.dumps({"login": day}) + "\n")
    pipeline = defined(tmp_path, TEXT)
    slots = list_backfill(pipeline, FROM, TO)
    with company(tmp_path) as graph:
        # Killed at several of the objects that its runs write, and started again each time.
        for number in (2, 5, 9):
            steps = Fault(number, FaultKind.CRASH_AFTER, "put").create_steps()
            options = RunOptions(wait=lambda _: None, open_store=partial(_open_faulty, steps))
            with pytest.raises(SimulatedCrash):
                list(run_backfill(pipeline, slots, options))
        done = list(run_backfill(pipeline, slots, RunOptions()))
        assert {each.status for each in done} <= {"done", "succeeded"}
        assert len(done) == len(DAYS)
        assert entities(graph) == {"Person": list(DAYS)}
        assert len(loads(graph)) == len(DAYS)
        # Every slot is one commit, and a slot that is done is not run again.
        assert [each.status for each in run_backfill(pipeline, slots, RunOptions())] == ["done"] * 4
        graph.branch("main").revert(graph.branch("main").head.id)
        ran = CliRunner().invoke(
            app, ["pipeline", "backfill", str(pipeline.file), "2026-01-01", "2026-01-05", "--json"]
        )
        assert ran.exit_code == 0, ran.output
        document = json.loads(ran.stdout)
        assert document["complete"] is True
        assert [each["status"] for each in document["slots"]] == ["done"] * 3 + ["succeeded"]
        assert entities(graph) == {"Person": list(DAYS)}


def test_a_slot_that_fails_ends_the_backfill(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for day in DAYS[:2]:
        (tmp_path / "in" / f"{day}.jsonl").write_text(json.dumps({"login": day}) + "\n")
    pipeline = defined(tmp_path, TEXT.replace("files, paths", "files, format: json, paths"))
    with company(tmp_path):
        ran = CliRunner().invoke(
            app, ["pipeline", "backfill", str(pipeline.file), "2026-01-01", "2026-01-05"]
        )
        assert ran.exit_code == 1
        assert "2/4 2026-01-03T00-00Z: succeeded" in ran.output
        assert "2026-01-03.jsonl" in ran.output
