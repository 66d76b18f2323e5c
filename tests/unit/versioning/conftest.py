"""Fresh graphs: on the stand-in, in real memory, and on the disk."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from omnigraph.storage import open_objects
from omnigraph.storage.tables import Tables
from unit.versioning.small_graph import SmallGraph, create_graph, local_graph, memory_graph


@pytest.fixture(params=["stand-in", "memory", "local"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> SmallGraph:
    """A fresh graph on each kind of storage."""
    match request.param:
        case "stand-in":
            return memory_graph()
        case "memory":
            uri = f"memory://{uuid.uuid4().hex}"
            return create_graph(open_objects(uri), Tables(uri))
        case _:
            return local_graph(tmp_path)


@pytest.fixture
def fast_graph() -> SmallGraph:
    """A fresh graph on the stand-in, for what no table takes part in."""
    return memory_graph()
