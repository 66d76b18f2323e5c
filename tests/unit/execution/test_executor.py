"""Reads of one type: the same rows as the model, in the same order."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.rows.view import View
from unit.execution.items import PARAMETERS, TEXTS, Conditions, items_graph
from unit.execution.model_views import assert_reads_agree, read, view_of

GRAPH = items_graph(seed=3)
SORTABLE = ["text", "kind", "flag", "i32", "i64", "u32", "u64", "f32", "f64", "odd", "day", "at"]
SHOWN = [*SORTABLE, "name", "words", "numbers", "floats", "times", "vec", "@id"]
SUMMABLE = ["i32", "i64", "u32", "u64", "f32", "f64"]


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(GRAPH, parts=4)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_rows_are_filtered_sorted_cut_off_and_projected_as_by_the_model(
    view: View, seed: int
) -> None:
    random = Random(seed)
    conditions = Conditions(random)
    shown = [f"$v.{name} as c{name.strip('@')}" for name in random.sample(SHOWN, 3)]
    keys = [
        f"$v.{name} {random.choice(['asc', 'desc'])}"
        for name in random.sample(SORTABLE, random.randrange(1, 3))
    ]
    limit = random.choice(["", *(f"limit {count}" for count in (0, 1, 3, 20, 1000))])
    text = (
        f"query q({PARAMETERS}) {{ match {{ $v: Item {conditions.condition(1)} }}"
        f" return {{ {', '.join(shown)}, {conditions.condition(0)} as test, $v }}"
        f" order {{ {', '.join(keys)} }} {limit} }}"
    )
    assert_reads_agree(GRAPH, view, text, conditions.params())


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_groups_and_their_aggregates_are_those_of_the_model(view: View, seed: int) -> None:
    random = Random(seed)
    conditions = Conditions(random)
    keys = [
        f"$v.{name} as k{name.strip('@')}" for name in random.sample(SHOWN, random.randrange(3))
    ]
    keys += random.choice([[], [], ["$v"], ["$i"]])
    values = [f"{function}($v.{name}) as {function}_{name}" for function, name in _calls(random)]
    where = random.choice(["", conditions.condition(1)])
    text = (
        f"query q({PARAMETERS}) {{ match {{ $v: Item {where} }}"
        f" return {{ {', '.join([*keys, *values, 'count($v) as n'])} }}"
        f" {random.choice(['', 'order { n desc }'])} }}"
    )
    assert_reads_agree(GRAPH, view, text, conditions.params())


def _calls(random: Random) -> list[tuple[str, str]]:
    sums = [(random.choice(["sum", "avg"]), name) for name in random.sample(SUMMABLE, 2)]
    extremes = [(random.choice(["min", "max"]), name) for name in random.sample(SORTABLE, 2)]
    return [*sums, *extremes, ("count", random.choice(SHOWN[:-1]))]


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_graphs_of_any_content_are_read_as_by_the_model(seed: int) -> None:
    random = Random(seed)
    graph = items_graph(seed, count=random.choice([0, 1, 2, 9]))
    view = view_of(graph, parts=random.choice([1, 3]))
    for _ in range(4):
        conditions = Conditions(random)
        text = (
            f"query q({PARAMETERS}) {{ match {{ $v: Item {conditions.condition()} }}"
            " return { $v, $v.vec, $v.day } order { $v.odd desc, $v.day } limit 5 }"
        )
        assert_reads_agree(graph, view, text, conditions.params())
        groups = "query q() { match { $v: Item } return { $v.vec, count($v) as n, max($v.odd) } }"
        assert_reads_agree(graph, view, groups)


@pytest.mark.parametrize(
    "condition",
    [
        'search($v.text, "run")',
        'fuzzy($v.text, "sae", 2)',
        'match_text($v.text, "SEAS")',
        'search($v.text, "cat") $v.i32 > 0',
        'search($v.text, "")',
        "search($v.text, $nos)",
    ],
)
def test_text_predicates_filter_rows(view: View, condition: str) -> None:
    text = f"query q($nos: String?) {{ match {{ $v: Item {condition} }} return {{ $v.name }} }}"
    assert_reads_agree(GRAPH, view, text)


def test_a_read_by_key_finds_its_entity(view: View) -> None:
    text = "query q($s: String) { match { $v: Item { name: $s } } return { $v.name } }"
    for name in [*TEXTS, "item30"]:
        assert assert_reads_agree(GRAPH, view, text, {"s": name}) == [{"v.name": name}]
    assert assert_reads_agree(GRAPH, view, text, {"s": "nobody"}) == []


def test_a_limit_without_order_gives_as_many_rows_as_there_are(view: View) -> None:
    for count in (0, 1, 17, 1000):
        text = f"query q() {{ match {{ $v: Item }} return {{ $v.name }} limit {count} }}"
        names = [row["v.name"] for row in read(GRAPH, view, text).to_json_rows()]
        assert len(names) == min(count, len(GRAPH.nodes["Item"]))
        assert set(names) <= set(GRAPH.nodes["Item"])


def test_aggregates_over_nothing_are_one_row_without_keys_and_none_with_keys(view: View) -> None:
    match = 'match { $v: Item { name: "nobody" } }'
    without = f"query q() {{ {match} return {{ count($v) as n, sum($v.i64) as s, max($v.day) }} }}"
    assert assert_reads_agree(GRAPH, view, without) == [{"n": 0, "s": None, "v.day": None}]
    assert read(GRAPH, view, without).to_arrow().schema.field("v.day").type == pa.date32()
    with_keys = f"query q() {{ {match} return {{ $v.kind, count($v) as n }} }}"
    assert assert_reads_agree(GRAPH, view, with_keys) == []


def test_a_bare_node_is_a_struct_without_blobs_and_vectors(view: View) -> None:
    text = 'query q() { match { $v: Item { name: "a" } } return { $v } }'
    kind = read(GRAPH, view, text).to_arrow().schema.field("v").type
    properties = GRAPH.catalog.nodes["Item"].properties
    assert kind.names == ["@id", *(name for name in properties if name not in ("vec", "file"))]
    assert kind.field("at").type == pa.timestamp("ms", "UTC")
    assert kind.field("times").type.value_type == pa.timestamp("ms", "UTC")


def test_projected_parameters_have_their_declared_types(view: View) -> None:
    text = (
        "query q($a: I32?, $b: F32, $c: Vector(2), $d: [U32], $e: Date)"
        ' { match { $v: Item { name: "a" } } return { $a, $b, $c, $d, $e } }'
    )
    params = {"b": 0.1, "c": [0.5, 0.1], "d": [1, 2**32 - 1], "e": "2024-02-29"}
    rows = assert_reads_agree(GRAPH, view, text, params)
    assert rows == [{"a": None, "b": 0.1, "c": [0.5, 0.1], "d": [1, 2**32 - 1], "e": "2024-02-29"}]
    kinds = read(GRAPH, view, text, params).to_arrow().schema.types
    assert kinds == [pa.int32(), pa.float32(), pa.list_(pa.float32(), 2), pa.list_(pa.uint32()),
                     pa.date32()]  # fmt: skip
    none = text.replace('"a" }', '"nobody" }')
    assert read(GRAPH, view, none, params).to_arrow().schema.types == kinds
