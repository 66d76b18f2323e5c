"""Correlated blocks, beside what random patterns say about them: exact aggregates."""

from __future__ import annotations

import pytest

from model import ModelGraph
from model.reading import Reader
from omnigraph.execution.batch import Batch
from omnigraph.execution.operators import pattern_executor, semi_join_operator
from omnigraph.execution.operators.expand_operator import ExpandOperator
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.query.typed_tree import Value
from omnigraph.rows.row_filter import Mask
from unit.execution.items import items_graph
from unit.execution.model_views import add_edges, add_nodes, model_graph, plan_of
from unit.execution.operators.model_source import (
    in_order,
    model_rows,
    pattern_of,
    reading_of,
    shown,
)

ITEMS = items_graph(5)
PARAMETERS = "$none: I64?, $minus: I64, $wide: U64, $sum: F64"
VALUES: dict[str, Value] = {"none": None, "minus": -1, "wide": 2**64 - 1, "sum": 2.0**64}
FUNCTIONS = ["sum", "avg", "min", "max", "count"]


def _names(graph: ModelGraph, clauses: str, *, is_counted: bool = False) -> list[str]:
    """The names of `$a` in the rows of a pattern, which are those of the model."""
    text = f"query q({PARAMETERS}) {{ match {{ {clauses} }} return {{ $a.name }} }}"
    root = plan_of(graph, text).root
    pattern = pattern_of(root)
    reading = reading_of(graph, root, VALUES, is_counted=is_counted)
    rows = Reader(graph, reading.params, None, 10**9).rows(pattern, {})
    expected = in_order(model_rows(iter(rows), None))
    found = shown(reading, run_pattern(pattern, reading))
    assert in_order(found) == expected
    return sorted(row["a"] for row in found)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["i32", "i64", "u32", "u64", "f32", "f64", "odd"])
@pytest.mark.parametrize("op", ["<", ">=", "!="])
def test_aggregates_of_numbers_are_those_of_the_model(function: str, name: str, op: str) -> None:
    for value in ("0", "1.5", "9007199254740993"):
        value_ = "2" if function == "count" else value
        if name == "odd" and function in ("sum", "avg"):
            continue
        if "." in value_ and name[0] in "iu" and function in ("min", "max"):
            continue
        _names(ITEMS, f"$a: Item  {function}($b.{name}) {{ $a link $b }} {op} {value_}")


@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", '"b"'),
        ("flag", "true"),
        ("day", 'date("1970-01-02")'),
        ("at", 'datetime("1970-01-01T00:00:00Z")'),
    ],
)
def test_extremes_keep_their_type(function: str, name: str, value: str) -> None:
    for op in ("=", "<", ">="):
        _names(ITEMS, f"$a: Item  {function}($b.{name}) {{ $a link $b }} {op} {value}")


SCHEMA = """
node Person { name: String @key  size: I64?  wide: U64? }
edge Knows: Person -> Person { since: I64? }
"""


