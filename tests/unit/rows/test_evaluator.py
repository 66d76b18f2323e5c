"""Expressions over rows in memory: the same truth as the model, value by value."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.expressions import At
from omnigraph.errors import ExecutionError
from omnigraph.execution.type_scan import TypeRows, evaluate_conditions
from omnigraph.query import typed_reads, typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import NOW_NAME, Compare, Constant, ParameterValue, SystemName
from omnigraph.rows import evaluator
from omnigraph.rows.columns import build_table_shape
from omnigraph.rows.comparison import collect_matchable, compare_values
from omnigraph.rows.evaluator import RequestParams, evaluate, evaluate_constant, is_constant
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.property_types import Scalar, make_scalar_type
from unit.execution.items import PARAMETERS, Conditions, items_graph
from unit.execution.model_views import NOW, add_nodes, model_graph, physical_rows

GRAPH = items_graph(seed=1)
ITEM = build_table_shape(GRAPH.accepted, TypeKey(TypeKind.NODE, "Item"))
ITEMS = list(GRAPH.nodes["Item"].values())
ROWS = physical_rows(ITEMS, ITEM)
I64 = make_scalar_type(Scalar.I64)
SOME = Conditions(Random(0)).params()


@given(st.integers(0, 2**32))
def test_a_condition_is_true_false_and_null_where_the_model_says_so(seed: int) -> None:
    conditions = Conditions(Random(seed), prefix="")
    text = conditions.condition()
    condition, params = _where(text, conditions.params())
    if is_constant(condition):
        assert evaluate_constant(condition, params) == At({}, params)(condition), text
        return
    found = evaluate(condition, TypeRows(ROWS, ITEM), params)
    expected = [At({typed_tree.ROW: item}, params)(condition) for item in ITEMS]
    shown = [found.as_py()] * len(ROWS) if isinstance(found, pa.Scalar) else found.to_pylist()
    assert shown == expected, text
    mask = evaluate_conditions(ROWS, ITEM, [condition], params)
    assert mask.to_pylist() == [value is True for value in expected]


numbers: dict[str, st.SearchStrategy[Any]] = {
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53 + 1, -(2**63)]),
    "u32": st.integers(0, 2**32 - 1),
    "u64": st.integers(0, 2**64 - 1) | st.sampled_from([2**63, 2**63 + 1, 2**64 - 1]),
    "f32": st.floats(width=32),
    "f64": st.floats() | st.sampled_from([2.0**53, 2.0**63, 2.0**64, -(2.0**63), math.nan]),
}


@given(st.data(), st.sampled_from(sorted(numbers)), st.sampled_from(sorted(numbers)))
def test_numbers_of_any_two_types_are_compared_by_exact_value(
    data: st.DataObject, left: str, right: str
) -> None:
    pairs = st.tuples(numbers[left] | st.none(), numbers[right] | st.none())
    some: list[tuple[Any, Any]] = data.draw(st.lists(pairs, min_size=1, max_size=5))
    same = [(value, value) for pair in some for value in pair if isinstance(value, int)]
    kinds = {"i32": pa.int32(), "i64": pa.int64(), "u32": pa.uint32(), "u64": pa.uint64(),
             "f32": pa.float32(), "f64": pa.float64()}  # fmt: skip
    fitting = [pair for pair in same if _fits(pair, kinds[left], kinds[right])]
    lefts, rights = zip(*some, *fitting, strict=True)
    arrays = pa.array(lefts, kinds[left]), pa.array(rights, kinds[right])
    for op in CompareOp:
        expected = [
            None if None in pair else _compared(op, *pair)
            for pair in zip(*(array.to_pylist() for array in arrays), strict=True)
        ]
        assert compare_values(op, *arrays).to_pylist() == expected, (op, lefts, rights)


@given(st.data(), st.sampled_from(sorted(numbers)))
@example(None, "u64")
def test_a_number_is_compared_with_a_constant_by_exact_value(
    data: st.DataObject | None, name: str
) -> None:
    anything = st.integers(-(2**63), 2**64 - 1) | st.floats()
    value = 2**63 + 1 if data is None else data.draw(numbers[name] | st.none())
    other = float(2**63) if data is None else data.draw(anything)
    graph = model_graph("node Item { name: String @key  i32: I32?  i64: I64?  u32: U32?  u64: U64?"
                        "  f32: F32?  f64: F64? }")  # fmt: skip
    add_nodes(graph, "Item", [{"name": "x", name: value}])
    shape = build_table_shape(graph.accepted, TypeKey(TypeKind.NODE, "Item"))
    items = list(graph.nodes["Item"].values())
    rows = TypeRows(physical_rows(items, shape), shape)
    column = typed_tree.PropertyValue("v", name, graph.catalog.nodes["Item"].properties[name].type)
    for op in CompareOp:
        for expr in (
            Compare(op, column, Constant(other, typed_tree.F64)),
            Compare(op, Constant(other, typed_tree.F64), column),
        ):
            found = evaluate(expr, rows, {})
            expected = At({"v": items[0]}, {})(expr)
            found_value = found.as_py() if isinstance(found, pa.Scalar) else found[0].as_py()
            assert found_value is expected, (op, value, other)


def test_a_value_that_no_row_changes_is_a_scalar_of_its_type() -> None:
    rows = TypeRows(ROWS, ITEM)
    now = evaluate(typed_tree.NowValue(), rows, {NOW_NAME: NOW})
    assert now.cast(pa.int64()).as_py() == NOW
    assert evaluate(ParameterValue("n", I64.as_nullable()), rows, {"n": None}).type == pa.int64()
    items = typed_tree.ListOf((Constant(1, I64), ParameterValue("n", I64)), _list_type())
    assert evaluate(items, rows, {"n": 7}).as_py() == [1, 7]


def test_a_list_of_integers_that_no_type_holds_together_is_refused() -> None:
    given = make_scalar_type(Scalar.U64), make_scalar_type(Scalar.I64)
    items = tuple(ParameterValue(name, type_) for name, type_ in zip("ui", given, strict=True))
    listed = typed_tree.ListOf(items, _list_type())
    with pytest.raises(ExecutionError, match="does not fit"):
        evaluate(listed, TypeRows(ROWS, ITEM), {"u": 2**64 - 1, "i": -1})


def test_the_type_of_an_entity_is_a_column_like_any_other() -> None:
    kind = typed_tree.SystemValue(typed_tree.ROW, SystemName.TYPE)
    found = evaluate(kind, TypeRows(ROWS, ITEM), {})
    assert set(found.to_pylist()) == {"Item"}
    assert len(found) == len(ROWS)


def test_half_a_surrogate_pair_is_refused_with_its_place() -> None:
    condition = _where("text = $s", {**SOME, "s": "ab\ud800"})
    with pytest.raises(ExecutionError, match="surrogate pair at character 2"):
        evaluate_conditions(ROWS, ITEM, [condition[0]], condition[1])


def test_rows_in_several_chunks_are_tested_like_rows_in_one() -> None:
    chunked = pa.concat_tables([ROWS.slice(0, 7), ROWS.slice(7, 1), ROWS.slice(8)])
    for seed in range(30):
        conditions = Conditions(Random(seed), prefix="")
        condition, params = _where(conditions.condition(), conditions.params())
        whole = evaluate_conditions(ROWS, ITEM, [condition], params)
        assert evaluate_conditions(chunked, ITEM, [condition], params).equals(whole)


def _where(
    condition: str, params: dict[str, Any]
) -> tuple[typed_tree.Expr, dict[str, typed_tree.Value]]:
    """A condition about the row under test, before any rewrite."""
    text = f"query q({PARAMETERS}) {{ delete Item where {condition} }}"
    checked = compile_query(text, GRAPH.catalog).checked
    assert isinstance(checked, typed_tree.Mutation)
    statement = checked.statements[0]
    assert isinstance(statement, typed_tree.DeleteNodes)
    return statement.conditions[0], {**bind_parameters(checked.parameters, params), NOW_NAME: NOW}


def _list_type() -> Any:
    checked = compile_query("query q() { match { $i: Item } return { [1] } }", GRAPH.catalog)
    assert isinstance(checked.checked, typed_reads.Read)
    return checked.checked.columns[0].type


def _fits(pair: tuple[Any, Any], left: pa.DataType, right: pa.DataType) -> bool:
    try:
        pa.array(pair[:1], left), pa.array(pair[1:], right)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _compared(op: CompareOp, left: Any, right: Any) -> bool:
    return bool(
        At({}, {})(Compare(op, Constant(left, typed_tree.F64), Constant(right, typed_tree.F64)))
    )


@pytest.mark.parametrize("operand", ['text contains "z{}"', 'text starts_with "z{}"', "i64 = {}"])
@pytest.mark.parametrize("word", [" or ", " and "])
def test_a_long_condition_is_stopped_between_its_operands(operand: str, word: str) -> None:
    condition, params = _where(word.join(map(operand.format, range(1_000))), SOME)
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 10:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        evaluate(condition, TypeRows(ROWS, ITEM), RequestParams(params, poll))


def test_a_long_condition_asks_for_a_property_once(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, params = _where(" or ".join(f'text = "z{number}"' for number in range(100)), SOME)
    asked: list[str] = []
    fetch = TypeRows.get_property

    def get_property(rows: TypeRows, variable: str, name: str) -> pa.ChunkedArray:
        asked.append(name)
        return fetch(rows, variable, name)

    monkeypatch.setattr(TypeRows, "get_property", get_property)
    evaluate(condition, TypeRows(ROWS, ITEM), params)
    assert asked == ["text"]


def test_a_long_list_is_converted_once_for_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers_ = tuple(range(1_000))
    column = typed_tree.PropertyValue(typed_tree.ROW, "i64", I64)
    condition = typed_tree.Member(column, ParameterValue("l", _list_type()))
    converted: list[int] = []

    def collect(items: tuple[Any, ...], *rest: Any) -> pa.Array:
        converted.append(len(items))
        return collect_matchable(items, *rest)

    monkeypatch.setattr(evaluator, "collect_matchable", collect)
    params = RequestParams({"l": numbers_}, lambda: None)
    for _ in range(3):
        evaluate(condition, TypeRows(ROWS, ITEM), params)
    assert converted == [1_000]
