"""Pipelines as resources of a cluster: numbers in brackets are those of the conformance list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.clusters.cluster_world import open_site
from omnigraph.clusters.desired import digest_bytes
from unit.clusters.pipeline_folder import (
    DEFINITION,
    apply_all,
    changes_of,
    do,
    edit,
    write_pipeline,
)

CRM = "pipelines/crm.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_pipeline(tmp_path)


def test_a_pipeline_is_a_resource_that_depends_on_its_source_graphs_and_schemas(
    folder: Path,
) -> None:
    found = do(folder, "validate")
    assert found["ok"], found["diagnostics"]
    (resource,) = [each for each in found["resources"] if each["kind"] == "pipeline"]
    assert (resource["address"], resource["path"]) == ("pipeline.crm", CRM)
    needed = {each["to"] for each in found["dependencies"] if each["from"] == "pipeline.crm"}
    graphs = {"graph.people", "schema.people", "graph.tasks", "schema.tasks"}
    assert needed == graphs | {"provider.source.crm"}


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    [
        # Number 276 of the list.
        (CRM, "schedule:", "every:", "pipeline_invalid"),
        (CRM, "provider.source.crm", "github", "ambiguous_source"),
        (CRM, "provider.source.crm", "provider.storage.crm", "wrong_kind_reference"),
        (CRM, "provider.source.crm", "provider.source.erp", "dangling_source_reference"),
        (CRM, "source: provider.source.crm", "source: {kind: notion}", "pipeline_invalid"),
        (CRM, "into:", "graphs: {people: people.omni}\ninto:", "pipeline_invalid"),
        (CRM, "into:", "ledger: runs\ninto:", "pipeline_invalid"),
        (CRM, "into:", "env_file: .env\ninto:", "pipeline_invalid"),
        (CRM, "into:", "name: erp\ninto:", "pipeline_invalid"),
        (CRM, DEFINITION, "a: [", "pipeline_invalid"),
        ("cluster.yaml", "{ crm: pipelines/crm.yaml }", "{ 9m: x.yaml }", "invalid_resource_id"),
        ("cluster.yaml", "{ crm: pipelines/crm.yaml }", "{ _m: x.yaml }", "invalid_resource_id"),
        (
            "cluster.yaml",
            "{ crm: pipelines/crm.yaml }",
            "{ crm: no.yaml }",
            "pipeline_file_missing",
        ),
        ("cluster.yaml", "{ crm: pipelines/crm.yaml }", "{ crm: [x] }", "invalid_cluster_yaml"),
        # Number 277.
        ("pipelines/people.map.yaml", "age: int(years)", "aged: int(years)", "pipeline_invalid"),
        ("pipelines/people.map.yaml", "type: Person", "type: Human", "pipeline_invalid"),
        (CRM, "graph: people", "graph: humans", "dangling_graph_reference"),
        # Number 283.
        (
            CRM,
            "provider.source.crm",
            "{kind: http, url: 'https://example.com', token: abc}",
            "inline_secret",
        ),
        (
            "cluster.yaml",
            "{ kind: files, paths: people.csv, format: csv }",
            "{ kind: postgres, table: people, url: 'postgresql://ada:pw@db/crm' }",
            "inline_secret",
        ),
        ("cluster.yaml", "kind: files, ", "", "invalid_source_provider"),
    ],
)
def test_what_is_wrong_with_a_pipeline_fails_validation(
    folder: Path, name: str, old: str, new: str, code: str
) -> None:
    edit(folder, name, old, new)
    for verb in ("validate", "plan"):
        found = do(folder, verb)
        assert not found["ok"]
        assert code in found["codes"], found["diagnostics"]
        assert "pw@" not in str(found)


def test_a_definition_whose_graph_ends_in_the_same_revision_fails_the_plan(folder: Path) -> None:
    """[277]"""
    apply_all(folder)
    text = (folder / "cluster.yaml").read_text()
    start, end = text.index("  tasks:\n"), text.index("policies:")
    text = (text[:start] + text[end:]).replace("[people, tasks]", "[people]")
    (folder / "cluster.yaml").write_text(text)
    found = do(folder, "plan")
    (finding,) = [each for each in found["diagnostics"] if each["severity"] == "error"]
    assert finding["code"] == "dangling_graph_reference"
    assert finding["message"].startswith("pipeline 'crm':")


def test_plans_ask_no_source_and_start_no_java(folder: Path) -> None:
    """[278]"""
    edit(
        folder,
        "cluster.yaml",
        "{ kind: files, paths: people.csv, format: csv }",
        "{ kind: postgres, table: people, url: '${CRM_URL}' }",
    )
    program = f"""
