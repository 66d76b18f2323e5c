"""A served graph whose config says that vectors are made with the write."""

from __future__ import annotations

from pathlib import Path

from omnigraph.embedding.embedder import EmbedMode
from served import apply_cluster, serve_cluster

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  vec: Vector(4)? @embed(text, model="demo")
}
"""
CLUSTER = """\
version: 1
storage: ../root
providers: {embedding: {own: {kind: mock, model: demo}}}
graphs:
  docs: {schema: g.pg, embedding_provider: own, embed: write}
policies:
  own: {file: own.yaml, applies_to: [docs]}
"""
OWN = """\
version: 1
groups: {all: [ada]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change]}
"""


def test_a_write_over_http_gets_its_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "g.pg").write_text(SCHEMA)
    (folder / "own.yaml").write_text(OWN)
    (folder / "cluster.yaml").write_text(CLUSTER)
    apply_cluster(folder, is_first=True)
    with serve_cluster(folder, actors=("ada",)) as running:
        served = running.serving.state.graphs["docs"]
        assert served.embed is EmbedMode.WRITE
        text = 'query q() { insert Doc { slug: "a", text: "sea" } }'
        with running.connect("ada") as client:
            answer = client.post("/graphs/docs/mutate", json={"query": text})
        assert answer.status_code == 200, answer.text
        status = served.open_for("ada").branch().embed_status()
        assert (status.ready, status.pending) == (1, 0)
