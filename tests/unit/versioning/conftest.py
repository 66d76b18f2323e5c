"""Fresh graphs: on the stand-in, and wherever else a graph may live."""

from __future__ import annotations

from pathlib import Path

import pytest

import places
from omnigraph.storage import open_objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import Settings
from unit.versioning.small_graph import SmallGraph, create_graph, memory_graph


@pytest.fixture(params=["stand-in", *places.kinds()])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> SmallGraph:
    """A fresh graph on each kind of storage."""
    if request.param == "stand-in":
        return memory_graph()
    uri = places.uri_of(request.param, tmp_path)
    objects, tables = open_objects(uri, is_durable=False), Tables(uri, is_durable=False)
    return create_graph(objects, tables, Settings())


@pytest.fixture
def fast_graph() -> SmallGraph:
    """A fresh graph on the stand-in, for what no table takes part in."""
    return memory_graph()
