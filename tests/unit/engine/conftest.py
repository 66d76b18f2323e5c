"""A healthy graph, and copies of it to damage, for every test of checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from places import fresh_uri
from unit.engine.damaged_graph import Damaged, build


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built once in a process, because it takes a second; tests copy it."""
    uri = fresh_uri(tmp_path_factory.mktemp("healthy") / "graph")
    build(uri)
    return uri


@pytest.fixture
def damaged(healthy: str, tmp_path: Path) -> Damaged:
    return Damaged(healthy, tmp_path / "graph")
