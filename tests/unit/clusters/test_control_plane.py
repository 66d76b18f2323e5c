"""The verbs of a cluster, one after the other, as people use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.errors import ClusterError
from unit.clusters.cluster_folder import (
    QUERIES,
    SCHEMA,
    TASKS,
    WIDER,
    remove_tasks,
    write_config,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config")


def run(folder: Path, verb: str, *arguments: Any, actor: str | None = "ada") -> dict[str, Any]:
    found = getattr(ControlPlane(str(folder), actor), verb)(*arguments)
    assert found.is_ok == (not any(each.severity == "error" for each in found.findings))
    document: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return document


def codes(document: dict[str, Any]) -> set[str]:
    return {each["code"] for each in document["diagnostics"]}


def changes(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        each["resource"]: (each["operation"], each["disposition"]) for each in document["changes"]
    }


def clean_up(folder: Path, *, is_dry: bool) -> list[str]:
    found = ControlPlane(str(folder), "ada").clean_up(keep=None, grace_s=0, is_dry=is_dry)
    assert found.is_ok
    folders: list[str] = found.fields["folders"]
    assert f"{len(folders)} folders of deleted graphs" in "".join(found.to_lines())
    return folders


def applied(folder: Path) -> dict[str, Any]:
    assert run(folder, "import_state")["ok"]
    document = run(folder, "apply")
    assert document["ok"], document
    return document


def test_a_valid_folder_is_ok_and_says_that_external_blobs_are_refused(folder: Path) -> None:
    document = run(folder, "validate")
    assert document["ok"]
    assert codes(document) == {"external_blob_ingress_default_deny"}
    assert [each["address"] for each in document["resources"]] == [
        *("graph.people", "graph.tasks", "policy.front", "policy.staff"),
        *("query.people.add_person", "query.people.find_person", "query.tasks.all_tasks"),
        *("schema.people", "schema.tasks"),
    ]
    assert {"from": "query.people.find_person", "to": "schema.people"} in document["dependencies"]


def test_a_plan_without_a_state_creates_everything_and_writes_nothing(folder: Path) -> None:
    assert codes(run(folder, "list_revisions")) == {"state_missing"}
    first, second = run(folder, "plan"), run(folder, "plan")
    assert first == second
    assert first["diagnostics"] == []
    assert first["ok"]
    assert {operation for operation, _ in changes(first).values()} == {"create"}
    assert not (folder / "__cluster").exists()


def test_an_apply_needs_a_state(folder: Path) -> None:
    document = run(folder, "apply")
    assert not document["ok"]
    assert "state_missing" in codes(document)
    assert not (folder / "graphs").exists()
    assert codes(run(folder, "refresh")) >= {"state_missing"}


def test_one_apply_makes_everything_and_the_next_one_writes_nothing(folder: Path) -> None:
    document = applied(folder)
    assert document["converged"]
    assert document["state_written"]
    assert {disposition for _, disposition in changes(document).values()} == {"applied"}
    before = (folder / "__cluster/state.json").read_bytes()
    again = run(folder, "apply")
    assert (again["state_written"], again["converged"], again["changes"]) == (False, True, [])
    assert (folder / "__cluster/state.json").read_bytes() == before
    assert not (folder / "__cluster/lock.json").exists()
    assert not run(folder, "import_state")["ok"]
    with omnigraph.cluster(folder).graph("people", actor="act-ada") as graph:
        assert graph.branch().schema == SCHEMA
        assert graph.branch().head.actor == "ada"


def test_a_schema_and_a_query_change_in_one_apply(folder: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(WIDER)
    wider = QUERIES.replace("$p.age }", "$p.age, $p.city }")
    (folder / "queries/people/people.gq").write_text(wider)
    planned = run(folder, "plan")
    by_name = {each["resource"]: each for each in planned["changes"]}
    assert by_name["schema.people"]["migration"]["supported"]
    assert by_name["graph.people"]["disposition"] == "derived"
    assert planned["blast_radius"]
    document = run(folder, "apply")
    assert document["converged"], document
    assert changes(document)["query.people.find_person"] == ("update", "applied")
    cluster = omnigraph.cluster(folder)
    columns = {each.name: each.descriptor.result for each in cluster.queries("people")}
    assert [each.name for each in columns["find_person"]] == ["name", "age", "city"]
    assert len([*(folder / "__cluster/resources/query/people").iterdir()]) == 2


def test_a_schema_that_cannot_be_applied_blocks_what_needs_it(folder: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(SCHEMA.replace("age: I32?", "age: Bool?"))
    (folder / "queries/people/people.gq").write_text(QUERIES.replace("$age: I32?", "$age: Bool?"))
    (folder / "tasks.pg").write_text(TASKS.replace("@key", "@key\n  done: Bool?"))
    document = run(folder, "apply")
    assert not document["ok"]
    assert "schema_apply_failed" in codes(document)
    reasons = {each["resource"]: each.get("reason") for each in document["changes"]}
    assert reasons["schema.people"] == "schema_apply_failed"
    assert reasons["query.people.find_person"] == "dependency_not_applied"
    assert reasons["schema.tasks"] == "schema_apply_skipped"
    assert not document["converged"]


def test_a_deletion_waits_for_an_approval_which_is_used_once(folder: Path) -> None:
    applied(folder)
    text = (folder / "cluster.yaml").read_text()
    remove_tasks(folder)
    document = run(folder, "apply")
    assert changes(document)["graph.tasks"] == ("delete", "blocked")
    assert (folder / "graphs/tasks.omni").exists()
    assert "approval_actor_required" in codes(run(folder, "approve", "graph.tasks", actor=None))
    assert "approval_not_required" in codes(run(folder, "approve", "graph.people"))
    assert run(folder, "approve", "graph.tasks")["ok"]
    document = run(folder, "apply")
    assert document["converged"], document
    assert not [*(folder / "graphs/tasks.omni").rglob("*.*")]
    status = run(folder, "report_status")
    assert status["observations"]["graph.tasks"]["kind"] == "tombstone"
    assert [each["consumed_at"] for each in status["approvals"]] != []
    assert clean_up(folder, is_dry=True) == []
    (folder / "graphs/tasks.omni/late").mkdir(parents=True)
    (folder / "graphs/tasks.omni/late/file").write_text("of a server that had it open")
    for is_dry in (True, False):
        assert clean_up(folder, is_dry=is_dry) == ["graphs/tasks.omni"]
    assert clean_up(folder, is_dry=True) == []
    # The id is declared again: another life, in another folder, which no late deletion reaches.
    (folder / "cluster.yaml").write_text(text)
    document = run(folder, "apply")
    assert document["converged"], document
    assert (folder / "graphs/tasks.2.omni").exists()
    remove_tasks(folder)
    assert changes(run(folder, "apply"))["graph.tasks"] == ("delete", "blocked")


def test_an_approval_is_for_one_configuration(folder: Path) -> None:
    applied(folder)
    remove_tasks(folder)
    assert run(folder, "approve", "graph.tasks")["ok"]
    (folder / "people.pg").write_text(WIDER)
    document = run(folder, "apply")
    assert "approval_stale" in codes(document)
    assert changes(document)["graph.tasks"] == ("delete", "blocked")
    assert (folder / "graphs/tasks.omni").exists()


def test_a_schema_that_was_changed_outside_is_seen_and_put_back(folder: Path) -> None:
    applied(folder)
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        graph.branch().apply_schema(WIDER)
    assert not run(folder, "apply")["changes"]
    document = run(folder, "refresh")
    assert document["resource_statuses"]["schema.people"]["conditions"] == ["schema_mismatch"]
    assert changes(run(folder, "plan"))["schema.people"] == ("update", "applied")
    assert run(folder, "apply")["converged"]
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        assert graph.branch().schema == SCHEMA


def test_a_graph_that_is_gone_is_made_again(folder: Path) -> None:
    applied(folder)
    (folder / "graphs/people.omni").rename(folder / "moved")
    document = run(folder, "refresh")
    assert document["resource_statuses"]["graph.people"]["conditions"] == ["graph_missing"]
    assert run(folder, "apply")["converged"]
    with omnigraph.cluster(folder).graph("people", actor="act-ada") as graph:
        assert graph.branch().version == 0


def test_a_missing_payload_is_reported_and_written_again(folder: Path) -> None:
    applied(folder)
    (payload,) = (folder / "__cluster/resources/query/tasks").iterdir()
    payload.unlink()
    assert "catalog_payload_missing" in codes(run(folder, "report_status"))
    with pytest.raises(ClusterError) as caught:
        omnigraph.cluster(folder).query_text("tasks", "all_tasks")
    assert caught.value.reason == "catalog_payload_missing"
    run(folder, "refresh")
    assert run(folder, "apply")["converged"]
    assert payload.exists()


def test_a_lost_ledger_is_imported_from_the_graphs(folder: Path) -> None:
    applied(folder)
    payloads = sorted((folder / "__cluster/resources").rglob("*.*"))
    for path in [*(folder / "__cluster/state").iterdir(), folder / "__cluster/state.json"]:
        path.unlink()
    assert run(folder, "import_state")["ok"]
    document = run(folder, "apply")
    assert document["converged"]
    assert changes(document)["query.tasks.all_tasks"] == ("create", "applied")
    assert sorted((folder / "__cluster/resources").rglob("*.*")) == payloads


def test_a_revision_is_checked_out_planned_and_applied_again(folder: Path, tmp_path: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(WIDER)
    assert run(folder, "apply")["converged"]
    revisions = run(folder, "list_revisions")["revisions"]
    assert [each["revision"] for each in revisions] == [3, 2, 1]
    assert run(folder, "show", 2)["revision"] == 2
    old = tmp_path / "old"
    assert run(folder, "checkout", 2, old)["ok"]
    assert changes(run(old, "plan"))["schema.people"] == ("update", "applied")
    assert run(old, "apply")["converged"]
    with omnigraph.cluster(folder).graph("people", actor="act-ada") as graph:
        assert graph.branch().schema == SCHEMA
    assert "checkout_not_empty" in codes(run(folder, "checkout", 2, old))


def test_a_held_lock_stops_verbs_that_write_and_shows_in_the_others(folder: Path) -> None:
    applied(folder)
    lock = {"version": 1, "lock_id": "L1", "operation": "apply", "pid": 1}
    lock["created_at"] = "2026-01-01T00:00:00+00:00"
    (folder / "__cluster/lock.json").write_text(json.dumps(lock))
    for verb in ("apply", "refresh"):
        document = run(folder, verb)
        assert codes(document) >= {"state_lock_held"}
        assert not document["ok"]
    for verb in ("plan", "report_status"):
        document = run(folder, verb)
        assert document["ok"]
        assert document["state_observations"]["lock_id"] == "L1"
    assert codes(run(folder, "force_unlock", "L2")) == {"state_lock_id_mismatch"}
    assert run(folder, "force_unlock", "L1")["lock_removed"]
    assert codes(run(folder, "force_unlock", "L1")) == {"state_lock_missing"}
    assert run(folder, "apply")["ok"]


def test_a_saved_plan_is_applied_only_if_nothing_moved(folder: Path) -> None:
    applied(folder)
    (folder / "people.pg").write_text(WIDER)
    saved = folder / "plan.json"
    saved.write_text(json.dumps(run(folder, "plan")))
    plane = ControlPlane(str(folder), "ada")
    (folder / "people.pg").write_text(WIDER.replace("city", "town"))
    assert codes(plane.apply(saved=saved).to_json()) >= {"resource_content_changed"}
    (folder / "people.pg").write_text(WIDER)
    assert ControlPlane(str(folder), "ada").apply(saved=saved).to_json()["converged"]
    late = ControlPlane(str(folder), "ada").apply(saved=saved).to_json()
    assert codes(late) >= {"state_cas_mismatch"}


def test_what_is_not_a_saved_plan_is_refused_at_once(folder: Path) -> None:
    applied(folder)
    for path in (Path("/dev/zero"), folder, folder / "none.json", folder / "people.pg"):
        plane = ControlPlane(str(folder), "ada")
        document = plane.apply(saved=path).to_json()
        assert codes(document) == {"invalid_saved_plan"}
        assert "state_written" not in document


def test_a_folder_that_cannot_be_written_gets_no_configuration(folder: Path) -> None:
    applied(folder)
    assert codes(run(folder, "checkout", 2, Path("/proc/none"))) == {"checkout_failed"}
    assert codes(run(folder, "checkout", 2, folder / "people.pg")) == {"checkout_not_empty"}


def test_an_unknown_field_of_a_revision_is_refused(folder: Path) -> None:
    applied(folder)
    path = folder / "__cluster/state" / f"{2:020}.json"
    document = json.loads(path.read_bytes())
    document["applied_revision"]["resources"]["policy.staff"]["later"] = True
    path.write_text(json.dumps(document))
    assert codes(run(folder, "plan")) >= {"invalid_state_json"}
    with pytest.raises(ClusterError):
        omnigraph.cluster(folder)


def test_a_binding_that_changes_alone_is_an_update(folder: Path) -> None:
    applied(folder)
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(text.replace("[people, tasks]", "[people]"))
    document = run(folder, "apply")
    (change,) = document["changes"]
    assert (change["resource"], change["binding_change"]) == ("policy.staff", True)
    assert change["before_digest"] == change["after_digest"]
    assert document["converged"]


def test_a_plan_says_who_gains_and_who_loses_what(folder: Path) -> None:
    applied(folder)
    text = (folder / "staff.yaml").read_text()
    (folder / "staff.yaml").write_text(text.replace("act-ada", "act-bob"))
    (change,) = run(folder, "plan")["changes"]
    reads = {
        verb: [line for line in lines if " read " in line]
        for verb, lines in change["grants"].items()
    }
    assert reads == {
        "gains": [
            f"act-bob read on {scope} branches in graph.{graph}"
            for scope in ("protected", "unprotected")
            for graph in ("people", "tasks")
        ],
        "loses": [
            f"act-ada read on {scope} branches in graph.{graph}"
            for scope in ("protected", "unprotected")
            for graph in ("people", "tasks")
        ],
    }
    (folder / "staff.yaml").write_text(text.replace("[read]", "[graph_list]"))
    assert codes(run(folder, "plan")) >= {"policy_invalid"}


@pytest.mark.parametrize("root", ["file://elsewhere/x", "file:///dev/null/x"])
def test_a_root_that_cannot_be_used_is_a_finding(folder: Path, root: str) -> None:
    (folder / "cluster.yaml").write_text(
        f"storage: {root}\n" + (folder / "cluster.yaml").read_text()
    )
    for verb in ("import_state", "apply"):
        assert "storage_root_invalid" in codes(run(folder, verb))
