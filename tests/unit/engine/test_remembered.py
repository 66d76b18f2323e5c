"""Large arrays that are kept for the next request."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.engine.graph_caches import ArrayCache


def test_an_array_is_made_once_while_there_is_room() -> None:
    made: list[str] = []

    def make(name: str, length: int) -> pa.Array:
        made.append(name)
        return pa.array([0] * length, pa.int64())

    kept = ArrayCache(bytes_max=80)
    for name in "ababcacb":
        kept.get(name, lambda name=name: make(name, 5))  # type: ignore[misc]
    assert made == ["a", "b", "c", "a", "b"]
    assert len(kept.get("huge", lambda: make("huge", 11))) == 11
    assert len(kept.get("huge", lambda: make("huge", 11))) == 11
    assert made[5:] == ["huge", "huge"]
