from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ParameterError, UnknownParameterError
from omnigraph.lang.lexer import Mode
from omnigraph.query.query_parameters import (
    ITEM_BYTES,
    ParameterMode,
    bind_parameters,
    require_declared,
)
from omnigraph.query.typed_tree import Parameter, Value
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    make_scalar_type,
)
from omnigraph.schema.property_values import round_to_f32


def bind_one(type_: PropertyType, value: object) -> Value:
    return bind_parameters((Parameter("x", type_),), {"x": value})["x"]


def refusal(type_: PropertyType, value: object) -> str:
    with pytest.raises(ParameterError) as caught:
        bind_one(type_, value)
    assert "'x'" in caught.value.message
    return caught.value.message


STRINGS = PropertyType(ListType(Scalar.STRING))


@pytest.mark.parametrize(
    ("scalar", "supplied", "expected"),
    [
        (Scalar.STRING, "ann", "ann"),
        (Scalar.BLOB, "https://x.org/a", "https://x.org/a"),
        (Scalar.BOOL, True, True),
        (Scalar.I32, -5, -5),
        (Scalar.I32, "42", 42),
        (Scalar.I64, "-9223372036854775808", -(2**63)),
        (Scalar.U32, 4_294_967_295, 4_294_967_295),
        (Scalar.U64, 2**63 - 1, 2**63 - 1),
        (Scalar.F64, 2, 2.0),
        (Scalar.F64, 0.1, 0.1),
        (Scalar.F32, 0.1, round_to_f32(0.1)),
        (Scalar.DATE, "1970-01-02", 1),
        (Scalar.DATETIME, "1970-01-01T00:00:01Z", 1000),
        (Scalar.DATETIME, "1970-01-02", 86_400_000),
    ],
)
def test_a_fitting_value_is_converted(scalar: Scalar, supplied: object, expected: Value) -> None:
    value = bind_one(PropertyType(ScalarType(scalar)), supplied)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("scalar", "supplied", "fragment"),
    [
        (Scalar.STRING, 1, "expected String"),
        (Scalar.BOOL, 1, "expected Bool"),
        (Scalar.BOOL, "true", "expected Bool"),
        (Scalar.I64, 4.5, "expected I64"),
        (Scalar.I64, 4.0, "expected I64"),
        (Scalar.I64, True, "expected I64"),
        (Scalar.I64, "4x", "expected I64"),
        (Scalar.I64, "９", "expected I64"),
        (Scalar.I64, 2**63, "exceeds I64 range"),
        pytest.param(Scalar.I64, 10**5000, "exceeds I64 range", id="I64-huge"),
        (Scalar.I32, 3_000_000_000, "exceeds I32 range (-2147483648..2147483647)"),
        (Scalar.U32, -1, "exceeds U32 range"),
        (Scalar.U64, "18446744073709551616", "exceeds current engine range"),
        (Scalar.F64, "1.5", "expected F64"),
        (Scalar.F64, True, "expected F64"),
        (Scalar.F64, float("nan"), "finite"),
        pytest.param(Scalar.F64, 10**400, "exceeds F64 range", id="F64-huge"),
        (Scalar.F32, 1e39, "exceeds F32 range"),
        (Scalar.DATE, "2024-01-01T10:00:00Z", "invalid Date literal"),
        (Scalar.DATE, 5, "expected Date"),
        (Scalar.DATETIME, "noon", "invalid DateTime literal"),
        (Scalar.STRING, {"a": 1}, "an object"),
        (Scalar.STRING, ["a"], "an array"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    scalar: Scalar, supplied: object, fragment: str
) -> None:
    assert fragment in refusal(make_scalar_type(scalar), supplied)


def test_strict_mode_refuses_integers_beyond_63_bits() -> None:
    wanted = (Parameter("x", make_scalar_type(Scalar.U64)),)
    assert bind_parameters(wanted, {"x": 2**64 - 1}) == {"x": 2**64 - 1}
    with pytest.raises(ParameterError, match="exceeds current engine range"):
        bind_parameters(wanted, {"x": 2**63}, strictness=Mode.STRICT)


def test_a_list_is_read_item_by_item() -> None:
    dates = PropertyType(ListType(Scalar.DATE), is_nullable=True)
    assert bind_one(dates, ["1970-01-01", "1970-01-03"]) == (0, 2)
    assert bind_one(STRINGS, ("a",)) == ("a",)
    assert bind_one(STRINGS, []) == ()


def test_a_list_refuses_null_and_names_the_item() -> None:
    assert "item 2" in refusal(STRINGS, ["a", None])
    assert "item 1" in refusal(STRINGS, [3])
    assert "expected [String]" in refusal(STRINGS, "a")


def test_a_vector_has_exactly_its_dimension() -> None:
    vector = PropertyType(VectorType(3))
    assert bind_one(vector, [1, 0.5, 0.1]) == (1.0, 0.5, round_to_f32(0.1))
    message = refusal(vector, [1, 2])
    assert "3" in message
    assert "2" in message
    assert "exceeds F32 range" in refusal(vector, [1, 2, 1e39])
    assert "expected F32" in refusal(vector, [1, 2, "3"])


@pytest.mark.parametrize(
    ("item", "fragment"),
    [
        (True, "item 2: expected F32"),
        (None, "item 2: null"),
        (10**400, "item 2: an integer of too many digits exceeds F32 range"),
        (-1e39, "item 2: -1e+39 exceeds F32 range"),
        (math.nan, "item 2: nan is not a finite number"),
        (math.inf, "item 2: inf is not a finite number"),
    ],
)
def test_a_vector_names_the_item_that_does_not_fit(item: object, fragment: str) -> None:
    assert fragment in refusal(PropertyType(VectorType(2)), [0.5, item])


@given(st.lists(st.floats(width=64, min_value=-3e38, max_value=3e38) | st.integers(-9, 9)))
def test_a_vector_is_rounded_number_by_number(numbers: list[float]) -> None:
    vector = PropertyType(VectorType(len(numbers)))
    assert bind_one(vector, numbers) == tuple(round_to_f32(float(each)) for each in numbers)


def test_params_must_be_an_object() -> None:
    for supplied in ([1], "x", 3):
        with pytest.raises(ParameterError, match="params must be a JSON object"):
            bind_parameters((), supplied)
    with pytest.raises(ParameterError, match="the name of a parameter is a text, got 1"):
        bind_parameters((), {1: 2})


def test_absent_nullable_parameters_become_null() -> None:
    parameters = (Parameter("x", make_scalar_type(Scalar.I64, is_nullable=True)),)
    assert bind_parameters(parameters, None) == {"x": None}
    assert bind_parameters(parameters, {}) == {"x": None}
    assert bind_parameters(parameters, {"x": None}) == {"x": None}


def test_null_is_refused_for_a_required_parameter() -> None:
    message = refusal(make_scalar_type(Scalar.I64), None)
    assert "null is not accepted for non-nullable parameter 'x'" in message


def test_a_required_parameter_is_demanded_even_without_params() -> None:
    parameters = (Parameter("x", make_scalar_type(Scalar.I64)),)
    with pytest.raises(ParameterError, match="parameter 'x' not provided"):
        bind_parameters(parameters, None)


def test_a_missing_parameter_hints_at_the_name_that_was_meant() -> None:
    parameters = (Parameter("handle", make_scalar_type(Scalar.STRING)),)
    with pytest.raises(ParameterError) as dollar:
        bind_parameters(parameters, {"$handle": "a"})
    assert dollar.value.hint == "write 'handle' without $"
    with pytest.raises(ParameterError) as misspelt:
        bind_parameters(parameters, {"hanlde": "a"})
    assert misspelt.value.hint == "'hanlde' is not declared; did you mean 'handle'?"


def test_extra_plain_values_are_ignored() -> None:
    extra = {"a": 1, "b": "x", "c": [1, 2.5], "d": None, "e": True}
    assert bind_parameters((), extra) == {}


@pytest.mark.parametrize("name", ["hnadle", "$handle", "Handle"])
def test_an_extra_that_was_meant_for_a_parameter_left_out_is_refused(name: str) -> None:
    nullable = make_scalar_type(Scalar.STRING, is_nullable=True)
    parameters = (Parameter("handle", nullable), Parameter("age", nullable))
    with pytest.raises(UnknownParameterError) as refused:
        bind_parameters(parameters, {name: "a"})
    assert f"no parameter '{name}'; it has $age, $handle" in refused.value.message
    assert refused.value.declared == ("age", "handle")
    assert "'handle'" in (refused.value.hint or "")
    assert bind_parameters(parameters, {"handle": "a", name: "b"})["handle"] == "a"


def test_a_closed_surface_refuses_every_name_that_is_not_declared() -> None:
    require_declared(["a"], None)
    require_declared(["a"], {"a": 1})
    with pytest.raises(UnknownParameterError, match="'extra'; it has no parameters"):
        require_declared([], {"extra": 1})


@pytest.mark.parametrize("value", [{"k": 1}, [{"k": 1}], [[1]], object(), float("inf"), 2**63])
def test_extra_values_that_no_parameter_could_have_are_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="'extra'"):
        bind_parameters((), {"extra": value})


