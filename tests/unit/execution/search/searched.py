"""Documents to search, in a model and in real tables, and ways to rank them in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from model import ModelGraph
from model.expressions import SCORE
from model.reading import Reader
from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import Embedder, ExecutionContext
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.search import rank_rows
from omnigraph.execution.sources.graph_source import Source
from omnigraph.execution.sources.index.index_source import IndexSource
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query import logical_plan as plans
from omnigraph.query.tree_walk import chain_of
from omnigraph.query.typed_tree import NOW_NAME
from omnigraph.rows.view import View
from omnigraph.schema.property_values import round_to_f32
from omnigraph.storage.tables.pins import Pin
from unit.execution.model_views import (
    NOW,
    add_nodes,
    model_graph,
    plan_of,
)

SCHEMA = """
node Doc { k: String @key  t: String?  n: I64?  v: Vector(3)? @embed(t, model="demo/mini") }
node Tag { k: String @key }
edge Has: Doc -> Tag
"""
WORDS = [
    "sea", "cat", "cats", "running", "runs", "the", "café", "Straße", "wars", "war", "see", "bat",
    "東京", "a", "boat", "boats", "Sea", "cab", "x1", "x2",
]  # fmt: skip


def some_text(random: Random) -> str | None:
    """A text of a few words, which may be null or empty."""
    if random.random() < 0.1:
        return None
    return " ".join(random.choice(WORDS) for _ in range(random.randrange(7)))


def some_vector(random: Random) -> tuple[float, ...] | None:
    """A vector with few distinct components, so that distances tie; it may be null."""
    if random.random() < 0.1:
        return None
    return tuple(round_to_f32(random.choice([0, 0.1, 0.5, 1, -1, 3])) for _ in range(3))


def documents(random: Random, count: int, start: int = 0) -> list[dict[str, Any]]:
    """Random documents."""
    return [
        {"k": f"d{number}", "t": some_text(random), "n": number % 5, "v": some_vector(random)}
        for number in range(start, start + count)
    ]


def graph_of(nodes: list[dict[str, Any]]) -> ModelGraph:
    """A model of documents."""
    graph = model_graph(SCHEMA)
    add_nodes(graph, "Doc", nodes)
    return graph


def sources_of(view: View) -> list[Source]:
    """A view through every source."""
    return [SourceCache().get_topology(view), IndexSource(view)]


def reading_of(
    view: View,
    source: Source,
    params: Mapping[str, Any] | None = None,
    *,
    embed: Embedder | None = None,
) -> ExecutionContext:
    """A reading of documents `$d`."""
    known = {**(params or {}), NOW_NAME: NOW}
    return ExecutionContext(view, source, known, Budget(), embed, nodes_of={"d": "Doc"})


def rank_of(graph: ModelGraph, text: str) -> plans.Rank:
    """The rank in the plan of a query."""
    (found,) = [
        each for each in chain_of(plan_of(graph, text).root) if isinstance(each, plans.Rank)
    ]
    return found


def query(order: str, params: str = "", limit: int = 5, clauses: str = "") -> str:
    """A query that ranks documents."""
    return (
        f"query q({params}) {{ match {{ $d: Doc {clauses} }} return {{ $d.k }}"
        f" order {{ {order} }} limit {limit} }}"
    )


def ranked(
    op: plans.Rank, reading: ExecutionContext, ids: list[str], *, limit: int | None = None
) -> list[tuple[str, float]]:
    """The ids and scores of the rows that a rank keeps of rows with these ids."""
    nodes = reading.source.get_nodes("Doc")
    numbers = nodes.find(pa.array(ids, pa.utf8()))
    assert (numbers >= 0).all()
    found = rank_rows(op, Batch(len(ids), {"d": numbers}), reading, limit=limit)
    assert found.scores is not None
    assert found.num_rows == len(found.scores) == len(found.nodes["d"])
    names = nodes.fetch_ids(found.nodes["d"]).to_pylist()
    return list(zip(names, found.scores.to_pylist(), strict=True))


def ranked_by_model(
    graph: ModelGraph,
    op: plans.Rank,
    ids: list[str],
    params: Mapping[str, Any] | None = None,
    embed: Embedder | None = None,
) -> list[tuple[str, float]]:
    """The same by the model."""
    reader = Reader(graph, {**(params or {}), NOW_NAME: NOW}, embed, 1_000)
    rows = [{"d": graph.nodes["Doc"][id_]} for id_ in ids]
    return [(row["d"]["@id"], row[SCORE]) for row in reader.rank(op, rows)]


def with_pin(view: View, pin: Pin, *, seq: int) -> View:
    """The view at a later commit that changed the documents."""
    pins = {**view.snapshot.pins, "node:Doc": pin}
    return replace(view, snapshot=replace(view.snapshot, pins=pins, seq=seq))
