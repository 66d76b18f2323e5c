from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.feed import feed_batches
from omnigraph.engine.feed.feed_batches import plan_feed_splits, read_change_batches
from omnigraph.errors import InvalidArgumentError

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as made:
        main = made.branch()
        main.load(
            pa.table({"name": [f"p{number:02}" for number in range(30)]}),
            mode="append",
            type="Person",
        )
        main.load(pa.table({"from": ["p01"], "to": ["p02"]}), mode="append", type="Knows")
        main.optimize()
        main.mutate('query q() { update Person set { age: 3 } where name = "p03" }')
        main.mutate('query q() { delete Person where name = "p01" }')
        yield made


def told(graph: Graph, version: int) -> list[dict[str, Any]]:
    """Every change since a version, from all shares."""
    session = graph._session
    start, end = graph.snapshot(version).at, graph.branch().snapshot().at
    wanted = parse_filters(None, None, None).resolve_in_first(session.open_view(end))
    batches = [
        batch
        for share in plan_feed_splits(session, start, end)
        for batch in read_change_batches(session, share, wanted)
    ]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, feed_batches.SCHEMA).to_pylist()
    return rows


@pytest.mark.parametrize("window", [8_192, 7])
def test_batches_tell_what_the_pages_of_each_commit_tell(
    graph: Graph, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_batches, "WINDOW_ROWS", window)
    monkeypatch.setattr(feed_batches, "SPLIT_ROWS", 2 * window)
    expected = [
        (commit.id, commit.version, change.to_json())
        for commit in reversed(list(graph.branch().commits()))
        if commit.parents and not commit.is_maintenance
        for change in graph.commit_changes(commit).changes
    ]
    assert len(expected) > 30
    found = told(graph, 0)
    shown = []
    for row in found:
        document = {
            "kind": row["kind"],
            "type": {"name": row["type"]},
            "id": row["id"],
            "op": row["op"],
        }
        images = {side: json.loads(row[side]) for side in ("before", "after") if row[side]}
        shown.append((row["commit"], row["version"], document | images))
    for _, _, document in expected:
        del document["type"]["id"]
    key = lambda each: (each[1], each[2]["kind"] == "edge", each[2]["id"])  # noqa: E731
    assert sorted(shown, key=key) == sorted(expected, key=key)


def test_only_what_came_after_the_start_is_told(graph: Graph) -> None:
    head = graph.branch().head.version
    assert told(graph, head) == []
    assert {row["op"] for row in told(graph, head - 1)} == {"delete"}


def test_a_start_on_another_line_is_refused(graph: Graph) -> None:
    side = graph.create_branch("side")
    side.mutate('query q() { update Person set { age: 9 } where name = "p04" }')
    session = graph._session
    with pytest.raises(InvalidArgumentError, match="not on the way"):
        plan_feed_splits(session, side.snapshot().at, graph.branch().snapshot().at)
