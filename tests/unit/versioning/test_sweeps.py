"""Writes that a clean-up overtakes: they start again, or are refused, and lose nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import places
from omnigraph.errors import StagingExpiredError
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Append, Settings
from unit.versioning.small_graph import PERSON, SmallGraph, create_graph, inserting


def test_rows_that_a_clean_up_may_remove_are_not_published(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "graph")
    objects, tables = open_objects(uri, is_durable=False), Tables(uri, is_durable=False)
    graph = create_graph(objects, tables, Settings())
    prepare = inserting(graph, {"ada": "1"})
    fresh = prepare(graph.head())
    (effect,) = fresh.effects
    assert isinstance(effect, Append)
    staged = graph.tables.write(graph.head().pins[PERSON], effect.new[0])
    old = replace(fresh, effects=(Append(PERSON, (staged,)),))
    graph.committer.sweeps.declare((time.time_ns() + 10**12) // 1000)
    with pytest.raises(StagingExpiredError):
        graph.committer.publish(old)
    assert graph.head().seq == 0
    assert graph.committer.publish(old, prepare_again=prepare) is not None
    assert graph.people() == {"ada": "1"}


def test_a_write_that_was_prepared_before_a_fence_is_written_anew(graph: SmallGraph) -> None:
    prepare = inserting(graph, {"ada": "1"})
    early = prepare(graph.head())
    graph.reopened().committer.fence(MAIN)
    record = graph.committer.publish(early)
    assert record is not None
    assert record.seq == 2
    assert graph.people() == {"ada": "1"}


def test_a_record_among_collected_ones_is_withdrawn(graph: SmallGraph) -> None:
    prepare = inserting(graph, {"ada": "1"})
    early = prepare(graph.head())
    other = graph.reopened()
    for _ in range(3):
        other.committer.fence(MAIN)
    other.log.floors.put(MAIN.id, 3)
    graph.objects.delete(
        [layout.build_record_path(MAIN.id, 1), layout.build_record_path(MAIN.id, 2)]
    )
    with pytest.raises(StagingExpiredError):
        graph.committer.publish(early)
    assert graph.objects.get(layout.build_record_path(MAIN.id, 1)) is None
    assert graph.committer.publish(early, prepare_again=prepare) is not None
    assert graph.reopened().head().seq == 4
    assert graph.people() == {"ada": "1"}
