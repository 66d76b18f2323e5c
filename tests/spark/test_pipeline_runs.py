"""Runs of pipelines: mapping, targets, keys, crashes, branches of runs."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    ApprovalRequiredError,
    InvalidArgumentError,
    PipelineInvalidError,
    SecretMissingError,
    SourceRefusedError,
)
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.run.pipeline_inspection import read_runs
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.run_review import merge_run
from omnigraph.pipelines.run.scheduler import run_due
from omnigraph.storage import open_objects
from omnigraph.storage.objects.faults import FaultyObjects, SimulatedCrash, Steps, iter_faults
from spark.pipeline_world import (
    DOCUMENTS,
    EVERYTHING,
    PEOPLE,
    SIMPLE,
    company,
    defined,
    entities,
    loads,
    logins,
)

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True)
def _embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")


@pytest.mark.smoke
def test_records_of_two_sources_become_one_commit(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, EVERYTHING)
        run = run_pipeline(pipeline)
        assert (run.status, run.rows_read) == ("succeeded", 5)
        assert entities(graph) == {
            "MemberOf": ['["ada","core"]', '["bo","core"]', '["cy","infra"]'],
            "PartOf": ['["d1/0","d1"]', '["d1/1","d1"]'],
            "Serves": ['["ada","[\\"5\\",\\"emea\\"]"]'],
            "Wrote": ['["ada","d1"]', '["bo","d1"]'],
            "Customer": ['["5","emea"]'],
            "Document": ["d1", "d2"],
            "Person": ["ada", "bo", "cy"],
            "Piece": ["d1/0", "d1/1"],
            "Team": ["core", "infra"],
        }
        rows = graph.branch("main").query(
            'query q() { match { $p: Person { handle: "ada" } } '
            "return { $p.name, $p.age, $p.startedOn, $p.seenAt } }"
        )
        (ada,) = rows.to_pylist()
        assert (ada["p.name"], ada["p.age"]) == ("Ada Love, lace", 36)
        assert str(ada["p.startedOn"]) == "2020-01-02"
        assert str(ada["p.seenAt"]).startswith("2020-01-02 00:00:00")
        (target,) = run.targets
        assert target.commit == graph.branch("main").head.id
        assert graph.branch("main").head.actor == "pipeline:people"
        again = run_pipeline(pipeline)
        assert (again.slot, again.targets[0].is_repeated) == (run.slot, True)
        assert again.targets[0].entities == target.entities
        assert again.targets[0].written == target.written > 0
        assert len(loads(graph)) == 1
        assert graph.check().problems == ()


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("logn", "Person.name: A column, variable, or function parameter with name `logn`"),
        ("login +", "Person.name: "),
        ("length(login)", "Person.name: expects String, the expression gives int32"),
    ],
)
def test_a_mapping_that_does_not_fit_the_source_is_told_before_anything_is_written(
    tmp_path: Path, value: str, message: str
) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    with company(tmp_path) as graph:
        text = SIMPLE.replace("name: login", f"name: {value}")
        run = run_pipeline(defined(tmp_path, text))
        (target,) = run.targets
        assert (run.status, target.is_retryable) == ("failed", False)
        assert target.error is not None
        assert message in target.error
        assert "__reason" not in target.error
        assert "people.yaml:10" in target.error
        assert entities(graph) == {}


def test_a_run_with_one_failing_target_is_partial_and_its_retry_completes_the_rest(
    tmp_path: Path,
) -> None:
    logins(tmp_path, "a.jsonl", "ada", "bo")
    second = SIMPLE[SIMPLE.index("  - graph") :].replace("graph: company", "graph: people")
    text = SIMPLE.replace("company.omni}", "company.omni, people: people.omni}") + second
    with company(tmp_path) as graph, company(tmp_path, "people.omni") as other:
        other.branch("main").load(
            [{"type": "Person", "data": {"handle": "bo", "name": "B", "level": "junior"}}],
            mode="append",
        )
        pipeline = defined(tmp_path, text)
        run = run_pipeline(pipeline)
        first, failed = run.targets
        assert (run.status, first.status, failed.status) == ("partial", "succeeded", "failed")
        assert run.to_json()["conditions"] == ["PartialPipelineRun"]
        assert failed.error is not None
        assert "bo" in failed.error
        other.branch("main").mutate('query d() { delete Person where handle = "bo" }')
        again = run_pipeline(pipeline)
        assert again.status == "succeeded"
        assert [target.is_repeated for target in again.targets] == [True, False]
        assert again.targets[0].commit == first.commit
        assert len(loads(graph)) == len(loads(other)) == 1


def test_a_process_that_ends_anywhere_leaves_one_commit_and_a_true_ledger(tmp_path: Path) -> None:
    """The steps of the ledger; those of a commit are in the matrix of the engine."""
    counter = iter(range(1000))

    def life(steps: Steps) -> Path:
        folder = tmp_path / f"w{next(counter)}"
        folder.mkdir()
        logins(folder, "a.jsonl", "ada", "bo")
        company(folder).close()
        options = RunOptions(open_store=lambda uri: FaultyObjects(open_objects(uri), steps))
        with suppress(SimulatedCrash):
            run_pipeline(defined(folder, SIMPLE), options)
        return folder

    faults = list(iter_faults(life))
    assert len(faults) == 16
    for fault in faults:
        steps = fault.create_steps()
        folder = life(steps)
        assert steps.has_fired
        pipeline = defined(folder, SIMPLE)
        resolver = Resolver.from_environment(pipeline)
        with omnigraph.open(folder / "company.omni") as graph:
            written = len(loads(graph))
            told = [
                target.commit
                for run in read_runs(pipeline, resolver, limit=9)
                for target in run.targets
            ]
            assert sum(commit is not None for commit in told) == written
            assert run_pipeline(pipeline).status == "succeeded"
            assert len(loads(graph)) == 1
            assert entities(graph) == {"Person": ["ada", "bo"]}


def test_a_branch_of_the_run_is_merged_or_left_for_review(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    own = SIMPLE.replace("mode: append", "run_branch: {name: 'in/{slot}', merge: review}")
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, own)
        run = run_pipeline(pipeline, RunOptions(slot="one"))
        assert run.targets[0].run_branch == "in/one"
        assert (entities(graph), entities(graph, "in/one")) == ({}, {"Person": ["ada"]})
        assert run.to_json()["conditions"] == ["AwaitingReview"]
        again = run_pipeline(pipeline, RunOptions(slot="one"))
        assert again.targets[0].is_repeated
        # Both ask for the same merge.
        (proposal,) = graph.proposals()
        assert [each.targets[0].proposal for each in (run, again)] == [proposal.number] * 2
        assert (proposal.status, proposal.source) == ("open", "in/one")
        resolver = Resolver.from_environment(pipeline)
        waiting = read_runs(pipeline, resolver, limit=9, is_awaiting_review=True)
        assert [each.id for each in waiting] == [again.id, run.id]
        done = merge_run(pipeline, resolver, run.id, actor="rita")
        assert (done.awaits_review, done.status) == (False, "succeeded")
        assert done.targets[0].merged == graph.branch("main").head.id
        assert graph.branch("main").head.actor == "rita"
        assert graph.proposal(proposal.number).read().status == "merged"
        # The other run of the slot had the same branch.
        assert read_runs(pipeline, resolver, limit=9, is_awaiting_review=True) == []
        with pytest.raises(InvalidArgumentError, match="no branch of run"):
            merge_run(pipeline, resolver, run.id, actor="rita")
        with pytest.raises(InvalidArgumentError, match="is in the ledger"):
            merge_run(pipeline, resolver, "../x", actor="rita")
        # Reviewed, merged and ended: the slot is done all the same.
        later = run_pipeline(pipeline, RunOptions(slot="one"))
        assert later.targets[0].is_repeated
        assert not later.awaits_review
        assert graph.branches() == ["main"]
        automatic = defined(tmp_path, own.replace("merge: review", "merge: automatic"))
        logins(tmp_path, "b.jsonl", "bo")
        merged = run_pipeline(automatic, RunOptions(slot="two")).targets[0]
        assert merged.merged == graph.branch("main").head.id
        assert entities(graph) == {"Person": ["ada", "bo"]}
        assert graph.branches() == ["main"]
        assert run_pipeline(automatic, RunOptions(slot="two")).targets[0].is_repeated
        assert graph.branches() == ["main"]


def test_rows_that_break_rules_are_quarantined_and_counted(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada", "bo", "ada")
    text = SIMPLE.replace(
        "mode: append",
        "mode: append\n    on_error: quarantine\n    rejects: bad\n    max_rejected: 100%",
    )
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, text))
        assert run.status == "succeeded"
        (target,) = run.targets
        assert (target.rows_read, target.written, target.rejected) == (3, 2, 1)
        assert list((tmp_path / "bad").rglob("*.parquet"))
        assert entities(graph) == {"Person": ["ada", "bo"]}


def test_a_schedule_runs_each_slot_once(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, SIMPLE + 'schedule: "0 * * * *"\n')
        now = datetime(2026, 11, 16, 10, 7, tzinfo=UTC)
        (ran,) = run_due([pipeline], now, RunOptions())
        assert ran.run is not None
        assert (ran.slot, ran.run.trigger) == ("2026-11-16T10-00Z", "schedule")
        assert list(run_due([pipeline], now, RunOptions())) == []
        assert len(loads(graph)) == 1


def test_a_run_that_cannot_begin_is_in_the_ledger(tmp_path: Path) -> None:
    with company(tmp_path):
        pipeline = defined(tmp_path, SIMPLE)
        with pytest.raises(SourceRefusedError, match="no file matches the pattern"):
            run_pipeline(pipeline)
        secret = defined(tmp_path, SIMPLE.replace('"in/*.jsonl"', '"${NO_SUCH_NAME}/x.jsonl"'))
        with pytest.raises(SecretMissingError):
            run_pipeline(secret)
        wrong = defined(tmp_path, SIMPLE.replace("type: Person", "type: Persn"))
        with pytest.raises(PipelineInvalidError, match="no node type 'Persn'"):
            run_pipeline(wrong)
        runs = Ledger.open(str(tmp_path / "company.omni"), "people").list_runs()
        assert [run.status for run in runs] == ["failed"] * 3


def test_an_overwrite_needs_an_approval_of_this_very_definition(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, SIMPLE.replace("mode: append", "mode: overwrite"))
        with pytest.raises(ApprovalRequiredError) as caught:
            run_pipeline(pipeline, RunOptions(approve="sha256:other"))
        assert entities(graph) == {}
        run = run_pipeline(pipeline, RunOptions(approve=caught.value.digest))
        assert run.status == "succeeded"
