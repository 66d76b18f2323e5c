"""What happens to a cluster between two applies: locks, races, crashes, and work beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.clusters.cluster_layout import build_revision_path
from omnigraph.clusters.cluster_world import Site, open_site
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.clusters.desired import digest_bytes
from omnigraph.errors import StorageError
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, SimulatedCrash, Steps
from unit.clusters.cluster_folder import QUERIES, SCHEMA, WIDER, remove_tasks, write_config


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that is imported and applied; making one takes many times as long as copying it."""
    made = write_config(tmp_path_factory.mktemp("seed"))
    assert ControlPlane(str(made), "ada").import_state().is_ok
    assert ControlPlane(str(made), "ada").apply().is_ok
    return made


@pytest.fixture
def folder(seed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(seed, tmp_path / "config")


def run(folder: Path, verb: str, *arguments: Any, actor: str | None = "ada") -> dict[str, Any]:
    found = getattr(ControlPlane(str(folder), actor), verb)(*arguments)
    document: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return document


def codes(document: dict[str, Any], severity: str = "error") -> set[str]:
    return {each["code"] for each in document["diagnostics"] if each["severity"] == severity}


def hold_lock(folder: Path) -> Path:
    path = folder / "__cluster/lock.json"
    lock = {"version": 1, "lock_id": "L1", "operation": "apply", "pid": 1}
    path.write_text(json.dumps(lock | {"created_at": "2026-01-01T00:00:00+00:00"}))
    return path


@pytest.mark.parametrize("verb", ["apply", "refresh", "import_state", "approve"])
def test_a_held_lock_stops_every_verb_that_writes(folder: Path, verb: str) -> None:
    lock = hold_lock(folder)
    before = _list_state(folder)
    document = run(folder, verb, *(["graph.tasks"] if verb == "approve" else []))
    assert codes(document) == {"state_lock_held"}
    assert "force-unlock L1" in document["diagnostics"][0]["message"]
    assert (_list_state(folder), lock.exists()) == (before, True)


def _list_state(folder: Path) -> list[Path]:
    return sorted((folder / "__cluster").rglob("*"))


def test_a_lock_that_is_turned_off_is_not_taken(folder: Path) -> None:
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text("state: {lock: false}\n" + text)
    hold_lock(folder)
    document = run(folder, "apply")
    assert document["ok"]
    assert not document["state_observations"]["lock_acquired"]
    assert codes(document, "warning") >= {"state_lock_disabled"}


def test_payloads_stand_at_the_digest_of_their_content(folder: Path) -> None:
    resources = folder / "__cluster/resources"
    files = [path for path in resources.rglob("*") if path.is_file()]
    assert {path.stem for path in files} == {digest_bytes(path.read_bytes()) for path in files}
    assert {path.parent.relative_to(resources).as_posix() for path in files} == {
        *("query/people", "query/tasks", "schema/people", "schema/tasks"),
        *("policy/staff", "policy/front"),
    }


def test_a_schema_that_cannot_be_applied_keeps_what_the_ledger_says(folder: Path) -> None:
    before = run(folder, "show", None)["applied_revision"]["resources"]
    (folder / "people.pg").write_text(SCHEMA.replace("age: I32?", "age: Bool?"))
    (folder / "queries/people/people.gq").write_text(QUERIES.replace("$age: I32?", "$age: Bool?"))
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(text.replace("[people, tasks]", "[people]"))
    document = run(folder, "apply")
    assert codes(document) == {"schema_apply_failed"}
    reasons = {each["resource"]: each.get("reason") for each in document["changes"]}
    assert reasons["query.people.find_person"] == "dependency_not_applied"
    assert reasons["policy.staff"] == "dependency_not_applied"
    assert run(folder, "show", None)["applied_revision"]["resources"] == before
    assert document["resource_statuses"]["schema.people"]["status"] == "error"


def test_a_schema_is_applied_beside_an_open_branch(folder: Path) -> None:
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        graph.create_branch("draft")
    (folder / "people.pg").write_text(WIDER)
    assert run(folder, "apply")["converged"]
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        assert (graph.branch().schema, graph.branch("draft").schema) == (WIDER, SCHEMA)


def test_a_plan_says_that_a_migration_would_be_refused(folder: Path) -> None:
    (folder / "people.pg").write_text(SCHEMA.replace("age: I32?", "age: Bool?"))
    (folder / "queries/people/people.gq").write_text(QUERIES.replace("$age: I32?", "$age: Bool?"))
    plan = ControlPlane(str(folder)).plan()
    assert plan.is_ok
    (finding,) = plan.findings
    assert (finding.code, finding.path) == ("schema_migration_unsupported", "schema.people")
    assert "OG-MF-106" in finding.message
    (schema,) = (each for each in plan.fields["changes"] if each["resource"] == "schema.people")
    assert schema["migration"]["supported"] is False
    assert "    unsupported change on node:Person.age" in "\n".join(plan.to_lines())


def bindings(folder: Path) -> dict[str, list[str]]:
    resources = run(folder, "show", None)["applied_revision"]["resources"]
    found = {name: each["applies_to"] for name, each in resources.items() if "policy" in name}
    return {name.removeprefix("policy."): targets for name, targets in found.items()}


@pytest.mark.parametrize("change", ["unbind", "edit", "delete", "rename"])
def test_a_graph_that_waits_for_its_deletion_keeps_its_bundle(folder: Path, change: str) -> None:
    """Without one it would be open to everybody, and its rows are still there."""
    remove_tasks(folder)
    config, bundle = folder / "cluster.yaml", folder / "staff.yaml"
    if change == "edit":
        bundle.write_text(bundle.read_text().replace("act-ada", "act-eve"))
    elif change == "delete":
        lines = config.read_text().splitlines(keepends=True)
        config.write_text("".join(each for each in lines if "staff" not in each))
    elif change == "rename":
        config.write_text(config.read_text().replace("  staff:", "  team:"))
    people = {"staff" if change != "rename" else "team": ["graph.people"]}
    for is_first in (True, False):
        document = run(folder, "apply")
        assert document["state_written"] == is_first
        kept = {"staff": ["graph.tasks"]} if change in ("delete", "rename") else {}
        both = {"staff": ["graph.people", "graph.tasks"]}
        found = {name: each for name, each in bindings(folder).items() if name != "front"}
        assert found == ((people if change == "rename" else {}) | kept if kept else both)
    assert "to update" not in "".join(ControlPlane(str(folder)).plan().to_lines())
    actor = "act-eve" if change == "edit" else "act-ada"
    with omnigraph.cluster(folder).graph("tasks", actor=actor) as tasks:
        assert tasks.branch().count("Task") == 0
    with (
        omnigraph.cluster(folder).graph("tasks", actor="act-mallory") as tasks,
        pytest.raises(omnigraph.errors.PolicyDeniedError),
    ):
        tasks.branch().count("Task")
    assert run(folder, "approve", "graph.tasks")["ok"]
    assert run(folder, "apply")["converged"]
    assert bindings(folder) == {"front": ["cluster"]} | ({} if change == "delete" else people)
    assert not run(folder, "apply")["state_written"]


def test_a_schema_of_another_writer_is_not_overwritten_by_a_planned_change(folder: Path) -> None:
    foreign = SCHEMA.replace("age: I32?", "age: I32?\n  shoe: I32?")
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        graph.branch().apply_schema(foreign)
    (folder / "people.pg").write_text(WIDER)
    document = run(folder, "apply")
    assert codes(document) == {"schema_apply_failed"}
    assert "cluster refresh" in str(document["diagnostics"])
    with omnigraph.open(folder / "graphs/people.omni") as graph:
        assert graph.branch().schema == foreign


class _Unreadable:
    """Storage that fails to give one object."""

    def __init__(self, objects: Any, path: str) -> None:
        self._objects, self._path = objects, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def get(self, path: str) -> Any:
        if path == self._path:
            raise StorageError("get", path, "the disk is worn")
        return self._objects.get(path)


def test_a_payload_that_cannot_be_read_is_an_error_until_it_can(folder: Path) -> None:
    (payload,) = (folder / "__cluster/resources/query/tasks").iterdir()
    path = payload.relative_to(folder).as_posix()

    def open_unreadable(root: str) -> Site:
        site = open_site(root)
        objects: Any = _Unreadable(site.objects, path)
        return Site(site.root, objects, site.open_graph_storage)

    for verb in ("report_status", "refresh"):
        plane = ControlPlane(str(folder), "ada", open_site_at=open_unreadable)
        document = getattr(plane, verb)().to_json()
        assert codes(document) == {"catalog_payload_read_error"}
        assert document["resource_digests"]["query.tasks.all_tasks"] == payload.stem
    status = document["resource_statuses"]["query.tasks.all_tasks"]
    assert (status["status"], status["conditions"]) == ("error", ["payload_read_error"])
    document = run(folder, "refresh")
    assert document["ok"]
    assert {each["status"] for each in document["resource_statuses"].values()} == {"applied"}


def test_a_graph_that_cannot_be_opened_is_an_error_until_it_can(folder: Path) -> None:
    place = folder / "graphs/people.omni/__manifest/format.json"
    before = place.read_bytes()
    place.write_bytes(b"garbage")
    document = run(folder, "refresh")
    assert codes(document) == {"graph_observation_error"}
    assert run(folder, "report_status")["resource_statuses"]["graph.people"]["status"] == "error"
    place.write_bytes(before)
    document = run(folder, "refresh")
    assert document["resource_statuses"]["graph.people"]["status"] == "applied"


class _Overtaken:
    """Storage in which another run records a revision just before one's own put of it."""

    def __init__(self, objects: Any, path: str, overtake: Callable[[], object]) -> None:
        self._objects, self._path, self._overtake = objects, path, overtake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put_new(self, path: str, data: bytes) -> bool:
        if path == self._path:
            self._overtake()
        made: bool = self._objects.put_new(path, data)
        return made


def test_a_run_that_was_overtaken_reports_what_is_stored(folder: Path) -> None:
    (folder / "staff.yaml").write_text((folder / "staff.yaml").read_text() + "# more\n")
    other = shutil.copytree(folder, folder.parent / "other", ignore=_ignore_state)
    remove_tasks(other)
    (other / "cluster.yaml").write_text(
        f"storage: {folder}\nstate: {{lock: false}}\n" + (other / "cluster.yaml").read_text()
    )

    def open_overtaken(root: str) -> Site:
        site = open_site(root)
        objects: Any = _Overtaken(
            site.objects, build_revision_path(3), lambda: run(other, "apply", actor="bob")
        )
        return Site(site.root, objects, site.open_graph_storage)

    document = ControlPlane(str(folder), "ada", open_site_at=open_overtaken).apply().to_json()
    assert codes(document) == {"state_cas_mismatch"}
    assert not document["state_written"]
    stored = run(folder, "report_status")
    assert stored["state_observations"]["state_revision"] == 3
    assert document["resource_statuses"] == stored["resource_statuses"]
    assert stored["resource_statuses"]["graph.tasks"]["status"] == "blocked"
    assert run(folder, "list_revisions")["revisions"][0]["actor"] == "bob"
    assert run(folder, "apply")["converged"]


def _ignore_state(_: str, names: list[str]) -> Iterator[str]:
    return (name for name in names if name in ("__cluster", "graphs"))


def _crash_at_revision(folder: Path, kind: FaultKind) -> None:
    """An apply that ends right before or after it commits."""
    probe = shutil.copytree(folder, folder.parent / f"probe-{kind}")
    steps = Steps()

    def open_counting(root: str, steps: Steps) -> Site:
        site = open_site(root)
        objects: Any = FaultyObjects(site.objects, steps)
        return Site(site.root, objects, site.open_graph_storage)

    ControlPlane(str(probe), "ada", open_site_at=lambda root: open_counting(root, steps)).apply()
    at = next(
        n for n, each in enumerate(steps.taken, 1) if each.path.startswith("__cluster/state/")
    )
    faulty = Fault(at, kind, "put_new").create_steps()
    with suppress(SimulatedCrash):
        ControlPlane(
            str(folder), "ada", open_site_at=lambda root: open_counting(root, faulty)
        ).apply()
    assert faulty.has_fired
    (folder / "__cluster/lock.json").unlink()


@pytest.mark.parametrize("kind", [FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER])
@pytest.mark.parametrize("work", ["create", "migrate", "delete"])
def test_work_that_no_revision_names_is_adopted_by_the_next_apply(
    seed: Path, tmp_path: Path, work: str, kind: FaultKind
) -> None:
    folder = shutil.copytree(seed, tmp_path / "config")
    if work == "create":
        shutil.rmtree(folder / "__cluster")
        shutil.rmtree(folder / "graphs")
        assert run(folder, "import_state")["ok"]
    elif work == "migrate":
        (folder / "people.pg").write_text(WIDER)
    else:
        remove_tasks(folder)
        assert run(folder, "approve", "graph.tasks")["ok"]
    _crash_at_revision(folder, kind)
    is_recorded = kind is FaultKind.CRASH_AFTER
    assert (folder / "graphs/tasks.omni").exists()
    document = run(folder, "apply")
    assert document["converged"]
    assert document["state_written"] == (not is_recorded)
    newest = run(folder, "show", None)
    adopted = {each["graph_id"]: each["kind"] for each in newest["recovery_records"].values()}
    made = {
        "create": {"people": "graph_create", "tasks": "graph_create"},
        "migrate": {"people": "schema_apply"},
        "delete": {},
    }
    assert adopted == ({} if is_recorded else made[work])
    assert len(newest["approval_records"]) == (work == "delete")
    left = [path for path in (folder / "graphs/tasks.omni").rglob("*") if path.is_file()]
    assert bool(left) == (work != "delete")
    assert not run(folder, "apply")["state_written"]


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_cluster_may_live_elsewhere(tmp_path: Path, form: str) -> None:
    root = form.format(tmp_path / "other")
    folder = write_config(tmp_path / "config", storage=root)
    before = sorted(folder.rglob("*"))
    assert run(folder, "import_state")["ok"]
    assert run(folder, "apply")["converged"]
    assert sorted(folder.rglob("*")) == before
    for address in (str(folder), root):
        with omnigraph.cluster(address).graph("people", actor="act-ada") as graph:
            assert graph.branch().schema == SCHEMA


def test_direct_access_to_storage_asks_no_policy(folder: Path) -> None:
    add = 'query add() { insert Person { name: "x" } }'
    with (
        omnigraph.cluster(folder).graph("people") as held,
        pytest.raises(omnigraph.errors.PolicyDeniedError, match="no actor is named"),
    ):
        held.branch().mutate(add)
    for actor in (None, "stranger"):
        with omnigraph.open(folder / "graphs/people.omni", actor=actor) as graph:
            graph.branch().mutate(add.replace('"x"', f'"{actor}"'))
