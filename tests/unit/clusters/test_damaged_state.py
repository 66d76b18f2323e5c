"""Documents of a cluster that are damaged, old or of another program: refused, or understood."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.clusters.approvals import read_approvals
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import build_revision_path
from omnigraph.clusters.cluster_lock import ClusterLock
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.clusters.revision import encode_revision
from omnigraph.clusters.revision_decoder import decode_revision
from omnigraph.storage import open_objects
from unit.clusters.cluster_folder import remove_tasks, write_config

REVISION = build_revision_path(2)
LOCK = {
    "version": 1,
    "lock_id": "L1",
    "operation": "apply",
    "created_at": "2026-01-01T00:00:00+00:00",
    "pid": 1,
}
# One of each kind of JSON, a number that is too small, and half of a surrogate pair.
STRANGE: tuple[Any, ...] = (None, True, -1, 1.5, "x", "\ud800", [], [5], {}, {"x": 5})
Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster with every kind of resource, a deletion that is approved, and a lock."""
    made = write_config(tmp_path_factory.mktemp("cluster"))
    text = (made / "cluster.yaml").read_text()
    more = "    embedding_provider: m\n    external_blobs: {allow: [{base: 'https://h/x'}]}\n"
    text = text.replace("    schema: people.pg\n", f"    schema: people.pg\n{more}")
    provider = "providers: {embedding: {m: {kind: openai, api_key: '${KEY}'}}}\n"
    (made / "cluster.yaml").write_text(text + provider)
    assert ControlPlane(str(made), "ada").import_state().is_ok
    assert ControlPlane(str(made), "ada").apply().is_ok
    remove_tasks(made)
    assert ControlPlane(str(made), "ada").approve("graph.tasks").is_ok
    (made / "__cluster/lock.json").write_text(json.dumps(LOCK))
    return made


def _iter_places(document: Any, at: Place = ()) -> Iterator[Place]:
    yield at
    if isinstance(document, dict | list):
        names = document if isinstance(document, dict) else range(len(document))
        for name in names:
            yield from _iter_places(document[name], (*at, name))


def _iter_damaged(document: Any) -> Iterator[tuple[Place, Any]]:
    """The document with each of its parts left out, and with each replaced by what is strange."""
    for at in _iter_places(document):
        for value in (*STRANGE, KeyError):
            changed = {"": copy.deepcopy(document)}
            inner: Any = changed
            *outer, last = ("", *at)
            for name in outer:
                inner = inner[name]
            if value is KeyError:
                del inner[last]
            else:
                inner[last] = value
            if "" in changed:
                yield at, changed[""]


def test_a_revision_is_understood_in_full_or_refused(folder: Path) -> None:
    document = json.loads((folder / REVISION).read_bytes())
    refused = 0
    for at, damaged in _iter_damaged(document):
        data = json.dumps(damaged).encode()
        try:
            found = decode_revision(2, data)
        except ClusterStopped:
            refused += 1
        else:
            assert json.loads(encode_revision(found)) == damaged, at
    assert refused > 600


@pytest.mark.parametrize(
    "folder_name", ["", ".", "..", "../x", "/", "graphs", "graphs/../x.omni", "graphs/people.omni"]
)
def test_only_folders_of_deleted_graphs_are_removed(folder: Path, folder_name: str) -> None:
    document = json.loads((folder / REVISION).read_bytes())
    document["tombstones"] = {folder_name: {"kind": "tombstone"}}
    with pytest.raises(ClusterStopped, match="not that of a deleted graph"):
        decode_revision(2, json.dumps(document).encode())
    document["tombstones"] = {"graphs/people.2.omni": {}, "graphs/old-1.omni": {}}
    assert len(decode_revision(2, json.dumps(document).encode()).content.tombstones) == 2


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"[" * 100_000, b"{} {}"])
def test_bytes_that_are_not_a_revision_are_refused(data: bytes) -> None:
    with pytest.raises(ClusterStopped) as stopped:
        decode_revision(2, data)
    assert stopped.value.finding.code == "invalid_state_json"


def test_a_lock_and_an_approval_are_understood_in_full_or_refused(folder: Path) -> None:
    objects = open_objects(str(folder))
    (approval,) = (folder / "__cluster/approvals").iterdir()
    for path, read, count in (
        (folder / "__cluster/lock.json", ClusterLock(objects).read, 50),
        (approval, lambda: read_approvals(objects), 80),
    ):
        before, refused = path.read_bytes(), 0
        for _, damaged in _iter_damaged(json.loads(before)):
            path.write_text(json.dumps(damaged))
            try:
                read()
            except ClusterStopped:
                refused += 1
        path.write_bytes(before)
        assert refused > count