@pytest.fixture
def graph() -> ModelGraph:
    graph = model_graph(SCHEMA)
    sizes = [2**63 - 1, 2**63 - 1, -(2**63), None, 1, 0]
    wides = [2**64 - 1, 1, 2**64 - 1, None, 0, 0]
    add_nodes(
        graph,
        "Person",
        [
            {"name": f"p{number}", "size": size, "wide": wide}
            for number, (size, wide) in enumerate(zip(sizes, wides, strict=True))
        ],
    )
    known = [(0, 0), (0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (3, 0), (3, 3), (4, 4)]
    add_edges(graph, "Knows", [{"@src": f"p{a}", "@dst": f"p{b}", "since": b} for a, b in known])
    return graph


def test_integer_sums_are_exact_and_rounded_once(graph: ModelGraph) -> None:
    # 2^63 - 1 - 2^63 is -1, however large the numbers are.
    assert _names(graph, "$a: Person  sum($b.size) { $a knows $b } = $minus") == ["p1"]
    assert _names(graph, "$a: Person  sum($b.size) { $a knows $b } = $sum") == ["p0"]


def test_extremes_know_all_of_u64(graph: ModelGraph) -> None:
    assert _names(graph, "$a: Person  max($b.wide) { $a knows $b } = $wide") == ["p0", "p1", "p3"]
    assert _names(graph, "$a: Person  min($b.wide) { $a knows $b } = $wide") == ["p1", "p3"]


def test_an_aggregate_of_nothing_satisfies_nothing_but_a_count(graph: ModelGraph) -> None:
    assert _names(graph, "$a: Person  sum($b.size) { $a knows $b } <= 0") == ["p1"]
    assert _names(graph, "$a: Person  count($b.size) { $a knows $b } = 0") == ["p2", "p5"]
    assert _names(graph, "$a: Person  min($b.size) { $a knows $b  $b.size = 7 } != 0") == []
    assert _names(graph, "$a: Person  count { $a knows $b  $b.size = 7 } = 0") == [
        "p0", "p1", "p2", "p3", "p4", "p5",
    ]  # fmt: skip


def test_a_null_compares_true_with_nothing(graph: ModelGraph) -> None:
    assert _names(graph, "$a: Person  count { $a knows $b } >= $none") == []


@pytest.mark.parametrize("is_counted", [False, True])
def test_neighbours_and_edges_are_counted_apart(graph: ModelGraph, is_counted: bool) -> None:
    def names(clauses: str) -> list[str]:
        return _names(graph, f"$a: Person  {clauses}", is_counted=is_counted)

    assert names("count { $a knows $b } = 2") == ["p0", "p1", "p3"]
    assert names("count { $a $e:knows $b } = 3") == ["p3"]
    assert names("count { $a <knows> $b } = 2") == ["p1", "p2"]
    assert names("count { $a $e:<knows> $b } = 5") == ["p0"]
    assert names("count($b) { $a knows $b  $b knows $c } = 4") == ["p0", "p3"]
    assert names("count { $a knows{1,2} $b } = 3") == ["p0", "p1", "p3"]
    assert names("not { $b knows $a }") == ["p5"]
    assert names("not { $a $e:knows $b }") == ["p5"]
    assert names("exists { $a knows $b  $b knows $c }") == ["p0", "p1", "p2", "p3", "p4"]
    assert names("exists { $b knows $a  $b.size = 1 }") == ["p4"]


def test_a_block_about_one_variable_runs_once_for_each_node(
    graph: ModelGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    passes = semi_join_operator.SemiJoinOperator.evaluate_mask

    def noted(step: semi_join_operator.SemiJoinOperator, outer: Batch) -> Mask:
        asked.append(outer.num_rows)
        return passes(step, outer)

    monkeypatch.setattr(semi_join_operator.SemiJoinOperator, "evaluate_mask", noted)
    monkeypatch.setattr(pattern_executor, "MORSEL_ROWS", 2)
    _names(graph, "$a: Person  $a knows $b  exists { $b knows $c  $c.size = 1 }")
    assert len(asked) > 1
    assert sum(asked) == 5
    asked.clear()
    monkeypatch.setattr(pattern_executor, "MORSEL_ROWS", 1_000)
    _names(graph, "$a: Person  $b: Person  exists { $a knows $b }")
    assert asked == [36]


@pytest.mark.parametrize(
    ("clauses", "names"),
    [
        ("exists { $a knows $b  optional { $b knows $c  $c.size = 1 }  $c is null }", "0123"),
        ("not { $a knows $b  optional { $b knows $c  $c.size = 1 }  $c is null }", "45"),
        ("exists { $a knows $b  optional { $b knows $c  $c.size = 1 }  $c is not null }", "4"),
    ],
)
def test_a_set_of_rows_keeps_those_that_lack_a_node(
    graph: ModelGraph, monkeypatch: pytest.MonkeyPatch, clauses: str, names: str
) -> None:
    monkeypatch.setattr(pattern_executor, "_REPETITIONS_MIN", 1)
    assert _names(graph, f"$a: Person  {clauses}") == [f"p{number}" for number in names]


HUBS = """
node Author { name: String @key }
node Paper { name: String @key  year: I64 }
edge Wrote: Author -> Paper
edge Cites: Paper -> Paper
"""


@pytest.mark.parametrize(
    "block",
    [
        "exists { $a wrote $q  $p cites $q }",
        "exists { $p cites $q  $a wrote $q }",
        "not { $a wrote $q  $p cites $q  $q.year > 5 }",
        "count { $a wrote $q  $p cites $q } > 1",
        "max($q.year) { $a wrote $q  $p cites $q } > 6",
        "exists { $a wrote $q  $p cites $q  $q cites $r  $a wrote $r }",
        "exists { $a wrote $q  $a wrote $q }",
    ],
)
@pytest.mark.parametrize("is_counted", [True, False])
def test_a_cycle_of_a_block_does_not_walk_around_hubs(
    monkeypatch: pytest.MonkeyPatch, block: str, is_counted: bool
) -> None:
    graph, papers = model_graph(HUBS), 40
    add_nodes(graph, "Author", [{"name": name} for name in ("hub", "x", "y")])
    add_nodes(graph, "Paper", [{"name": f"p{n}", "year": n % 10} for n in range(papers)])
    wrote = [("hub", f"p{n}") for n in range(papers)] + [("x", "p1"), ("x", "p2"), ("y", "p3")]
    cites = [(f"p{n}", f"p{n * 7 % papers}") for n in range(papers)]
    # One paper cites all, and two authors wrote few: the side of fewer is not the same for all.
    cites += [("p1", f"p{n}") for n in range(papers) if n != 7]
    for name, edges in (("Wrote", wrote), ("Cites", cites)):
        add_edges(graph, name, [{"@src": source, "@dst": target} for source, target in edges])
    made: list[int] = []
    run = ExpandOperator.run

    def run_counted(operator: ExpandOperator, batch: Batch) -> Batch:
        found = run(operator, batch)
        made.append(found.num_rows)
        return found

    monkeypatch.setattr(ExpandOperator, "run", run_counted)
    _names(graph, f"$a: Author  $a wrote $p  {block}", is_counted=is_counted)
    if is_counted and "cites" in block:
        assert sum(made) < papers**2 // 4
