"""What a worker does before any Spark: definitions, secrets, names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.applied_pipelines import PipelineWorker, RunPlace, read_applied
from omnigraph.clusters.cluster_world import open_site
from omnigraph.errors import ClusterError
from omnigraph.pipelines.run.pipeline_run import RunOptions
from unit.clusters.pipeline_folder import apply_all, do, edit, write_pipeline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_pipeline(tmp_path)
    edit(folder, "pipelines/crm.yaml", "* * * * *", "0 0 * * *")
    return folder


def work(folder: Path, *only: str) -> list[str | None]:
    worker = PipelineWorker(str(folder), RunPlace(folder), RunOptions(), only)
    return [each.error for each in worker.run_due(datetime.now(UTC))]


def test_a_value_that_is_not_set_fails_the_run_and_no_plan(folder: Path) -> None:
    """[283]"""
    edit(
        folder,
        "cluster.yaml",
        "{ kind: files, paths: people.csv, format: csv }",
        "{ kind: http, url: 'https://example.com', token: '${CRM_TOKEN}' }",
    )
    apply_all(folder)
    (message,) = work(folder)
    assert (message or "").startswith("not set: ${CRM_TOKEN}")
    (error,) = [
        do(folder, "report_status")["observations"]["pipeline.crm"]["last_run"]["error_code"]
    ]
    assert error == "secret_missing"
    assert do(folder, "plan")["ok"]


def test_a_file_of_variables_is_an_option_of_the_process(folder: Path) -> None:
    apply_all(folder)
    place = RunPlace(folder, folder / "worker.env")
    applied = read_applied(open_cluster(folder), "crm", place)
    assert applied.pipeline.env_file == folder / "worker.env"


def test_a_definition_that_was_damaged_stops_no_other(folder: Path) -> None:
    apply_all(folder)
    site = open_site(str(folder))
    (entry,) = site.objects.list("__cluster/resources/pipeline")
    site.objects.put(entry.path, b"source: nothing\n")
    (error,) = work(folder)
    assert error is not None
    assert "was altered" in error


def test_an_approval_that_is_gone_approves_nothing(folder: Path) -> None:
    edit(folder, "pipelines/crm.yaml", "graph: people", "graph: people, mode: overwrite")
    assert do(folder, "import_state")["ok"]
    assert do(folder, "approve", "pipeline.crm")["ok"]
    assert do(folder, "apply")["converged"]
    assert open_cluster(folder).stored_definition("crm").is_approved
    site = open_site(str(folder))
    (entry,) = site.objects.list("__cluster/approvals")
    site.objects.delete([entry.path])
    assert not open_cluster(folder).stored_definition("crm").is_approved
    (error,) = work(folder)
    assert error is not None
    assert "not approved" in error


def test_only_what_is_applied_can_be_chosen(folder: Path) -> None:
    apply_all(folder)
    assert work(folder, "erp") == []
    with pytest.raises(ClusterError, match=r"pipeline\.erp is not applied"):
        read_applied(open_cluster(folder), "erp", RunPlace(folder))
    line = ["worker", "--cluster", str(folder), "--once", "--only", "erp", "--json"]
    ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 1


def test_verbs_of_pipelines_take_a_cluster(folder: Path) -> None:
    apply_all(folder)

    def ask(verb: str, *arguments: str) -> object:
        line = ["pipeline", verb, *arguments, "--cluster", str(folder), "--json"]
        ended = CliRunner().invoke(app, line)
        assert ended.exit_code == 0, ended.output
        return json.loads(ended.stdout)

    planned = ask("plan", "crm")
    assert isinstance(planned, dict)
    digest = do(folder, "report_status")["resource_digests"]["pipeline.crm"]
    assert (planned["definition_digest"], planned["valid"]) == (digest, True)
    (status,) = ask("status")["pipelines"]  # type: ignore[index]  # a document
    assert (status["pipeline"], status["last_run"]) == ("crm", None)
    assert ask("runs", "crm") == {"runs": []}
    ended = CliRunner().invoke(app, ["pipeline", "runs", "crm", "--env-file", "x.env"])
    assert ended.exit_code == 2
