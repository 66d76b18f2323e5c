"""Plans and applies over HTTP: by the policy that is applied, never by the one that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.client.served_cluster import ServedCluster, iter_configuration
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.errors import PolicyDeniedError
from omnigraph.server.server_boot import boot_graph
from served import (
    RunningServer,
    apply_cluster,
    create_people,
    make_tokens,
    serve,
    serve_cluster,
)
from unit.server.test_cluster_serving import LIST, write_cluster

JSON = {"content-type": "application/json"}
PLAN, DEPLOY = "/cluster/plan", "/cluster/deployments"
# Ada may change schemas, by the bundle of alpha; eva manages and may not; dan manages nothing.
MANAGE = """\
  - id: manage
    allow: {actors: {group: managers}, actions: [config_manage]}
"""
WIDER = "  age: I64?\n  city: String?\n"
FIRMS = "query firms() { match { $c: Company } return { $c.name } }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_cluster(tmp_path / "config")
    front = LIST.replace("{all: [ada]}", "{all: [ada, cyd], managers: [ada, eva]}") + MANAGE
    (made / "list.yaml").write_text(front)
    (made / "h.pg").write_text((made / "g.pg").read_text())
    text = (made / "cluster.yaml").read_text()
    (made / "cluster.yaml").write_text(text.replace("beta: {schema: g.pg}", "beta: {schema: h.pg}"))
    apply_cluster(made)
    return made


@pytest.fixture
def running(folder: Path) -> Iterator[RunningServer]:
    with serve_cluster(folder, actors=("ada", "eva", "cyd")) as found:
        yield found


def read_files(folder: Path) -> dict[str, str]:
    return dict(iter_configuration(folder))


def post(running: RunningServer, actor: str, path: str, **body: Any) -> Any:  # Any: a response
    with running.connect(actor) as client:
        return client.post(path, json=body)


def widen(folder: Path, name: str = "g.pg") -> dict[str, str]:
    files = read_files(folder)
    return files | {name: files[name].replace("  age: I64?\n", WIDER)}


def test_a_configuration_is_planned_deployed_and_found(
    folder: Path, running: RunningServer
) -> None:
    files = widen(folder) | {"queries/more.gq": FIRMS}
    planned = post(running, "ada", PLAN, files=files).json()
    assert planned["ok"], planned
    changed = {each["resource"] for each in planned["changes"]}
    assert changed == {"graph.alpha", "schema.alpha", "query.alpha.firms"}
    before = open_cluster(folder).revision
    assert planned["base_state_revision"] == before
    assert open_cluster(folder).revision == before, "a plan writes nothing"

    done = post(running, "ada", DEPLOY, files=files, plan_id=planned["plan_id"]).json()
    assert (done["ok"], done["state_written"], done["converged"]) == (True, True, True), done
    assert done["state_revision"] == before + 1
    with running.connect("ada") as client:
        record = client.get(f"{DEPLOY}/{done['deployment_id']}").json()
        assert (record["verb"], record["actor_id"]) == ("apply", "ada")
        assert record["state_revision"] == before + 1
        listed = client.get(DEPLOY).json()["deployments"]
        assert [each["state_revision"] for each in listed] == list(range(before + 1, 0, -1))
        assert client.get(f"{DEPLOY}/none").status_code == 404
    # A direct apply of the same files has nothing to do: it is the same core.
    for name, text in files.items():
        (folder / name).write_text(text)
    assert not ControlPlane(str(folder), "bob").apply().fields["state_written"]
    again = post(running, "ada", DEPLOY, files=files).json()
    assert (again["ok"], again["state_written"], again["deployment_id"]) == (True, False, None)


def test_a_plan_that_moved_is_not_deployed(folder: Path, running: RunningServer) -> None:
    planned = post(running, "ada", PLAN, files=widen(folder)).json()
    files = widen(folder) | {"queries/more.gq": FIRMS}
    done = post(running, "ada", DEPLOY, files=files, plan_id=planned["plan_id"]).json()
    assert not done["ok"]
    errors = [each["code"] for each in done["diagnostics"] if each["severity"] == "error"]
    assert errors == ["resource_content_changed"]
    assert not done["state_written"]


def test_only_who_manages_the_configuration_sees_or_changes_it(
    folder: Path, running: RunningServer
) -> None:
    files = read_files(folder)
    for path in (PLAN, DEPLOY):
        answer = post(running, "cyd", path, files=files)
        assert answer.status_code == 403
        assert "policy denies 'config_manage' to actor 'cyd'" in answer.text
    with running.connect("cyd") as client:
        assert client.get(DEPLOY).status_code == 403
        assert client.get(f"{DEPLOY}/x").status_code == 403
        # Before the body is read.
        assert client.post(PLAN, content=b"{", headers=JSON).status_code == 403
    with running.connect() as client:
        assert client.post(PLAN, json={"files": files}).status_code == 401


def test_a_bundle_does_not_authorize_its_own_installation(
    folder: Path, running: RunningServer
) -> None:
    files = read_files(folder)
    files["list.yaml"] = files["list.yaml"].replace("[ada, eva]", "[ada, eva, cyd]")
    assert post(running, "cyd", DEPLOY, files=files).status_code == 403
    # Eva manages, but the applied bundle of alpha lets ada alone change its schema.
    own = files["own.yaml"].replace("{all: [ada]", "{all: [ada, eva]")
    before = open_cluster(folder).revision
    answer = post(running, "eva", DEPLOY, files=widen(folder) | {"own.yaml": own})
    assert answer.status_code == 403
    assert "policy denies 'schema_apply'" in answer.text
    # And none is bound to beta, so there a token alone changes nothing.
    answer = post(running, "ada", DEPLOY, files=widen(folder, "h.pg"))
    assert answer.status_code == 403
    assert "no policy is applied to graph 'beta'" in answer.text
    assert open_cluster(folder).revision == before
    # What follows from another revision is decided by that: then she may.
    assert post(running, "eva", DEPLOY, files=files | {"own.yaml": own}).json()["ok"]
    assert post(running, "eva", DEPLOY, files=widen(folder) | {"own.yaml": own}).json()["ok"]


def test_the_end_of_a_graph_waits_for_an_approval(folder: Path, running: RunningServer) -> None:
    files = read_files(folder)
    text = files["cluster.yaml"].replace("  alpha: {schema: g.pg, queries: queries}\n", "")
    files["cluster.yaml"] = text.replace("  own: {file: own.yaml, applies_to: [alpha]}\n", "")
    planned = post(running, "ada", PLAN, files=files).json()
    assert planned["approvals_required"][0]["resource"] == "graph.alpha"
    done = post(running, "ada", DEPLOY, files=files).json()
    assert not done["converged"]
    assert "alpha" in open_cluster(folder).graphs()
    assert post(running, "eva", DEPLOY, files=files).status_code == 403


@pytest.mark.parametrize(
    "name",
    ["../cluster.yaml", "/etc/hosts", "a//b", "./a", "", "a/../b", "a\\b", "a\0b", "x" * 300],
)
def test_files_stay_in_a_folder_of_their_own(
    folder: Path, running: RunningServer, name: str
) -> None:
    answer = post(running, "ada", PLAN, files=read_files(folder) | {name: "x"})
    assert answer.status_code == 400, answer.text
    assert "files" in answer.json()["error"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("schema: g.pg", "schema: {outside}/secret.yaml"),
        ("schema: g.pg", "schema: ../../../../../../{outside}/secret.yaml"),
        ("queries: queries", "queries: {outside}"),
        ("queries: queries", "queries: {outside}/secret.gq"),
        ("file: own.yaml", "file: {outside}/secret.yaml"),
        ("policies:", "ui: {{dashboards: {{d: {outside}/secret.yaml}}}}\npolicies:"),
        ("policies:", "pipelines: {{d: {outside}/secret.yaml}}\npolicies:"),
    ],
)
def test_a_configuration_reads_no_file_of_the_server(
    folder: Path, running: RunningServer, tmp_path: Path, old: str, new: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret.yaml", "secret.gq"):
        (outside / name).write_text("s3cret: [")
    files = read_files(folder)
    assert old in files["cluster.yaml"]
    files["cluster.yaml"] = files["cluster.yaml"].replace(old, new.format(outside=outside))
    answer = post(running, "ada", PLAN, files=files)
    assert answer.status_code == 200
    assert not answer.json()["ok"]
    assert "outside of the configuration" in answer.text, answer.text
    assert "s3cret" not in answer.text


def test_the_answer_names_files_as_they_were_sent(folder: Path, running: RunningServer) -> None:
    files = read_files(folder) | {"queries/more.gq": "query broken( {"}
    found = post(running, "ada", PLAN, files=files).json()
    assert (found["ok"], found["plan_id"]) == (False, None)
    assert {each["file"] for each in found["diagnostics"] if "file" in each} == {"queries/more.gq"}
    assert "omnigraph-cluster-" not in str(found)
    text = files["cluster.yaml"].replace("storage: ../root", "storage: s3://other/root")
    found = post(running, "ada", PLAN, files=read_files(folder) | {"cluster.yaml": text}).json()
    assert "another storage root" in str(found["diagnostics"])
    assert post(running, "ada", PLAN, files={}).status_code == 400


def test_a_server_of_one_graph_has_no_cluster(tmp_path: Path) -> None:
    uri = create_people(tmp_path / "people.omni")
    state = boot_graph(uri, graph_id=None, policy=None, tokens=make_tokens("ada"), is_open=False)
    with serve(state) as running:
        answer = post(running, "ada", PLAN, files={})
        assert answer.status_code == 404
        assert "no cluster" in answer.text


def test_python_and_commands_plan_and_apply_at_a_server(
    folder: Path, running: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedCluster(running.url, "cyd-secret") as cluster, pytest.raises(PolicyDeniedError):
        cluster.plan(folder)
    (folder / "g.pg").write_text(widen(folder)["g.pg"])
    # What is no configuration stays here.
    (folder / ".env").write_text("KEY=s3cret")
    (folder / "notes.txt").write_text("s3cret")
    for name in ("root/__cluster", ".git", "root/graphs/alpha.omni"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.yaml").write_text("s3cret")
    assert "s3cret" not in str(read_files(folder))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "ada-secret")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    at = ["--config", str(folder), "--server", running.url]
    saved = str(tmp_path / "plan.json")
    planned = CliRunner().invoke(app, ["cluster", "plan", *at, "--out", saved])
    assert planned.exit_code == 0, planned.output
    assert "~ schema.alpha" in planned.stdout
    applied = CliRunner().invoke(app, ["cluster", "apply", *at, "--plan", saved])
    assert applied.exit_code == 0, applied.output
    assert "~ schema.alpha: applied" in applied.stdout
    again = CliRunner().invoke(app, ["cluster", "apply", *at, "--plan", saved, "--json"])
    assert again.exit_code == 1
    assert "resource_content_changed" in again.output
    (folder / "g.pg").write_text("node {")
    broken = CliRunner().invoke(app, ["cluster", "plan", *at])
    assert broken.exit_code == 1
    assert "schema_parse_error" in broken.output
    with ServedCluster(running.url, "ada-secret") as cluster:
        newest = cluster.list_deployments()[0]
        assert cluster.read_deployment(newest["deployment_id"]) == newest
