"""Graph algorithms of queries on stored graphs: the same bits every time, and bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import QueryTimeoutError, ResourceLimitError

SCHEMA = """
node N { slug: String @key }
edge E: N -> N { w: F64? }
"""
NODES, EDGES = 300, 1_500
SCORES = """
query scores() {
  match {
    for $a, $rank in pagerank(edges: e, weight: w)
    for $a, $between in betweenness(edges: e, weight: w, samples: 20)
    for $a, $group in communities(edges: e, weight: w, method: "louvain")
  }
  return { $a.slug, $rank, $between, $group }
  order { $a.slug }
}
"""


def list_parts() -> list[tuple[pa.Table, pa.Table]]:
    """Nodes in no order, and parallel edges with weights that have no exact sum, in two loads."""
    generator = np.random.default_rng(5)
    slugs = np.array([f"n{number}" for number in generator.permutation(NODES)])
    starts, ends = generator.integers(0, NODES // 2, (2, EDGES))
    starts[EDGES // 2 :], ends[EDGES // 2 :] = ends[: EDGES // 2], starts[: EDGES // 2]
    edges = pa.table({"from": slugs[starts], "to": slugs[ends], "w": generator.random(EDGES) + 0.1})
    nodes = pa.table({"slug": slugs})
    half = NODES // 2
    return [
        (nodes.slice(0, half), edges.slice(0, EDGES // 2)),
        (nodes.slice(half), edges.slice(EDGES // 2)),
    ]


def read_scores(graph: Graph) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = graph.branch().query(SCORES).to_arrow().to_pylist()
    return rows


@pytest.mark.slow
def test_a_commit_gives_the_same_bits_however_it_came_into_memory(tmp_path: Path) -> None:
    followed = omnigraph.create(str(tmp_path / "a.omni"), schema=SCHEMA)
    other = omnigraph.create(str(tmp_path / "b.omni"), schema=SCHEMA)
    parts = list_parts()
    for nodes, edges in parts:
        followed.branch().load(nodes, type="N", mode="append")
        followed.branch().load(edges, type="E", mode="append")
        # The types are in memory from here on, and follow the next loads.
        read_scores(followed)
    (few, edges), (more, others) = parts
    other.branch().load(pa.concat_tables([more, few]), type="N", mode="append")
    other.branch().load(pa.concat_tables([others, edges]), type="E", mode="append")
    found = read_scores(followed)
    followed.close()
    with omnigraph.open(str(tmp_path / "a.omni")) as reopened:
        assert read_scores(reopened) == found
    assert read_scores(other) == found
    other.close()


def test_an_explanation_names_the_table_and_what_it_joins(tmp_path: Path) -> None:
    with omnigraph.create(str(tmp_path / "g.omni"), schema=SCHEMA) as graph:
        text = (
            "query q() { match { $a: N  for $a, $k in cores(edges: <e>) } return { $a.slug, $k } }"
        )
        rows = graph.branch().explain(text).rows
    (table,) = [row for row in rows if row.operator == "TableFunction"]
    assert table.detail == "$a, $k in cores(nodes: N, edges: <E>); joins $a"
    assert table.access == "topology"


def test_the_bounds_of_a_query_hold(tmp_path: Path) -> None:
    with omnigraph.create(str(tmp_path / "g.omni"), schema=SCHEMA) as graph:
        for nodes, edges in list_parts():
            graph.branch().load(nodes, type="N", mode="append")
            graph.branch().load(edges, type="E", mode="append")
        with pytest.raises(ResourceLimitError):
            graph.branch().query(SCORES, memory=10_000)
        with pytest.raises(QueryTimeoutError):
            graph.branch().query(SCORES, timeout=1e-6)
