"""The end of reads over several types: the same groups, orders and values as the model's."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import QueryTimeoutError, ResourceLimitError
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.operators import project_operator as tail_columns
from omnigraph.execution.query_budget import Access, Budget, ReadOptions
from omnigraph.execution.sources.index.index_source import IndexNodes
from omnigraph.execution.sources.source_cache import SourceCache
from omnigraph.rows.view import View
from unit.execution.model_views import (
    NOW,
    PATHS,
    assert_reads_agree,
    plan_of,
    read,
    view_of,
)
from unit.execution.operators.network import network

GRAPH = network(seed=5)
PATTERNS = [
    "$p: Person  $p $e:(knows | likes) $q",
    "$p: Person  $p $e:* $q  $q: Person",
    "$p: Person  $p $e:knows $q",
    "$p: Person  $q: Person  $p $e:(knows | likes) $q  $p lives $t",
    "$p: Person  $p $e:likes $q  $p knows $_",
    "$p: Person  $p $e:(likes | knows) $q",
]
VALUES = [
    "$p", "$q", "$p.@id", "$q.name", "$p.city", "$q.city", "$p.age", "$q.height", "$p.born",
    "$e.@id", "$e.@type", "$e.@src", "$e.@dst", "$e.weight", "$e.note", "$p.age > 1",
]  # fmt: skip
SORTABLE = [value for value in VALUES if value not in ("$p", "$q", "$p.age > 1")]


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(GRAPH, parts=3)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_rows_are_ordered_cut_off_and_projected_as_by_the_model(view: View, seed: int) -> None:
    random = Random(seed)
    shown = random.sample(VALUES, 4)
    keys = [
        f"{key} {random.choice(['asc', 'desc'])}"
        for key in random.sample(SORTABLE, random.randrange(1, 4))
    ]
    text = (
        f"query q() {{ match {{ {random.choice(PATTERNS)} }}"
        f" return {{ {_aliased(shown)} }} order {{ {', '.join(keys)} }}"
        f" {random.choice(['', 'limit 1', 'limit 7', 'limit 1000'])} }}"
    )
    assert_reads_agree(GRAPH, view, text)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_groups_are_those_of_the_model(view: View, seed: int) -> None:
    random = Random(seed)
    keys = random.sample(VALUES[:-1], random.randrange(4))
    calls = [
        *random.sample(["sum($p.age)", "avg($e.weight)", "sum($e.weight)", "avg($q.age)"], 2),
        *random.sample(["min($q.city)", "max($e.note)", "max($p.height)", "min($p.born)"], 2),
        *random.sample(["count($p)", "count($e.note)", "count($q.age)", "count($e.@id)"], 2),
    ]
    order = random.choice(["", "order { v0 desc }", "order { v0 desc } limit 3"])
    text = (
        f"query q() {{ match {{ {random.choice(PATTERNS)} }}"
        f" return {{ {_aliased([*calls, *keys])} }} {order} }}"
    )
    assert_reads_agree(GRAPH, view, text)


def _aliased(values: list[str]) -> str:
    return ", ".join(f"{value} as v{place}" for place, value in enumerate(values))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_results_are_made_morsel_by_morsel(
    view: View, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_columns, "MORSEL_ROWS", 3)
    text = (
        f"query q($x: I64) {{ match {{ {pattern} }}"
        " return { $p, $q.city, $e.@type, $e.weight, $x } order { $p.age } }"
    )
    rows = assert_reads_agree(GRAPH, view, text, {"x": 7})
    assert len(rows) > 3


@pytest.mark.parametrize("pattern", [*PATTERNS, "$p: Town  $p $e:* $q  $q: Town"])
def test_empty_results_have_typed_columns(view: View, pattern: str) -> None:
    text = (
        f'query q() {{ match {{ {pattern} $p.name = "nobody" }}'
        " return { $p, $q.name, $e.@id, $e.@type } order { $q.name desc } limit 5 }"
    )
    groups = (
        f'query q() {{ match {{ {pattern} $p.name = "nobody" }}'
        " return { $p, $e.@id, count($q) as n, max($q.name) as m } }"
    )
    for access, sources in PATHS:
        for each in (text, groups):
            plan = plan_of(GRAPH, each)
            options = ReadOptions(access)
            result = QueryExecutor(sources()).run(plan, view, {}, now=NOW, options=options)
            found = result.to_arrow()
            assert found.num_rows == 0
            assert pa.types.is_struct(found.schema.field("p").type)
            assert set(found.schema.types[1:]) <= {pa.utf8(), pa.int64()}


def test_an_aggregate_of_nothing_is_one_row_with_typed_nulls(view: View) -> None:
    text = (
        'query q() { match { $p: Person { name: "nobody" }  $p $e:knows $q }'
        " return { count($q) as n, sum($e.weight) as s, min($q.born) as b, max($q.city) as c } }"
    )
    rows = assert_reads_agree(GRAPH, view, text)
    assert rows == [{"n": 0, "s": None, "b": None, "c": None}]
    kinds = read(GRAPH, view, text).to_arrow().schema.types
    assert kinds == [pa.int64(), pa.float64(), pa.date32(), pa.utf8()]


# ---- what is fetched, and what it may cost ----


def test_properties_are_fetched_for_the_rows_that_are_left(view: View) -> None:
    asked = _fetched(
        view,
        "query q() { match { $p: Person  $p knows $q }"
        " return { $p.name, $q.city } order { $p.age desc } limit 2 }",
    )
    assert asked["Person.city"] == [2]
    assert set(asked["Person.name"]) == {2}


def test_grouping_by_a_node_fetches_nothing_of_it_before_the_cut(view: View) -> None:
    asked = _fetched(
        view,
        "query q() { match { $p: Person  $p knows $q }"
        " return { $p, count($q) as n } order { n desc } limit 1 }",
    )
    assert set(asked["Person.city"]) == {1}


def _fetched(view: View, text: str) -> dict[str, list[int]]:
    """How many values of which property a read fetches, each time."""
    asked: dict[str, list[int]] = {}
    original = IndexNodes.fetch_values

    def values(self: IndexNodes, name: str, at: object) -> object:
        asked.setdefault(f"Person.{name}", []).append(len(at))  # type: ignore[arg-type]
        return original(self, name, at)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexNodes, "fetch_values", values)
        options = ReadOptions(Access.LOOKUPS)
        QueryExecutor(SourceCache()).run(plan_of(GRAPH, text), view, {}, now=NOW, options=options)
    return asked


CROSS = "query q() { match { $p: Person  $q: Person  $r: Person } return { $p.name, $r.name } }"


@pytest.mark.parametrize(("access", "sources"), PATHS)
def test_a_result_that_needs_too_much_memory_is_refused(
    view: View, access: Access, sources: type[SourceCache]
) -> None:
    options = ReadOptions(access, Budget(memory_bytes=2_000))
    with pytest.raises(ResourceLimitError) as refused:
        QueryExecutor(sources()).run(plan_of(GRAPH, CROSS), view, {}, now=NOW, options=options)
    assert refused.value.resource == "query_memory_bytes"
    assert refused.value.limit == 2_000
    assert refused.value.actual > 2_000


@pytest.mark.parametrize(("access", "sources"), PATHS)
def test_a_query_without_time_is_stopped(
    view: View, access: Access, sources: type[SourceCache]
) -> None:
    options = ReadOptions(access, Budget(deadline=0.0))
    for text in (CROSS, "query q() { match { $p: Person } return { $p.name } }"):
        with pytest.raises(QueryTimeoutError):
            QueryExecutor(sources()).run(plan_of(GRAPH, text), view, {}, now=NOW, options=options)
