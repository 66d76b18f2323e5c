"""Where a read gets its nodes and edges from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.optimizer.graph_statistics import Statistics
from omnigraph.execution.optimizer.join_order import choose_join_order
from omnigraph.execution.optimizer.pattern_graph import build_pattern_graph
from omnigraph.execution.optimizer.plan_split import split_plan
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.query import logical_plan as plans
from omnigraph.query.tree_walk import chain_of
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind

# A read that meets so few rows is over before a large type is in memory.
LOOKUP_ROWS_MAX: Final = 10_000

# To load a type takes about so long for each row: 2.4 million edges took a second.
LOAD_ROW_SECONDS: Final = 4e-7


class WarmupPolicy:
    """When to load types: as soon as reads without them took as long as loading them would."""

    def __init__(self, sources: SourceCache) -> None:
        self._sources = sources
        # By the path of a table: a type that was worth it stays so in later versions.
        self._spent: dict[str, float] = defaultdict(float)

    def list_cold_types(self, view: View, types: Iterable[TypeKey]) -> list[TypeKey]:
        """The types that are neither small nor in memory."""
        return [each for each in types if not self._sources.is_ready(view, (each,))]

    def should_load(self, view: View, unready: Iterable[TypeKey]) -> bool:
        """Whether it is time to load types."""
        pins = [view.snapshot.pins[str(each)] for each in unready]
        spent = max((self._spent[pin.path] for pin in pins), default=0.0)
        return spent >= sum(pin.rows for pin in pins) * LOAD_ROW_SECONDS

    def record_read(self, view: View, types: Iterable[TypeKey], seconds: float) -> None:
        """Remember how long a read took that did without these types in memory."""
        for each in types:
            # Two threads may lose a sum to each other: it only takes a little longer then.
            self._spent[view.snapshot.pins[str(each)].path] += seconds


def types_of(root: plans.Operator) -> frozenset[TypeKey]:
    """The types that a plan and its blocks read."""
    return frozenset(_iter_types(root))


def find_single_scan(root: plans.Operator) -> plans.Scan | None:
    """The scan of a pattern that is nothing but one, with all conditions on its rows."""
    _, *operators = chain_of(split_plan(root).pattern)
    filters = [each.condition for each in operators if isinstance(each, plans.Filter)]
    scans = [each for each in operators if isinstance(each, plans.Scan)]
    if len(scans) != 1 or len(filters) + 1 < len(operators):
        return None
    # A filter below the scan reads no row.
    return replace(scans[0], conditions=(*scans[0].conditions, *filters))


def estimate_rows(root: plans.Operator, reading: ExecutionContext) -> float:
    """How many rows a plan meets on its way, as far as statistics tell."""
    pattern = split_plan(root).pattern
    if isinstance(pattern, plans.Rank):
        pattern = pattern.input
    graph, statistics = build_pattern_graph(pattern), Statistics(reading)
    met = 0.0
    for component in graph.find_components(graph.variables):
        choice = choose_join_order(graph, statistics, needed=(), among=component, is_hanging=False)
        met += max(choice.rows)
    return met


def _iter_types(root: plans.Operator) -> Iterator[TypeKey]:
    for operator in chain_of(root):
        match operator:
            case plans.Scan():
                yield TypeKey(TypeKind.NODE, operator.type_name)
            case plans.Expand():
                yield TypeKey(TypeKind.NODE, operator.source_type)
                yield TypeKey(TypeKind.NODE, operator.target_type)
                for step in operator.steps:
                    yield TypeKey(TypeKind.EDGE, step.edge_type)
            case plans.Exists() | plans.CompareBlock():
                yield from _iter_types(operator.block)
            case _:
                pass