import sys
from omnigraph.clusters.control_plane import ControlPlane
for verb in ("validate", "import_state", "plan", "apply", "report_status"):
    found = getattr(ControlPlane({str(folder)!r}, "ada"), verb)()
    assert found.is_ok, found.to_json()["diagnostics"]
assert "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_an_apply_writes_definitions_and_no_rows(folder: Path) -> None:
    """[279]"""
    found = apply_all(folder)
    assert changes_of(found)["pipeline.crm"]["disposition"] == "applied"
    site = open_site(str(folder))
    revision = site.ledger.read_newest()
    assert revision is not None
    applied = revision.resources["pipeline.crm"]
    assert applied.details == {
        "kinds": ["files"],
        "targets": ["graph.people", "graph.tasks"],
        "sources": ["provider.source.crm"],
        "schedule": "* * * * *",
    }
    path = f"__cluster/resources/pipeline/crm/{applied.digest}.pipeline.yaml"
    payload = site.objects.get(path)
    assert payload is not None
    assert digest_bytes(payload) == applied.digest
    assert b"people.csv" in payload
    with site.open_graph(revision.folder_of("people")) as graph:
        assert len(list(graph.branch().commits())) == 1
    assert not do(folder, "apply")["state_written"]


def test_a_pipeline_is_updated_and_deleted_without_an_approval(folder: Path) -> None:
    """[279]"""
    apply_all(folder)
    edit(folder, CRM, "* * * * *", "0 * * * *")
    (change,) = do(folder, "plan")["changes"]
    assert (change["resource"], change["operation"]) == ("pipeline.crm", "update")
    assert (change["effect"], change["reversibility"]) == ("data_plane_schedule", "reversible")
    assert change["pipeline"]["schedule"] == "0 * * * *"
    assert do(folder, "apply")["converged"]
    edit(folder, "cluster.yaml", "pipelines: { crm: pipelines/crm.yaml }\n", "")
    found = do(folder, "apply")
    assert found["converged"]
    assert changes_of(found)["pipeline.crm"]["operation"] == "delete"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (CRM, DEFINITION, "# a comment\n" + DEFINITION.replace('"* * * * *"', "'* * * * *'")),
        (CRM, "graph: people", "graph: graph.people"),
        (
            "pipelines/people.map.yaml",
            "{name: login, age: int(years)}",
            "{age: int(years), name: login}",
        ),
    ],
)
def test_other_spellings_of_a_definition_change_nothing(
    folder: Path, name: str, old: str, new: str
) -> None:
    apply_all(folder)
    edit(folder, name, old, new)
    assert do(folder, "plan")["changes"] == []


def test_a_change_of_a_mapping_or_a_source_is_a_change_of_the_pipeline(folder: Path) -> None:
    apply_all(folder)
    edit(folder, "pipelines/people.map.yaml", "int(years)", "int(years) + 1")
    assert list(changes_of(do(folder, "plan"))) == ["pipeline.crm"]
    edit(folder, "cluster.yaml", "people.csv", "humans.csv")
    found = do(folder, "apply")
    assert list(changes_of(found)) == ["pipeline.crm", "provider.source.crm"]
    source = changes_of(found)["provider.source.crm"]
    assert (source["downstream"], source["effect"]) == (["pipeline.crm"], "config_only")


