"""What keeps a graph of a cluster from being served, and what keeps the server from starting."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.errors import ClusterError
from omnigraph.server.cluster_serving import boot_cluster
from served import apply_cluster, make_tokens, serve_cluster

SCHEMA = "node Note { slug: String @key  text: String?  vec: Vector(4)? }\n"
CLUSTER = """\
version: 1
storage: ../root
graphs:
  notes: {schema: g.pg, queries: notes.gq, embedding_provider: own}
  other: {schema: g.pg}
providers: {embedding: {own: {kind: mock, model: m}}}
"""
QUERIES = """\
query near($text: String) {
  match { $n: Note } return { $n.slug } order { nearest($n.vec, $text) } limit 2 }
query texts() { match { $n: Note } return { $n.text } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The configuration of two graphs, applied."""
    made = tmp_path / "config"
    made.mkdir()
    files = {"cluster.yaml": CLUSTER, "g.pg": SCHEMA, "notes.gq": QUERIES}
    for name, text in files.items():
        (made / name).write_text(text)
    apply_cluster(made, is_first=True)
    return made


def boot(folder: Path, *, is_strict: bool = False) -> tuple[set[str], dict[str, str]]:
    """The graphs that a server would have, and why it would not have the others."""
    state, quarantined = boot_cluster(
        open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=is_strict
    )
    return set(state.graphs), {name: each.reason for name, each in quarantined.items()}


def break_query(folder: Path, name: str) -> None:
    """Drop the property that a stored query returns, beside the cluster."""
    with omnigraph.open(folder.parent / f"root/graphs/{name}.omni", durable=False) as graph:
        graph.branch().apply_schema(SCHEMA.replace("text: String?", ""))


def test_a_stored_query_that_does_not_fit_keeps_its_graph_from_being_served(folder: Path) -> None:
    break_query(folder, "notes")
    served, reasons = boot(folder)
    assert served == {"other"}
    assert "text" in reasons["notes"]
    with pytest.raises(ClusterError, match="notes") as refused:
        boot(folder, is_strict=True)
    assert refused.value.reason == "cluster_graph_quarantined"


def test_a_server_without_a_graph_does_not_start(folder: Path) -> None:
    break_query(folder, "notes")
    (folder.parent / "root/graphs/other.omni").rename(folder.parent / "away")
    with pytest.raises(ClusterError) as unhealthy:
        boot(folder)
    assert unhealthy.value.reason == "cluster_no_healthy_graphs"


def test_a_lock_of_another_command_does_not_keep_a_server_from_starting(folder: Path) -> None:
    lock = folder.parent / "root/__cluster/lock.json"
    lock.write_text("{}")
    assert boot(folder) == ({"notes", "other"}, {})


def test_a_text_is_near_what_the_provider_of_its_graph_says(folder: Path) -> None:
    with omnigraph.open(folder.parent / "root/graphs/notes.omni", durable=False) as graph:
        notes = [{"slug": name, "vec": [1.0, 0.0, 0.0, float(n)]} for n, name in enumerate("abc")]
        graph.branch().load(notes, type="Note", mode="append")
    with serve_cluster(folder) as running, running.connect() as client:
        asked = {"params": {"text": "anything"}}
        found = client.post("/graphs/notes/queries/near", json=asked)
    assert (found.status_code, found.json()["row_count"]) == (200, 2)
