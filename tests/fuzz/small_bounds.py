"""Bounds of the engine made small, so that small graphs meet what only large ones meet otherwise.

Many rows are taken in morsels, a dense way is left for a sparse one, a cache is full: each of these
is decided by a number in some module. A random life has the usual numbers, or all of these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

SMALL: Final[Mapping[str, Mapping[str, int]]] = {
    "omnigraph.rows.row_filter": {"_NARROWED_FACTOR": 1},
    "omnigraph.rows.group_aggregates": {"RADIX_ROWS": 1, "RADIX_MAX": 2},
    "omnigraph.execution.operators.expand_operator": {"_STARTS_MAX": 2, "_SIDES_MIN": 1},
    "omnigraph.execution.operators.scan_operator": {
        "_NARROWED_ROWS_MAX": 2,
        "_NARROWED_TIMES_MAX": 1,
    },
    "omnigraph.execution.operators.filter_operator": {"_WHOLE_TYPE_FACTOR": 0},
    "omnigraph.execution.operators.traversal_hops": {"_SPARSE_FACTOR": 0},
    "omnigraph.execution.operators.pattern_executor": {
        "MORSEL_ROWS": 3,
        "_FIRST_MORSEL_ROWS": 1,
        "_REPETITIONS_MIN": 1,
    },
    "omnigraph.execution.operators.checked_ints": {"NARROW_MAX": 2},
    "omnigraph.execution.operators.row_keys": {"_RANGE_MAX": 2},
    "omnigraph.execution.operators.neighbour_sums": {"EDGES_AT_ONCE": 2},
    "omnigraph.execution.operators.project_operator": {"UNCOUNTED_ROWS_MAX": 1},
    "omnigraph.execution.optimizer.read_planner": {"SKEW": 0, "_STARTS_FEW": 0},
    "omnigraph.execution.operators.factorize_operator": {
        "SINGLE_FACTOR": 0,
        "WHOLE_TYPE_FACTOR": 0,
    },
    "omnigraph.execution.search.field_index": {"SEGMENTS_MAX": 1},
    "omnigraph.execution.search.ranking": {"FEW_VECTORS": 1},
    "omnigraph.execution.search.vector_segment": {"_USES_MIN": 0, "_BLOCK_ROWS": 2},
}


@contextmanager
def small_bounds() -> Iterator[None]:
    """The small numbers, for the time of the context."""
    before: list[tuple[ModuleType, str, int]] = []
    try:
        for place, bounds in SMALL.items():
            for name, small in bounds.items():
                for module in _users(import_module(place), name):
                    before.append((module, name, getattr(module, name)))
                    setattr(module, name, small)
        yield
    finally:
        for module, name, usual in reversed(before):
            setattr(module, name, usual)


def _users(owner: ModuleType, name: str) -> list[ModuleType]:
    """The module that has a bound, and those that have imported it by its name."""
    value = getattr(owner, name)
    importers = [
        module
        for place, module in sys.modules.items()
        if place.startswith("omnigraph.")
        and module is not owner
        and not name.startswith("_")
        and getattr(module, name, None) is value
        and name not in SMALL.get(place, {})
    ]
    return [owner, *importers]