def test_a_dropped_property_fails_the_plan_and_names_the_pipeline(folder: Path) -> None:
    """[285]"""
    apply_all(folder)
    edit(folder, "people.pg", "  age: I32?\n", "")
    edit(folder, "queries/people/people.gq", "return { $p.name, $p.age }", "return { $p.name }")
    edit(folder, "queries/people/people.gq", ", $age: I32?", "")
    edit(folder, "queries/people/people.gq", ", age: $age", "")
    found = do(folder, "plan")
    assert not found["ok"]
    (finding,) = [each for each in found["diagnostics"] if each["severity"] == "error"]
    assert finding["message"].startswith("pipeline 'crm': ")
    assert "age" in finding["message"]
    assert finding["file"].endswith("people.map.yaml")
    assert found["blast_radius"] == [{"resource": "schema.people", "affected": ["pipeline.crm"]}]
    assert not do(folder, "apply")["ok"]


def test_a_schema_change_that_a_pipeline_survives_lists_it_downstream(folder: Path) -> None:
    apply_all(folder)
    edit(folder, "people.pg", "age: I32?", "age: I32?\n  city: String?")
    assert "pipeline.crm" in changes_of(do(folder, "plan"))["schema.people"]["downstream"]


def test_an_overwrite_waits_for_an_approval_of_its_very_digest(folder: Path) -> None:
    """[282]"""
    apply_all(folder)
    edit(folder, CRM, "{graph: people, map", "{graph: people, mode: overwrite, map")
    found = do(folder, "plan")
    (change,) = found["changes"]
    assert (change["disposition"], change["reason"]) == ("blocked", "approval_required")
    assert (change["approval"], change["reversibility"]) == (
        "human_required",
        "irreversible_data_loss",
    )
    (approval,) = found["approvals_required"]
    assert approval["reason"] == "replaces all entities of the types that it loads"
    before = do(folder, "report_status")["resource_digests"]["pipeline.crm"]
    blocked = do(folder, "apply")
    assert (blocked["converged"], blocked["ok"]) == (False, True)
    status = do(folder, "report_status")
    assert status["resource_digests"]["pipeline.crm"] == before
    assert status["resource_statuses"]["pipeline.crm"]["conditions"] == ["approval_required"]

    assert do(folder, "approve", "pipeline.crm")["ok"]
    edit(folder, CRM, "* * * * *", "0 * * * *")
    stale = do(folder, "plan")
    assert "approval_stale" in stale["codes"]
    assert stale["changes"][0]["reason"] == "approval_required"
    edit(folder, CRM, "0 * * * *", "* * * * *")
    assert do(folder, "apply")["converged"]
    (used,) = do(folder, "report_status")["approvals"]
    assert used["consumed_at"]
    assert do(folder, "plan")["changes"] == []
    # Another definition that overwrites needs another approval.
    edit(folder, "pipelines/people.map.yaml", "int(years)", "int(years) + 1")
    assert changes_of(do(folder, "plan"))["pipeline.crm"]["reason"] == "approval_required"


def test_a_revision_with_pipelines_is_checked_out_as_it_was_applied(
    folder: Path, tmp_path: Path
) -> None:
    apply_all(folder)
    before = tmp_path / "before"
    assert do(folder, "checkout", 2, before)["ok"]
    assert do(before, "plan")["changes"] == []
    assert "providers" not in (before / "pipelines/crm.yaml").read_text()


def test_a_payload_that_was_lost_is_applied_again(folder: Path) -> None:
    apply_all(folder)
    site = open_site(str(folder))
    (entry,) = site.objects.list("__cluster/resources/pipeline")
    site.objects.delete([entry.path])
    assert "catalog_payload_missing" in do(folder, "report_status")["codes"]
    assert do(folder, "refresh")["ok"]
    assert changes_of(do(folder, "apply"))["pipeline.crm"]["operation"] == "create"
    assert do(folder, "report_status")["codes"] == []


def test_a_pipeline_waits_for_a_graph_that_could_not_be_made(folder: Path) -> None:
    assert do(folder, "import_state")["ok"]
    # A graph of another origin is in the way.
    import omnigraph  # noqa: PLC0415

    omnigraph.create(folder / "graphs/tasks.omni", schema="node A { name: String @key }").close()
    found = do(folder, "apply")
    assert changes_of(found)["graph.tasks"]["reason"] == "graph_create_failed"
    assert changes_of(found)["pipeline.crm"]["reason"] == "dependency_not_applied"