def test_the_instant_of_the_request_cannot_be_supplied() -> None:
    with pytest.raises(ParameterError, match="reserved"):
        bind_parameters((), {"__nanograph_now": "2024-01-01"})


def test_javascript_numbers_must_be_exact() -> None:
    parameters = (Parameter("x", make_scalar_type(Scalar.I64)),)
    mode = ParameterMode.JAVASCRIPT
    with pytest.raises(ParameterError) as caught:
        bind_parameters(parameters, {"x": 9_007_199_254_740_993}, mode=mode)
    assert caught.value.hint == "pass it as a decimal string"
    assert bind_parameters(parameters, {"x": "9007199254740993"}, mode=mode) == {
        "x": 9_007_199_254_740_993
    }
    assert bind_parameters(parameters, {"x": 4.0}, mode=mode) == {"x": 4}
    with pytest.raises(ParameterError):
        bind_parameters(parameters, {"x": 4.5}, mode=mode)


def test_digits_beyond_milliseconds_are_cut_unless_strict() -> None:
    parameters = (Parameter("x", make_scalar_type(Scalar.DATETIME)),)
    supplied = {"x": "1970-01-01T00:00:00.0019Z"}
    assert bind_parameters(parameters, supplied) == {"x": 1}
    with pytest.raises(ParameterError, match="milliseconds"):
        bind_parameters(parameters, supplied, strictness=Mode.STRICT)


