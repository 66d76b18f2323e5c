"""Payloads of a cluster that cannot be verified: what boots refuse, and what servers close."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.errors import ClusterError
from omnigraph.server.cluster_serving import boot_cluster
from served import RunningServer, apply_cluster, make_tokens, serve_cluster
from unit.server.test_cluster_serving import (
    ACTORS,
    LIST,
    OWN,
    A,
    B,
    wait_until,
    write_cluster,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cluster(tmp_path / "config")


@pytest.fixture
def running(folder: Path) -> Iterator[RunningServer]:
    with serve_cluster(folder, actors=ACTORS) as found:
        yield found


@pytest.mark.parametrize("kind", ["query", "policy"])
def test_an_altered_payload_is_fatal(folder: Path, kind: str) -> None:
    payloads = list((folder.parent / "root/__cluster/resources" / kind).rglob("*.*"))
    assert payloads
    for each in payloads:
        each.write_bytes(each.read_bytes() + b" ")
    with pytest.raises(ClusterError, match="altered"):
        boot_cluster(open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=False)
    for each in payloads:
        each.unlink()
    with pytest.raises(ClusterError, match="missing"):
        boot_cluster(open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=False)


def test_a_policy_that_cannot_be_verified_closes_its_graph(
    folder: Path, running: RunningServer
) -> None:
    with running.connect("ada") as client:
        (folder / "own.yaml").write_text(OWN.replace("readers: [cyd]", "readers: [other]"))
        known = set((folder.parent / "root/__cluster/resources/policy").rglob("*.*"))
        apply_cluster(folder)
        for each in set((folder.parent / "root/__cluster/resources/policy").rglob("*.*")) - known:
            each.unlink()
        wait_until(lambda: client.get(f"{A}/snapshot").status_code == 503, running)
        running.wake()
        time.sleep(0.2)
        assert client.get(f"{A}/snapshot").status_code == 503, "it stays closed"
        assert client.get(f"{B}/snapshot").status_code == 200


def test_a_policy_of_the_server_that_cannot_be_verified_closes_its_list(
    folder: Path, running: RunningServer
) -> None:
    with running.connect("ada") as client:
        (folder / "list.yaml").write_text(LIST.replace("[ada]", "[ada, bob]"))
        policies = folder.parent / "root/__cluster/resources/policy"
        known = set(policies.rglob("*.*"))
        apply_cluster(folder)
        [added] = set(policies.rglob("*.*")) - known
        content = added.read_bytes()
        added.unlink()
        wait_until(lambda: client.get("/graphs").status_code == 503, running)
        ready = client.get("/readyz").json()
        assert ready["state_revision"] == ready["newest_revision"]
        assert is_stale(running)
        assert client.get(f"{A}/snapshot").status_code == 200
        added.write_bytes(content)
        wait_until(lambda: client.get("/graphs").status_code == 200, running)
        assert not is_stale(running)
    with running.connect("bob") as client:
        assert client.get("/graphs").status_code == 200


def is_stale(running: RunningServer) -> bool:
    """Whether something is served as it was in an older revision."""
    return running.serving.state.stale_since is not None
