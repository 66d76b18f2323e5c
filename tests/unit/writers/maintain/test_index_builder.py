"""Indexes that come with large tables and grow with them, without a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, LoadModeName
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.publisher import Publishers
from omnigraph.writers.maintain import index_builder
from places import fresh_uri

SCHEMA = """
node Person { name: String @key  email: String @unique  age: I32? @index  bio: String? @index }
node Team { name: String @key }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    monkeypatch.setattr(index_builder, "TAIL_ROWS_MIN", 10)
    with omnigraph.create(fresh_uri(), schema=SCHEMA, durable=False) as made:
        yield made


def test_a_load_that_makes_a_table_large_has_its_indexes_built(graph: Graph) -> None:
    load(graph, "a", 50)
    befriend(graph, "a", 20)
    settle(graph)
    assert {
        (str(status.type_key), status.property): status.state.value
        for status in graph.index_status()
        if status.total_rows
    } == {
        ("node:Person", "@id"): "fresh",
        ("node:Person", "age"): "fresh",
        ("node:Person", "bio"): "absent",
        ("node:Person", "email"): "fresh",
        ("node:Person", "name"): "fresh",
        ("edge:Knows", "@id"): "fresh",
        ("edge:Knows", "@src"): "fresh",
        ("edge:Knows", "@dst"): "fresh",
    }
    assert graph.check().problems == ()


