from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.bulk.bulk_world import Twins, small_units, twins


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Twins]:
    """Two equal graphs, of which one is loaded in units of a few lines."""
    small_units(monkeypatch)
    made = twins(tmp_path)
    yield made
    for graph in made.graphs:
        graph.close()
