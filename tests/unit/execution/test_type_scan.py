"""Rows read from tables: what a table filters by itself never changes an answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expressions import At, Entity
from omnigraph.errors import ExecutionError
from omnigraph.execution.type_scan import (
    evaluate_conditions,
    find_type_candidate_ids,
    scan_matching,
)
from omnigraph.query import typed_reads, typed_tree
from omnigraph.query.ast import TextFunction
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import NOW_NAME
from omnigraph.rows.pushdown import DEPTH_MAX, ITEMS_MAX, TESTS_MAX, PushedFilter, push_down
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from unit.execution.items import PARAMETERS, Conditions, items_graph
from unit.execution.model_views import NOW, assert_reads_agree, indexed, view_of

GRAPH = items_graph(seed=2)
ITEM, PLACE = TypeKey(TypeKind.NODE, "Item"), TypeKey(TypeKind.NODE, "Place")
LINK = TypeKey(TypeKind.EDGE, "Link")
PARAMS = Conditions(Random(0)).params()


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(GRAPH)


@pytest.fixture(scope="module")
def indexed_view() -> View:
    names = ["name", "text", "flag", "i32", "i64", "u64", "f32", "f64", "odd", "day", "at"]
    return indexed(view_of(GRAPH), ITEM, names)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_a_scan_finds_the_rows_that_the_model_finds(
    view: View, indexed_view: View, seed: int
) -> None:
    conditions = Conditions(Random(seed), prefix="")
    text = conditions.condition()
    condition, params = _where("Item", text, conditions.params())
    expected = _selected(list(GRAPH.nodes["Item"].values()), condition, params)
    for each in (view, indexed_view):
        found = scan_matching(each, ITEM, [condition], params)
        assert sorted(found["__id"].to_pylist()) == expected, text
        ids = find_type_candidate_ids(each, ITEM, [condition], params)
        assert ids is None or set(expected) <= set(ids.to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        '@src = "a"',
        '@src = "a" and @dst = "ab"',
        '@dst in ["a", "b"] and weight > 0',
        "weight <= 0.1 or note is null",
        'from = "a" or to = "a"',
        'not (note contains "a") and @src != @dst',
    ],
)
def test_a_scan_of_edges_reads_their_ends(view: View, text: str) -> None:
    condition, params = _where("Link", text, PARAMS)
    expected = _selected(list(GRAPH.edges["Link"].values()), condition, params)
    found = scan_matching(view, LINK, [condition], params, columns=[])
    assert found.column_names == ["__id", "__src", "__dst"]
    assert sorted(found["__id"].to_pylist()) == expected


def test_a_scan_gives_the_asked_columns_with_the_types_of_the_shape(view: View) -> None:
    shape = view.get_shape(ITEM)
    everything = scan_matching(view, ITEM, [], {})
    assert everything.schema == shape.schema
    assert everything.num_rows == len(GRAPH.nodes["Item"])
    at = shape.columns["at"]
    some = scan_matching(view, ITEM, [], {}, columns=[at], with_row_ids=True)
    assert some.column_names == ["__id", at, "_rowid"]
    condition, params = _where("Item", "i32 > 0 or words is null", PARAMS)
    few = scan_matching(view, ITEM, [condition], params, columns=[at], with_row_ids=True)
    assert few.schema == some.schema
    assert 0 < few.num_rows < some.num_rows
    taken = view.open_table(ITEM).take(few["_rowid"].combine_chunks(), columns=["__id", at])
    assert taken.to_pydict() == few.drop_columns(["_rowid"]).to_pydict()


def test_a_scan_without_any_match_is_an_empty_table_of_the_same_columns(view: View) -> None:
    for text in ("false", "@id in []", 'name = "nobody"', "i32 = 0.5"):
        condition, params = _where("Item", text, PARAMS)
        found = scan_matching(view, ITEM, [condition], params)
        assert found.num_rows == 0
        assert found.schema == view.get_shape(ITEM).schema


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('@id = "a"', ["a"]),
        ('"a" = @id', ["a"]),
        ('@id in ["a", "zz", "a"]', ["a", "zz"]),
        ('name = "a"', ["a"]),
        ('name = "a" and i32 > 0', ["a"]),
        ('name in $ss and name = "a"', []),
        ('name = "a" or @id in ["b"]', ["a", "b"]),
        ('(name = "a" and i32 > 0) or (name = "b" and flag)', ["a", "b"]),
        ("name = $nos", []),
        ('$nos = "a"', []),
        ("false", []),
        ("$b and name = $s", ["x"]),
        ('name != "a"', None),
        ('not (name = "a")', None),
        ('name = "a" or i32 > 0', None),
        ("i32 > 0", None),
        ("true", None),
        ("name = text", None),
    ],
)
def test_conditions_pin_the_ids_they_name(
    view: View, text: str, expected: list[str] | None
) -> None:
    params = {**PARAMS, "b": True, "s": "x", "ss": ["q"]}
    condition, bound = _where("Item", text, params)
    found = find_type_candidate_ids(view, ITEM, [condition], bound)
    assert (None if found is None else found.to_pylist()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('country = "no" and number = 7', ['["no","7"]']),
        ('country = "no" and number = 7.0', ['["no","7"]']),
        ('country = "no" and number in [$i, 0.5, 0]', ['["no","-1"]', '["no","0"]']),
        ('number = -1 and country in ["no", "se"]'.replace("-1", "$i"),
         ['["no","-1"]', '["se","-1"]']),
        ('country = "no" and number = 2.5', []),
        ('country = "no" and number = 7 and @id = "x"', []),
        ('country = "no"', None),
    ],
)  # fmt: skip
def test_a_composite_key_pins_an_id_when_every_member_is_given(
    view: View, text: str, expected: list[str] | None
) -> None:
    condition, params = _where("Place", text, {**PARAMS, "i": -1})
    found = find_type_candidate_ids(view, PLACE, [condition], params)
    assert (None if found is None else found.to_pylist()) == expected
    rows = scan_matching(view, PLACE, [condition], params)["__id"].to_pylist()
    assert sorted(rows) == _selected(list(GRAPH.nodes["Place"].values()), condition, params)


def test_many_named_ids_are_looked_up_without_a_filter_text(view: View) -> None:
    ids = (*GRAPH.nodes["Item"], *(f"missing{number}" for number in range(20_000)))
    member = typed_tree.Member(
        typed_tree.SystemValue(typed_tree.ROW, typed_tree.SystemName.ID),
        typed_tree.Constant(ids, _list_type()),
    )
    assert scan_matching(view, ITEM, [member], {}).num_rows == len(GRAPH.nodes["Item"])


def test_filters_are_pushed_down_where_sql_means_the_same(view: View) -> None:
    columns = view.get_shape(ITEM).columns
    text = 'text = "it\'s" and i64 < 2.5 and (flag or day is null) and not (kind in ["big"])'
    pushed = _pushed(view, text)
    assert pushed.rest == ()
    assert pushed.filter == (
        f"`{columns['text']}` = 'it''s' AND `{columns['i64']}` < 3"
        f" AND (`{columns['flag']}` OR `{columns['day']}` IS NULL)"
        f" AND NOT (`{columns['kind']}` IN ('big'))"
    )


@pytest.mark.parametrize(
    "text",
    [
        "i64 < u64",
        "f64 = 0.0",
        'words contains "a"',
        "not (text = $nos)",
        "vec is null",
        'not ($nos = "a" or flag)',
    ],
)
def test_conditions_that_sql_would_read_otherwise_stay_behind(view: View, text: str) -> None:
    pushed = _pushed(view, text)
    assert pushed.filter is None
    assert len(pushed.rest) == 1


def test_what_a_table_filters_too_widely_is_evaluated_again(view: View) -> None:
    pushed = _pushed(view, "odd > 1.0 and (i32 > 0 or odd >= 7.5)")
    assert pushed.filter is not None
    assert len(pushed.rest) == 2


def test_long_lists_and_long_disjunctions_are_not_made_into_filters(view: View) -> None:
    long = ", ".join(map(str, range(ITEMS_MAX + 1)))
    assert _pushed(view, f"i64 in [{long}]").filter is None
    many = " or ".join(f"i64 > {number}" for number in range(TESTS_MAX + 1))
    assert _pushed(view, many).filter is None
    few = " or ".join(f"i64 > {number}" for number in range(TESTS_MAX))
    assert _pushed(view, few).filter is not None


@pytest.mark.parametrize("levels", [1, DEPTH_MAX // 2, DEPTH_MAX, 20])
def test_deeply_nested_conditions_are_evaluated_like_shallow_ones(view: View, levels: int) -> None:
    text = "i64 > 0"
    for level in range(levels):
        text = f"not (i32 != {level} and ({text} or flag))" if level % 2 else f"not ({text})"
    condition, params = _where("Item", text, PARAMS)
    found = scan_matching(view, ITEM, [condition], params)["__id"].to_pylist()
    assert sorted(found) == _selected(list(GRAPH.nodes["Item"].values()), condition, params)


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_the_smallest_integer_is_a_number_like_any_other(view: View, op: str) -> None:
    condition, params = _where("Item", f"i64 {op} $i", {**PARAMS, "i": -(2**63)})
    found = scan_matching(view, ITEM, [condition], params)["__id"].to_pylist()
    assert sorted(found) == _selected(list(GRAPH.nodes["Item"].values()), condition, params)


def test_lists_of_dates_times_and_booleans_are_filters(view: View) -> None:
    text = "query q($d: [Date], $t: [DateTime]) { match { $v: Item %s } return { $v.name } }"
    params = {"d": ["1970-01-01", "1970-01-02"], "t": ["1970-01-01T00:00:00.001Z"]}
    for condition in ("$v.day in $d", "$v.at in $t", "$v.flag in [true]"):
        assert assert_reads_agree(GRAPH, view, text % condition, params)


def test_a_bad_search_option_is_refused_even_where_no_row_is_read(view: View) -> None:
    nothing = typed_tree.Constant(False, typed_tree.BOOL)
    edits = typed_tree.ParameterValue("edits", typed_tree.F64.as_nullable())
    query = typed_tree.Constant("sea", typed_tree.STRING)
    match = typed_tree.TextMatch(TextFunction.FUZZY, "v", "text", query, edits)
    for value in (None, -1, 2**32):
        with pytest.raises(ExecutionError, match="a search option must be at least 0"):
            scan_matching(view, ITEM, [nothing, match], {"edits": value})
        rows = pa.table({"__id": pa.array([], pa.utf8())})
        with pytest.raises(ExecutionError, match="a search option must be at least 0"):
            evaluate_conditions(rows, view.get_shape(ITEM), [match], {"edits": value})


def _pushed(view: View, text: str) -> PushedFilter:
    condition, params = _where("Item", text, PARAMS)
    return push_down([condition], view.get_shape(ITEM), params)


def _selected(
    entities: list[Entity], condition: typed_tree.Expr, params: dict[str, typed_tree.Value]
) -> list[str]:
    found = [
        entity for entity in entities if At({typed_tree.ROW: entity}, params)(condition) is True
    ]
    return sorted(entity["@id"] for entity in found)


def _where(
    type_name: str, condition: str, params: dict[str, Any]
) -> tuple[typed_tree.Expr, dict[str, typed_tree.Value]]:
    text = f"query q({PARAMETERS}) {{ delete {type_name} where {condition} }}"
    checked = compile_query(text, GRAPH.catalog).checked
    assert isinstance(checked, typed_tree.Mutation)
    statement = checked.statements[0]
    assert isinstance(statement, typed_tree.DeleteNodes | typed_tree.DeleteEdges)
    return statement.conditions[0], {**bind_parameters(checked.parameters, params), NOW_NAME: NOW}


def _list_type() -> Any:
    checked = compile_query('query q() { match { $i: Item } return { ["a"] } }', GRAPH.catalog)
    assert isinstance(checked.checked, typed_reads.Read)
    return checked.checked.columns[0].type
