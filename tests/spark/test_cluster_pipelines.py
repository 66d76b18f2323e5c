"""Pipelines of a cluster, run by workers: numbers in brackets are those of the conformance list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest

import omnigraph
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.applied_pipelines import PipelineWorker, RunPlace, read_applied
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.backfill import list_backfill, run_backfill
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.scheduler import ScheduledRun
from unit.clusters.pipeline_folder import apply_all, do, edit, write_pipeline

CRM = "pipelines/crm.yaml"
PROPOSERS = """\
  - id: pipelines-propose
    allow:
      actors: { group: loaders }
      actions: [branch_create, propose]
      target_branch_scope: any
"""
TASKS = "node Task {\n  title: String @key\n  kind: enum(plan)\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_pipeline(tmp_path)
    edit(folder, CRM, "* * * * *", "0 0 * * *")
    return folder


def worker(folder: Path) -> PipelineWorker:
    return PipelineWorker(str(folder), RunPlace(folder), RunOptions(wait=lambda _: None))


def run_due(folder: Path) -> list[ScheduledRun]:
    return list(worker(folder).run_due(datetime.now(UTC)))


def run_one(folder: Path) -> Run:
    """What becomes of the pipeline that is due."""
    (found,) = run_due(folder)
    assert found.run is not None, found.error
    return found.run


def messages(folder: Path, graph: str) -> Sequence[str]:
    """The messages of the loads of a graph."""
    with omnigraph.open(folder / f"graphs/{graph}.omni") as found:
        commits = [(each.actor, each.message or "") for each in found.branch().commits()]
    loads = [(actor, text) for actor, text in commits if text.startswith("pipeline crm")]
    assert {actor for actor, _ in loads} <= {"pipeline:crm"}
    return [text for _, text in loads]


def test_a_worker_runs_what_is_applied_once_and_signs_as_the_pipeline(
    folder: Path, spark: object
) -> None:
    """[284]"""
    del spark
    apply_all(folder)
    run = run_one(folder)
    assert (run.status, run.revision, run.actor) == ("succeeded", 2, "pipeline:crm")
    applied = do(folder, "report_status")
    assert run.digest == applied["resource_digests"]["pipeline.crm"]
    assert len(messages(folder, "people")) == len(messages(folder, "tasks")) == 1
    assert run_due(folder) == []
    seen = applied["observations"]["pipeline.crm"]
    assert (seen["last_run"]["run_id"], seen["last_run"]["status"]) == (run.id, "succeeded")
    assert seen["next_slot"].endswith("T00-00Z")


def test_two_workers_at_once_make_one_commit_of_a_slot(folder: Path, spark: object) -> None:
    del spark
    apply_all(folder)
    ready = Barrier(2)

    def work() -> list[ScheduledRun]:
        ready.wait()
        return run_due(folder)

    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(work) for _ in range(2)]
        runs = [each.run for one in found for each in one.result()]
    assert {run and run.status for run in runs} == {"succeeded"}
    assert len(messages(folder, "people")) == len(messages(folder, "tasks")) == 1


def test_another_worker_completes_the_run_of_one_that_was_killed(
    folder: Path, spark: object
) -> None:
    del spark
    apply_all(folder)
    program = f"""
import os, signal
from datetime import UTC, datetime
from omnigraph.clusters.applied_pipelines import PipelineWorker, RunPlace
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.storage import open_objects
from pathlib import Path
opened = []
def open_store(uri):
    opened.append(uri)
    # The first target has its commit by now.
    if uri.endswith("tasks.omni"):
        os.kill(os.getpid(), signal.SIGKILL)
    return open_objects(uri)
