from __future__ import annotations

import pytest

from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.schema.property_types import ListType, PropertyType, Scalar, make_scalar_type
from omnigraph.schema.property_values import parse_date, parse_datetime, round_to_f32
from unit.query.checking import column_of, condition_of, filter_problems

I32 = make_scalar_type(Scalar.I32)
I64 = make_scalar_type(Scalar.I64)


def right_side(condition: str, *, parameters: str = "") -> typed_tree.Expr:
    found = condition_of(condition, parameters=parameters)
    assert isinstance(found, typed_tree.Compare)
    return found.right


def list_of(condition: str, *, parameters: str = "") -> typed_tree.Expr:
    found = condition_of(condition, parameters=parameters)
    assert isinstance(found, typed_tree.Member)
    return found.items


def list_type(element: Scalar) -> PropertyType:
    return PropertyType(ListType(element))


def test_an_integer_literal_takes_the_type_of_the_property() -> None:
    assert right_side("$a.small = 3") == typed_tree.Constant(3, I32)
    assert right_side("$a.score = 3") == typed_tree.Constant(3.0, typed_tree.F64)


def test_an_integer_literal_beyond_the_range_of_the_property_is_kept_exact() -> None:
    assert right_side("$a.small = 3000000000") == typed_tree.Constant(3_000_000_000, I64)


def test_an_integer_literal_that_a_float_cannot_hold_is_kept_exact() -> None:
    assert right_side("$a.score = 9007199254740993") == typed_tree.Constant(9007199254740993, I64)


def test_a_decimal_literal_is_rounded_to_a_32_bit_property() -> None:
    assert right_side("$a.tiny = 0.1") == typed_tree.Constant(round_to_f32(0.1), typed_tree.F32)
    huge = "1" + "0" * 39 + ".0"
    assert right_side(f"$a.tiny < {huge}") == typed_tree.Constant(1e39, typed_tree.F64)


def test_a_fraction_against_an_integer_property_is_kept() -> None:
    assert right_side("$a.small = 2.7") == typed_tree.Constant(2.7, typed_tree.F64)
    assert right_side("$a.small = 2.0") == typed_tree.Constant(2, I32)


def test_a_literal_on_the_left_takes_the_type_of_the_right_side() -> None:
    found = condition_of("0.1 = $a.tiny")
    assert isinstance(found, typed_tree.Compare)
    assert found.left == typed_tree.Constant(round_to_f32(0.1), typed_tree.F32)
    assert found.op is CompareOp.EQ


def test_a_literal_takes_the_type_of_a_parameter() -> None:
    assert right_side("$p = 0.1", parameters="$p: F32") == typed_tree.Constant(
        round_to_f32(0.1), typed_tree.F32
    )


def test_dates_are_counted() -> None:
    assert right_side('$a.bornOn = date("1980-01-02")') == typed_tree.Constant(
        parse_date("1980-01-02"), make_scalar_type(Scalar.DATE)
    )
    assert right_side('$a.seen < datetime("2024-05-06T07:08:09Z")') == typed_tree.Constant(
        parse_datetime("2024-05-06T07:08:09Z"), typed_tree.DATETIME
    )


def test_a_string_against_an_enum_need_not_be_in_the_set() -> None:
    assert right_side('$b.state = "nope"') == typed_tree.Constant("nope", typed_tree.STRING)


def test_a_mixed_list_is_a_list_of_floats() -> None:
    assert column_of("[1, 2.5] as l").value == typed_tree.Constant(
        (1.0, 2.5), list_type(Scalar.F64)
    )
    assert column_of("[2.5, 1] as l").value == typed_tree.Constant(
        (2.5, 1.0), list_type(Scalar.F64)
    )


def test_the_items_of_a_list_take_the_type_of_the_tested_property() -> None:
    assert list_of("$a.score in [40, 90.5]") == typed_tree.Constant(
        (40.0, 90.5), list_type(Scalar.F64)
    )
    assert list_of("$a.tiny in [0.1]") == typed_tree.Constant(
        (round_to_f32(0.1),), list_type(Scalar.F32)
    )
    assert list_of("$a.small in [1, 3000000000]") == typed_tree.Constant(
        (1, 3_000_000_000), list_type(Scalar.I64)
    )


def test_an_item_takes_the_type_of_the_elements() -> None:
    found = condition_of("0.1 in $a.marks")
    assert isinstance(found, typed_tree.Member)
    assert found.item == typed_tree.Constant(round_to_f32(0.1), typed_tree.F32)


def test_an_empty_list_fits_every_element_type() -> None:
    assert list_of("$a.score in []") == typed_tree.Constant((), list_type(Scalar.F64))
    assert list_of("$a.name in []") == typed_tree.Constant((), list_type(Scalar.STRING))
    assert column_of("[] as l").type == list_type(Scalar.STRING)


def test_a_list_with_parameters_keeps_its_items() -> None:
    assert list_of("$a.score in [$p, 1]", parameters="$p: F64?") == typed_tree.ListOf(
        (
            typed_tree.ParameterValue("p", typed_tree.F64.as_nullable()),
            typed_tree.Constant(1.0, typed_tree.F64),
        ),
        list_type(Scalar.F64),
    )


@pytest.mark.parametrize(
    ("items", "parameter", "element"),
    [
        ("[0.5, $p]", "F32", Scalar.F32),
        ("[0.5, $p]", "F64", Scalar.F64),
        ("[0.5, $p]", "I64", Scalar.F64),
        ("[1, $p]", "F32?", Scalar.F32),
    ],
)
def test_a_list_with_parameters_has_the_type_of_its_converted_items(
    items: str, parameter: str, element: Scalar
) -> None:
    found = list_of(f"$a.tiny in {items}", parameters=f"$p: {parameter}")
    assert isinstance(found, typed_tree.ListOf)
    assert found.items[0].type == typed_tree.F32
    assert found.type == list_type(element)


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ("[[1]]", "T103 [1]"),
        ('[1, "x"]', 'T103 [1, "x"]'),
        ("[true, 1]", "T103 [true, 1]"),
        ("[$many]", "T103 $many"),
        ("[$blob]", "T103 $blob"),
        ("[$a]", "T14 $a"),
    ],
)
def test_a_list_holds_constants_of_one_type(items: str, problem: str) -> None:
    parameters = "$many: [I64], $blob: Blob"
    assert filter_problems(f"$a.score in {items}", parameters=parameters) == [problem]


def test_a_wrong_item_is_the_only_finding_about_its_list() -> None:
    assert filter_problems('date("x") in [date("y"), date("2020-01-01")]') == [
        'T3 date("x")',
        'T3 date("y")',
    ]