def _list_parts(document: Any) -> Iterator[Place]:
    resources = document["applied_revision"]["resources"]
    for address, each in resources.items():
        yield "applied_revision", "resources", address
        for name in each.keys() - {"digest"}:
            yield "applied_revision", "resources", address, name


def test_a_revision_that_lacks_a_part_is_planned_and_shown_without_a_failure(
    folder: Path, tmp_path: Path
) -> None:
    path = folder / REVISION
    before = path.read_bytes()
    refused = set()
    for number, at in enumerate(_list_parts(json.loads(before))):
        document = json.loads(before)
        inner = document
        for name in at[:-1]:
            inner = inner[name]
        del inner[at[-1]]
        path.write_text(json.dumps(document))
        planned = ControlPlane(str(folder), "ada").plan()
        assert planned.is_ok, at
        assert ControlPlane(str(folder)).report_status().is_ok
        target = tmp_path / str(number)
        refused |= {each.code for each in ControlPlane(str(folder)).checkout(2, target).findings}
    path.write_bytes(before)
    # What cannot be written as a configuration is not written at all.
    assert refused == {
        *("policy_bindings_missing", "embedding_provider_profile_missing", "graph_not_applied")
    }


def test_a_ledger_without_bindings_and_profile_is_completed_by_the_next_apply(
    tmp_path: Path,
) -> None:
    folder = write_config(tmp_path)
    provider = "providers: {embedding: {m: {kind: mock}}}\n"
    (folder / "cluster.yaml").write_text((folder / "cluster.yaml").read_text() + provider)
    assert ControlPlane(str(folder), "ada").import_state().is_ok
    assert ControlPlane(str(folder), "ada").apply().is_ok
    document = json.loads((folder / REVISION).read_bytes())
    wanted = document["applied_revision"]["resources"]
    bare = {address: {"digest": each["digest"]} for address, each in wanted.items()}
    document["applied_revision"]["resources"] = bare
    (folder / REVISION).write_text(json.dumps(document))
    planned = {
        each["resource"]: each for each in ControlPlane(str(folder)).plan().fields["changes"]
    }
    assert {name: each["metadata_change"] for name, each in planned.items()} == {
        "policy.front": "policy_bindings",
        "policy.staff": "policy_bindings",
        "provider.embedding.m": "embedding_profile",
    }
    assert planned["policy.front"]["grants"]["gains"] == ["act-ada graph_list in cluster"]
    assert ControlPlane(str(folder), "ada").apply().fields["converged"]
    document = json.loads((folder / build_revision_path(3)).read_bytes())
    assert document["applied_revision"]["resources"] == wanted


@pytest.mark.parametrize(
    "name",
    ["__manifest/format.json", "__manifest/main.0/00000000000000000000.json", "__manifest/schemas"],
)
@pytest.mark.parametrize("damage", [b"", b"garbage", b"{}", b'{"format": 999}'])
def test_a_graph_that_cannot_be_opened_stops_an_import(
    tmp_path: Path, name: str, damage: bytes, folder: Path
) -> None:
    config = write_config(tmp_path)
    shutil.copytree(folder / "graphs", config / "graphs")
    place = config / "graphs/people.omni" / name
    (next(place.iterdir()) if place.is_dir() else place).write_bytes(damage)
    document = ControlPlane(str(config), "ada").import_state()
    assert "graph_observation_error" in {each.code for each in document.findings}
    assert not document.is_ok
    assert not (config / "__cluster/state").exists()
    assert not (config / "__cluster/state.json").exists()


def test_a_plan_without_the_bundle_of_before_says_that_it_cannot_compare(tmp_path: Path) -> None:
    folder = write_config(tmp_path)
    assert ControlPlane(str(folder), "ada").import_state().is_ok
    assert ControlPlane(str(folder), "ada").apply().is_ok
    (payload,) = (folder / "__cluster/resources/policy/staff").iterdir()
    payload.write_bytes(b"\xff")
    (folder / "staff.yaml").write_text((folder / "staff.yaml").read_text() + "# more\n")
    planned = ControlPlane(str(folder)).plan()
    assert "grants_preview_unavailable" in {each.code for each in planned.findings}
    assert planned.is_ok