place = RunPlace(Path({str(folder)!r}))
worker = PipelineWorker({str(folder)!r}, place, RunOptions(open_store=open_store))
list(worker.run_due(datetime.now(UTC)))
"""
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    assert process.wait(timeout=500) == -signal.SIGKILL
    with suppress(ProcessLookupError):
        # Its Java, if that has not ended with it.
        os.killpg(process.pid, signal.SIGKILL)
    assert (len(messages(folder, "people")), len(messages(folder, "tasks"))) == (1, 0)
    before = do(folder, "report_status")["observations"]["pipeline.crm"]["last_run"]
    assert before["status"] == "interrupted"
    run = run_one(folder)
    assert run.status == "succeeded"
    assert [each.is_repeated for each in run.targets] == [True, False]
    assert len(messages(folder, "people")) == len(messages(folder, "tasks")) == 1
    assert run_due(folder) == []


def test_a_target_that_fails_makes_a_run_partial_and_a_retry_completes_it(
    folder: Path, spark: object
) -> None:
    """[280], [281]"""
    del spark
    (folder / "tasks.pg").write_text(TASKS)
    edit(folder, "pipelines/tasks.map.yaml", "{title: login}", "{title: login, kind: kind}")
    (folder / "people.csv").write_text("login,years,kind\nada,36,plan\nbo,41,work\n")
    apply_all(folder)
    run = run_one(folder)
    assert run.status == "partial"
    people, tasks = run.targets
    assert (people.status, tasks.status, tasks.commit) == ("succeeded", "failed", None)
    assert people.commit is not None
    status = do(folder, "report_status")
    assert status["ok"]
    conditions = status["resource_statuses"]["pipeline.crm"]["conditions"]
    assert conditions == ["PartialPipelineRun"]
    edit(folder, "tasks.pg", "enum(plan)", "enum(plan, work)")
    assert do(folder, "apply")["converged"]
    again = read_applied(open_cluster(folder), "crm", RunPlace(folder))
    retried = run_pipeline(again.pipeline, again.complete(RunOptions()))
    assert retried.status == "succeeded"
    assert (retried.targets[0].commit, retried.targets[0].is_repeated) == (people.commit, True)
    assert retried.targets[1].commit is not None
    assert len(messages(folder, "people")) == len(messages(folder, "tasks")) == 1
    assert do(folder, "report_status")["resource_statuses"]["pipeline.crm"]["conditions"] == []


def test_an_overwrite_runs_only_by_the_approval_of_its_digest(folder: Path, spark: object) -> None:
    """[282]"""
    del spark
    apply_all(folder)
    assert run_one(folder).status == "succeeded"
    edit(folder, CRM, "{graph: people, map", "{graph: people, mode: overwrite, map")
    assert do(folder, "apply")["ok"]
    kept = read_applied(open_cluster(folder), "crm", RunPlace(folder))
    assert not kept.pipeline.overwrites
    assert do(folder, "approve", "pipeline.crm")["ok"]
    assert do(folder, "apply")["converged"]
    (folder / "people.csv").write_text("login,years\ncy,50\n")
    applied = read_applied(open_cluster(folder), "crm", RunPlace(folder))
    run = run_pipeline(applied.pipeline, applied.complete(RunOptions()))
    assert run.status == "succeeded"
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        found = graph.branch().query("query q() { match { $p: Person } return { $p.name } }")
        assert found.to_json_rows() == [{"p.name": "cy"}]
    unapproved = replace(applied, is_approved=False)
    with pytest.raises(omnigraph.errors.ApprovalRequiredError):
        run_pipeline(unapproved.pipeline, unapproved.complete(RunOptions()))


def test_a_policy_that_allows_no_change_holds_a_worker(folder: Path, spark: object) -> None:
    """[284]"""
    del spark
    edit(folder, "staff.yaml", "actions: [read, change]", "actions: [read]")
    apply_all(folder)
    run = run_one(folder)
    assert {target.error_code for target in run.targets} == {"policy_denied"}
    assert messages(folder, "people") == messages(folder, "tasks") == []


def test_a_deep_check_reads_expressions_and_no_source(folder: Path, spark: object) -> None:
    del spark
    (folder / "people.csv").unlink()
    assert do(folder, "validate", is_deep=True)["codes"].count("pipeline_invalid") == 0
    edit(folder, "pipelines/people.map.yaml", "int(years)", "int(years")
    assert do(folder, "validate")["ok"]
    found = do(folder, "validate", is_deep=True)
    (finding,) = [each for each in found["diagnostics"] if each["severity"] == "error"]
    assert finding["code"] == "pipeline_invalid"
    assert "'int(years' is not an expression" in finding["message"]


def test_slots_that_have_passed_are_run_by_the_applied_definition(
    folder: Path, spark: object
) -> None:
    del spark
    edit(folder, "cluster.yaml", "paths: people.csv", "paths: 'day-${SLOT_START:%d}.csv'")
    for day in ("01", "02"):
        (folder / f"day-{day}.csv").write_text(f"login,years\nnumber{day},{day}\n")
    apply_all(folder)
    applied = read_applied(open_cluster(folder), "crm", RunPlace(folder))
    start, end = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 3))
    slots = list_backfill(applied.pipeline, start, end)
    for statuses in (["succeeded", "succeeded"], ["done", "done"]):
        found = list(run_backfill(applied.pipeline, slots, applied.complete(RunOptions())))
        assert [each.status for each in found] == statuses
    assert len(messages(folder, "people")) == len(messages(folder, "tasks")) == 2


def test_a_run_for_review_proposes_its_merge_as_far_as_the_policy_allows(
    folder: Path, spark: object
) -> None:
    del spark
    review = "{graph: people, run_branch: {merge: review}, map"
    edit(folder, CRM, "{graph: people, map", review)
    apply_all(folder)
    denied = run_one(folder).targets[0]
    assert denied.error_code == "policy_denied"
    bundle = folder / "staff.yaml"
    bundle.write_text(bundle.read_text() + PROPOSERS)
    assert do(folder, "apply")["converged"]
    applied = read_applied(open_cluster(folder), "crm", RunPlace(folder))
    run = run_pipeline(applied.pipeline, applied.complete(RunOptions()))
    assert (run.status, run.awaits_review) == ("succeeded", True)
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        (proposal,) = graph.proposals()
        assert proposal.number == run.targets[0].proposal
    assert messages(folder, "people") == []