def test_an_index_that_a_command_has_built_is_extended_too(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    graph.branch().ensure_indices()
    load(graph, "b", 20)
    settle(graph)
    assert {status.state.value for status in graph.index_status() if status.total_rows} == {"fresh"}


def test_a_small_table_needs_no_index(graph: Graph) -> None:
    load(graph, "a", 9)
    settle(graph)
    assert states(graph) == {"absent"}
    assert not any(commit.is_maintenance for commit in graph.branch().commits())


def test_an_index_is_extended_after_much_was_written(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    load(graph, "b", 9)
    settle(graph)
    assert states(graph) == {"stale"}
    load(graph, "c", 9)
    settle(graph)
    assert states(graph) == {"fresh"}
    assert next(iter(graph.branch().commits(limit=1))).message == "index maintenance"
    assert graph.check().problems == ()


def test_single_rows_add_up(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    for number in range(10):
        load(graph, f"b{number}-", 1)
    settle(graph)
    assert states(graph) == {"fresh"}


def test_the_most_needed_indexes_come_first_and_every_piece_is_a_commit(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_builder, "STEP_ROWS_MAX", 50)
    load(graph, "a", 50)
    settle(graph)
    loaded = next(each for each in graph.branch().commits() if not each.is_maintenance)
    publishers = graph._session.resources.publishers
    # From here on nothing is built in the background, which would come between the pieces.
    monkeypatch.setattr(graph._session.resources.index_builder, "_has_time", lambda _: False)
    made = [commit for commit in graph.branch().commits() if commit.is_maintenance]
    assert len(made) == 4
    # From the same start, one piece is one index.
    fresh = []
    stream = graph.create_branch("again", source=loaded)._stream
    for _ in range(4):
        newest = graph._session.open_view(graph._session.read_head(stream))
        assert index_builder.build_index_step(newest, publishers, tail_rows_min=10)
        fresh.append({s.property for s in graph.index_status("again") if s.covered_rows})
    assert fresh[0] == {"@id"}
    assert fresh[1] == {"@id", "email"}
    newest = graph._session.open_view(graph._session.read_head(stream))
    assert not index_builder.build_index_step(newest, publishers, tail_rows_min=10)


def test_a_large_table_is_indexed_in_several_segments(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_builder, "STEP_ROWS_MAX", 40)
    resources = graph._session.resources
    monkeypatch.setattr(resources.index_builder, "_has_time", lambda _: False)
    for prefix in "abcde":
        load(graph, prefix, 20)
    pieces = 0
    view = graph.branch().snapshot().view
    while index_builder.build_index_step(view, resources.publishers, tail_rows_min=10):
        view = graph.branch().snapshot().view
        pieces += 1
    assert pieces == 3 * 4
    assert states(graph) == {"fresh"}
    table = view.open_table(TypeKey(TypeKind.NODE, "Person"))
    assert {index.segments for index in table.indexes} == {3}
    assert graph.check().problems == ()


def test_an_overwritten_table_is_indexed_anew(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    load(graph, "b", 50, mode="overwrite")
    settle(graph)
    assert states(graph) == {"fresh"}


def test_the_next_process_that_writes_builds_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA, durable=False) as graph:
        load(graph, "a", 50)
        settle(graph)
        assert states(graph) == {"absent"}
    monkeypatch.setattr(index_builder, "TAIL_ROWS_MIN", 10)
    with omnigraph.open(tmp_path / "g", durable=False) as graph:
        load(graph, "b", 1)
        # Closing the graph waits for what later writes need.
    with omnigraph.open(tmp_path / "g", durable=False) as graph:
        covered = {status.property for status in graph.index_status() if status.covered_rows == 51}
        assert covered >= {"@id", "email"}
        load(graph, "c", 1)
        settle(graph)
        assert "absent" not in states(graph)


def test_what_is_written_while_indexes_are_built_is_covered_too(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = index_builder.build_index_step
    calls = []

    def write_meanwhile(view: View, publishers: Publishers, **options: Any) -> bool:
        is_made = piece(view, publishers, **options)
        calls.append(is_made)
        if calls == [True, False]:
            # The work is about to end, and nothing else will be written.
            load(graph, "late", 20)
        return is_made

    monkeypatch.setattr(index_builder, "build_index_step", write_meanwhile)
    load(graph, "a", 50)
    settle(graph)
    assert states(graph) == {"fresh"}


def test_a_closing_graph_builds_what_later_writes_need(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        graph._session.resources.index_builder, "_has_time", lambda is_urgent: is_urgent
    )
    load(graph, "a", 50)
    settle(graph)
    assert {status.property for status in graph.index_status() if status.covered_rows} == {
        "@id",
        "email",
    }


def test_a_closing_graph_begins_no_other_piece(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph._session.resources.index_builder, "_has_time", lambda _: False)
    load(graph, "a", 50)
    settle(graph)
    assert states(graph) == {"absent"}
    assert not graph._session.resources.index_builder._running


def test_rows_that_were_replaced_count_too(graph: Graph) -> None:
    load(graph, "a", 50)
    settle(graph)
    load(graph, "a", 20, mode="merge")
    settle(graph)
    assert states(graph) == {"fresh"}


def test_a_branch_that_is_gone_by_then_is_no_failure(graph: Graph) -> None:
    load(graph, "a", 50)
    child = graph.create_branch("child")
    stream, resources = child._stream, graph._session.resources
    snapshot = child.snapshot().at
    graph.delete_branch("child")
    resources.index_builder.consider_snapshot(snapshot)
    settle(graph)
    assert resources.index_builder.last_error is None
    assert stream.id not in resources.index_builder._running


def load(graph: Graph, prefix: str, count: int, mode: LoadModeName = "append") -> None:
    names = [f"{prefix}{number}" for number in range(count)]
    ages = pa.array(range(count), pa.int32())
    rows = pa.table({"name": names, "email": [f"{name}@x" for name in names], "age": ages})
    graph.branch().load(rows, type="Person", mode=mode)


def befriend(graph: Graph, prefix: str, count: int) -> None:
    ends = [f"{prefix}{number}" for number in range(count)]
    graph.branch().load(pa.table({"from": ends, "to": ends[::-1]}), type="Knows", mode="append")


def states(graph: Graph) -> set[str]:
    return {
        status.state.value
        for status in graph.index_status()
        if status.total_rows and status.property != "bio"
    }


def settle(graph: Graph) -> None:
    """Wait for everything that was to be done after the commits so far."""
    graph._session.resources.background.submit(lambda: None).result(timeout=60)
