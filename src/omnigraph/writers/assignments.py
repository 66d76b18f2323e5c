"""The constants of a statement: computed once, as values of the properties they are assigned to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Never, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from omnigraph.errors import ValueFaultError, Violation, WriteRefusedError
from omnigraph.query import typed_tree
from omnigraph.rows.evaluator import CONSTANT_ROW, Params, evaluate_constant
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import (
    FLOATS,
    NUMERIC,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    arrow_name_of,
)
from omnigraph.schema.property_values import (
    ExternalBlobTextError,
    InvalidNumberError,
    coerce_number,
    decode_blob,
    describe_float_problem,
)
from omnigraph.writers.value_faults import find_faults

# What Arrow makes a cell of; a vector is an array of its numbers.
Cell: TypeAlias = typed_tree.Value | bytes | npt.NDArray[np.float32]

_HINTS: Final = {
    "required": "give it a value, or declare its type with `?`",
    "value": "pass a value that the type of the property can hold",
}
_NUMBERS = (int, float)


class ExternalBlobError(WriteRefusedError):
    """A blob that is named by its address; it matters only where there is an entity to have it."""


def evaluate_assignments(
    type_: NodeType | EdgeType, assignments: Iterable[typed_tree.Assign], params: Params
) -> dict[str, Cell]:
    """The value of each assigned property, by its name; whatever does not fit is refused."""
    cells: dict[str, Cell] = {}
    for assign in assignments:
        name, property_type = assign.property, type_.properties[assign.property].type
        value = evaluate_constant(assign.value, params)
        if value is None and find_faults(assign.value, CONSTANT_ROW, params).any():
            raise ValueFaultError(type_.name, name)
        if value is None and not property_type.is_nullable:
            message = f"cannot assign null to non-nullable property '{name}' of {type_.name}"
            _raise_refused(message, rule="required", type_name=type_.name, property_=name)
        try:
            cells[name] = None if value is None else coerce_cell(value, property_type)
        except ExternalBlobTextError as misfit:
            message = f"{type_.name}.{name}: {misfit}"
            violation = Violation("value", message, type_name=type_.name, property=name)
            raise ExternalBlobError(
                message, violations=[violation], hint=_HINTS["value"]
            ) from misfit
        except ValueError as misfit:
            message = f"{type_.name}.{name}: {misfit}"
            _raise_refused(message, rule="value", type_name=type_.name, property_=name)
    return cells


def require_complete(
    type_: NodeType | EdgeType, given: Collection[str], *, fills_vectors: bool = False
) -> None:
    """Refuse a new entity that lacks a required property, unless that is a vector to be filled."""
    for name, property_ in type_.properties.items():
        is_filled = fills_vectors and property_.embed is not None
        if name not in given and property_.must_be_given and not is_filled:
            message = f"missing required property '{name}' of {type_.name}"
            _raise_refused(message, rule="required", type_name=type_.name, property_=name)


def evaluate_end(type_name: str, name: str, expr: typed_tree.Expr, params: Params) -> str:
    """The id of the node at one end of a new edge, `from` or `to`."""
    value = evaluate_constant(expr, params)
    if value is None:
        message = f"cannot assign null to an end of {type_name}"
        _raise_refused(message, rule="required", type_name=type_name, property_=name)
    assert isinstance(value, str), "the checker lets nothing else through"
    return value


def _raise_refused(message: str, *, rule: str, type_name: str, property_: str) -> Never:
    violation = Violation(rule, message, type_name=type_name, property=property_)
    raise WriteRefusedError(message, violations=[violation], hint=_HINTS[rule])


def coerce_cell(value: typed_tree.Value, type_: PropertyType) -> Cell:
    """A value as a property keeps it; ValueError if it does not fit."""
    match type_.value:
        case ScalarType(Scalar.BLOB):
            assert isinstance(value, str), "the checker lets nothing else through"
            return decode_blob(value)
        case ScalarType(scalar):
            return _coerce_scalar(value, scalar)
        case EnumType():
            return _coerce_scalar(value, Scalar.STRING)
        case ListType(element):
            return tuple(_coerce_scalar(item, element) for item in _require_items(value))
        case VectorType(dimension):
            return _coerce_vector(_require_items(value), dimension)
    assert_never(type_.value)


def _require_items(value: typed_tree.Value) -> tuple[typed_tree.Value, ...]:
    assert isinstance(value, tuple), "the checker lets nothing else through"
    if None in value:
        raise ValueError("null is not allowed as an element")
    return value


def _coerce_scalar(value: typed_tree.Value, scalar: Scalar) -> typed_tree.Value:
    if scalar not in NUMERIC:
        return value
    assert isinstance(value, _NUMBERS), "the checker lets nothing else through"
    try:
        return coerce_number(value, scalar)
    except InvalidNumberError as misfit:
        if scalar in FLOATS or value != value // 1:
            raise ValueError(f"{value} {misfit}") from misfit
        raise ValueError(f"{value} exceeds {arrow_name_of(scalar)} range") from misfit


def _coerce_vector(items: tuple[typed_tree.Value, ...], dimension: int) -> npt.NDArray[np.float32]:
    assert len(items) == dimension, "the checker and the binding of parameters compare lengths"
    with np.errstate(over="ignore"):
        numbers = np.asarray(items, np.float64).astype(np.float32)
    is_finite = np.isfinite(numbers)
    if not is_finite.all():
        bad = items[int(np.argmin(is_finite))]
        raise ValueError(f"{bad} {describe_float_problem(bad, Scalar.F32)}")
    return numbers