class CountingBudget:
    """What binding asks for: how often it looked, and how many bytes it took."""

    def __init__(self, looks_max: int = 10**9) -> None:
        self.looks = 0
        self.nbytes = 0
        self._looks_max = looks_max

    def check_interrupts(self) -> None:
        self.looks += 1
        if self.looks > self._looks_max:
            raise TimeoutError

    def allocate(self, nbytes: int) -> None:
        self.nbytes += nbytes


LONG_LISTS: dict[Scalar, list[object]] = {
    Scalar.I64: [*range(50_000)],
    Scalar.STRING: [f"text {number}" for number in range(50_000)],
    Scalar.BOOL: [True, False] * 25_000,
    Scalar.F32: [0.5] * 50_000,
    Scalar.DATE: ["2024-05-06"] * 50_000,
}


@pytest.mark.parametrize("scalar", LONG_LISTS)
def test_a_long_list_draws_on_the_budget_while_it_is_bound(scalar: Scalar) -> None:
    parameters, params = (Parameter("x", PropertyType(ListType(scalar))),), LONG_LISTS[scalar]
    budget = CountingBudget()
    found = bind_parameters(parameters, {"x": params}, budget=budget)["x"]
    assert isinstance(found, tuple)
    assert len(found) == 50_000
    assert budget.looks >= 5
    texts = sum(map(len, params)) if scalar is Scalar.STRING else 0  # type: ignore[arg-type]
    assert budget.nbytes == ITEM_BYTES * 50_000 + texts
    with pytest.raises(TimeoutError):
        bind_parameters(parameters, {"x": params}, budget=CountingBudget(looks_max=2))
    with pytest.raises(TimeoutError):
        bind_parameters((), {"x": params}, budget=CountingBudget(looks_max=2))


@given(
    st.sampled_from([Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64]),
    st.sampled_from(ParameterMode),
    st.lists(
        st.integers(-(2**64), 2**64) | st.floats() | st.booleans() | st.sampled_from(["7", 2**54]),
        min_size=1,
        max_size=3,
    )
    | st.lists(st.integers(-(2**64), 2**64) | st.integers(0, 9), min_size=1, max_size=3)
    | st.lists(st.floats(), min_size=1, max_size=3),
)
def test_a_list_holds_what_each_of_its_items_is_alone(
    scalar: Scalar, mode: ParameterMode, items: list[object]
) -> None:
    one = (Parameter("x", PropertyType(ScalarType(scalar))),)
    several = (Parameter("x", PropertyType(ListType(scalar))),)
    try:
        expected = tuple(bind_parameters(one, {"x": item}, mode=mode)["x"] for item in items)
    except ParameterError:
        with pytest.raises(ParameterError, match="item"):
            bind_parameters(several, {"x": items}, mode=mode)
    else:
        found = bind_parameters(several, {"x": items}, mode=mode)["x"]
        assert found == expected
        assert isinstance(found, tuple)
        assert list(map(type, found)) == list(map(type, expected))
