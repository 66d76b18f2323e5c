"""Where reads get their nodes and edges from, when the request leaves it open."""

from __future__ import annotations

import pytest

from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.operators.page_operator import Pager
from omnigraph.execution.optimizer import access_path as access_module
from omnigraph.execution.optimizer.access_path import WarmupPolicy
from omnigraph.execution.optimizer.plan_split import find_single_scan, read_types_of
from omnigraph.execution.optimizer.read_planner import Planner
from omnigraph.execution.query_budget import Access, ReadOptions
from omnigraph.execution.sources import source_cache as sources_module
from omnigraph.execution.sources.index.index_source import IndexSource
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.execution.sources.table_source import TableSource
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.model_views import NOW, plan_of, view_of
from unit.execution.operators.network import network

GRAPH = network(seed=1)
ONE = 'query q() { match { $p: Person { name: "p1" }  $p knows $q } return { $q.name } }'
ALL = "query q() { match { $p: Person  $p knows $q } return { $q.name } }"
SCAN = "query q() { match { $p: Person  $p.age > 1 } return { $p.name } }"


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(GRAPH)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How reads were answered."""
    found: list[str] = []

    run = Planner.run

    def planned(
        self: Planner, plan: ReadPlan, reading: ExecutionContext, pager: Pager | None
    ) -> object:
        found.append(type(reading.source).__name__)
        return run(self, plan, reading, pager)

    monkeypatch.setattr(Planner, "run", planned)
    return found


def _large(monkeypatch: pytest.MonkeyPatch, *, rows_max: int = 5) -> None:
    """Take every type for a large one, and so many rows for few."""
    monkeypatch.setattr(sources_module, "SMALL_ROWS", 0)
    monkeypatch.setattr(access_module, "LOOKUP_ROWS_MAX", rows_max)


def _run(reads: QueryExecutor, view: View, *texts: str, access: Access = Access.AUTO) -> None:
    for text in texts:
        reads.run(plan_of(GRAPH, text), view, {}, now=NOW, options=ReadOptions(access))


def test_small_types_are_loaded(view: View, seen: list[str]) -> None:
    _run(QueryExecutor(SourceCache()), view, ONE, ALL, SCAN)
    assert seen == [TopologySource.__name__] * 3


def test_of_large_types_only_what_a_read_names_is_looked_up(
    view: View, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _large(monkeypatch)
    monkeypatch.setattr(access_module, "LOAD_ROW_SECONDS", 1e9)
    reads = QueryExecutor(SourceCache())
    _run(reads, view, ONE, SCAN)
    assert seen == [IndexSource.__name__, TableSource.__name__]
    _run(reads, view, ALL)
    assert seen[2:] == [TopologySource.__name__]
    # Now they are in memory.
    _run(reads, view, ONE, SCAN)
    assert seen[3:] == [TopologySource.__name__] * 2


def test_a_read_with_stages_has_one_source_that_suits_all_of_them(
    view: View, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _large(monkeypatch)
    monkeypatch.setattr(access_module, "LOAD_ROW_SECONDS", 1e9)
    reads = QueryExecutor(SourceCache())
    first = 'query q() { match { $p: Person { name: "p1" } } with { $p, $p.age as n } '
    texts = (
        f"{first} match {{ $p knows $q }} return {{ $q.name, $n as n }} }}",
        f"{first} match {{ $p knows $q  $r: Person }} return {{ $r.name, $n as n }} }}",
    )
    _run(reads, view, texts[0])
    assert seen == [IndexSource.__name__]
    _run(reads, view, texts[1])
    assert seen[1:] == [TopologySource.__name__]


@pytest.mark.parametrize("text", [ONE, SCAN])
def test_types_are_loaded_when_reads_without_them_took_as_long(
    view: View, seen: list[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    _large(monkeypatch)
    monkeypatch.setattr(access_module, "LOAD_ROW_SECONDS", 1e-12)
    _run(QueryExecutor(SourceCache()), view, text, text)
    assert seen[0] != TopologySource.__name__
    assert seen[1] == TopologySource.__name__


def test_patience_is_a_matter_of_rows_and_seconds(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    _large(monkeypatch)
    monkeypatch.setattr(access_module, "LOAD_ROW_SECONDS", 1.0)
    people, knows = TypeKey(TypeKind.NODE, "Person"), TypeKey(TypeKind.EDGE, "Knows")
    patience = WarmupPolicy(SourceCache())
    assert patience.list_cold_types(view, [people, knows]) == [people, knows]
    for seconds in (8.0, 0.9):
        patience.record_read(view, [people], seconds)
        assert not patience.should_load(view, [people])
    patience.record_read(view, [people], 0.1)
    assert patience.should_load(view, [people])
    # Nine people and eighteen edges take longer than nine people.
    assert not patience.should_load(view, [people, knows])
    patience.record_read(view, [people, knows], 18.0)
    assert patience.should_load(view, [people, knows])


@pytest.mark.parametrize(
    ("access", "name"),
    [(Access.TOPOLOGY, TopologySource.__name__), (Access.LOOKUPS, IndexSource.__name__)],
)
def test_a_wish_is_followed(view: View, seen: list[str], access: Access, name: str) -> None:
    _run(QueryExecutor(SourceCache()), view, ONE, ALL, SCAN, access=access)
    assert seen == [name] * 3


def test_the_types_of_a_plan_include_those_of_its_blocks() -> None:
    text = "query q() { match { $p: Person  not { $p lives $t  $t.size > 1 } } return { $p.name } }"
    names = {str(each) for each in read_types_of(plan_of(GRAPH, text).root)}
    assert names == {"node:Person", "node:Town", "edge:Lives"}


@pytest.mark.parametrize(
    "clauses",
    [
        "$p: Person  $q: Town",
        "$p: Person  $p knows $q",
        "$p: Person  not { $p knows $q }",
        "$p: Person  count { $p knows $q } > 1",
    ],
)
def test_only_a_pattern_of_one_variable_is_a_scan(clauses: str) -> None:
    text = f"query q() {{ match {{ {clauses} }} return {{ $p.name }} }}"
    assert find_single_scan(plan_of(GRAPH, text).root) is None


def test_a_scan_has_all_conditions_of_its_pattern() -> None:
    text = (
        "query q($x: I64) { match { $p: Person { age: 3 }  $p.height > 1 or $p.age = $x  $x > 1 }"
        " return { $p.name } order { $p.age } limit 3 }"
    )
    for is_rewritten in (False, True):
        scan = find_single_scan(plan_of(GRAPH, text, is_rewritten=is_rewritten).root)
        assert scan is not None
        assert len(scan.conditions) == 3
