"""The values of written rows: there where required, finite, and within the rules of the schema.

Only rows are examined, as the write leaves them: a value that a later statement of the same
mutation repairs was never there.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.execution.type_scan import TypeRows
from omnigraph.query import typed_tree
from omnigraph.query.entity_conditions import compile_condition
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.row_filter import evaluate_truth
from omnigraph.schema.catalog import Check, Condition, EdgeType, Property, Range
from omnigraph.schema.property_types import EnumType, ListType, Scalar, VectorType
from omnigraph.schema.property_values import describe_float_problem
from omnigraph.writers.validate.findings import (
    Finding,
    Findings,
    Positions,
    RuleSubject,
    list_shown_values,
    shorten_value,
    to_positions,
)


def check_form(subject: RuleSubject, findings: Findings) -> None:
    """Every required value is there, and every number is finite."""
    found = []
    if isinstance(subject.type_, EdgeType):
        found += [_find_missing_end(subject, column) for column in (SOURCE_COLUMN, TARGET_COLUMN)]
    for property_ in subject.type_.properties.values():
        if not property_.type.is_nullable:
            found += find_missing_values(subject, property_)
        found += _find_infinite_values(subject, property_)
    findings.add_by_row(found)


def check_rules(subject: RuleSubject, findings: Findings) -> None:
    """Every value is in its enum, within its range, and matched; every condition holds."""
    constraints = subject.type_.constraints
    findings.add_by_row(
        [
            *(
                find_outside_enum(subject, property_, property_.type.value)
                for property_ in subject.type_.properties.values()
                if isinstance(property_.type.value, EnumType)
            ),
            *(find_outside_range(subject, bounds) for bounds in constraints.ranges),
            *(find_unmatched(subject, check) for check in constraints.checks),
            *(find_failed(subject, condition) for condition in constraints.conditions),
        ]
    )


# The checks of single rows, in the order of their stages.
VALUE_CHECKS: Final = (check_form, check_rules)


def _find_missing_end(subject: RuleSubject, column: str) -> Finding:
    def build_violation(row: int) -> Violation:
        message = f"cannot assign null to an end of {subject.type_.name}"
        return subject.build_violation("required", message, row=row)

    return Finding(to_positions(pc.is_null(subject.change.rows[column])), build_violation)


def find_missing_values(subject: RuleSubject, property_: Property) -> list[Finding]:
    """The rows without a value of a required property."""
    values, name = _column_of(subject, property_.name), property_.name
    if not values.null_count:
        return []

    def build_violation(row: int) -> Violation:
        message = f"non-nullable property '{name}' has null or invalid values"
        full = f"{subject.type_.name}: {message}"
        return subject.build_violation("required", full, row=row, property=name)

    return [Finding(to_positions(pc.is_null(values)), build_violation)]


def _find_infinite_values(subject: RuleSubject, property_: Property) -> list[Finding]:
    """Rows whose number, or an element of whose list or vector, is not finite."""
    values, name = _column_of(subject, property_.name), property_.name
    match property_.type.value:
        case VectorType():
            rows = _find_bad_element_rows(values, may_hold_null=False)
            scalar = Scalar.F32
        case ListType(Scalar.F32 | Scalar.F64 as scalar):
            rows = _find_bad_element_rows(values, may_hold_null=True)
        case _ if pa.types.is_floating(values.type):
            rows = to_positions(pc.invert(pc.is_finite(values)))
            scalar = Scalar.F32 if values.type == pa.float32() else Scalar.F64
        case _:
            return []

    def build_violation(row: int) -> Violation:
        bad = _find_bad_element(
            values[row], may_hold_null=not isinstance(property_.type.value, VectorType)
        )
        problem = "null is not allowed as an element"
        if bad is not None:
            problem = f"{bad} {describe_float_problem(bad, scalar)}"
        message = f"{subject.type_.name}.{name}: {problem}"
        return subject.build_violation("finite", message, row=row, property=name, value=str(bad))

    return [Finding(rows, build_violation)]


def _find_bad_element_rows(lists: pa.ChunkedArray, *, may_hold_null: bool) -> Positions:
    is_good = pc.fill_null(pc.is_finite(pc.list_flatten(lists)), may_hold_null)
    if pc.all(is_good).as_py() is not False:
        return np.empty(0, np.int64)
    owners = pc.list_parent_indices(lists).filter(pc.invert(is_good))
    return np.unique(owners.to_numpy()).astype(np.int64)


def _find_bad_element(value: pa.Scalar, *, may_hold_null: bool) -> float | None:
    held = value.as_py()
    elements: list[float | None] = held if isinstance(held, list) else [held]
    return next(
        each
        for each in elements
        if (not may_hold_null if each is None else not math.isfinite(each))
    )


def find_outside_enum(subject: RuleSubject, property_: Property, enum: EnumType) -> Finding:
    """The rows whose value is not one of an enum; a null is."""
    values, name = _column_of(subject, property_.name), property_.name
    is_known = pc.is_in(values, value_set=pa.array(enum.values, values.type))

    def build_violation(row: int) -> Violation:
        value = shorten_value(values[row])
        allowed = shorten_value(", ".join(enum.values))
        message = f"invalid enum value '{value}' for {subject.type_.name}.{name} ({allowed})"
        return subject.build_violation("enum", message, row=row, property=name, value=value)

    return Finding(to_positions(pc.and_not(values.is_valid(), is_known)), build_violation)


def find_outside_range(subject: RuleSubject, bounds: Range) -> Finding:
    """The rows whose value is beyond a bound; a null is not."""
    values, name = _column_of(subject, bounds.property), bounds.property
    is_integer = pa.types.is_integer(values.type)
    is_within = (
        _are_integers_within(values, bounds) if is_integer else _are_floats_within(values, bounds)
    )

    def build_violation(row: int) -> Violation:
        value = shorten_value(values[row].as_py())
        message = (
            f"@range violation on {subject.type_.name}.{name}: {value} ({_format_bounds(bounds)})"
        )
        return subject.build_violation("range", message, row=row, property=name, value=value)

    return Finding(to_positions(pc.invert(is_within)), build_violation)


def _format_bounds(bounds: Range) -> str:
    """The bounds for people."""
    if bounds.minimum is None:
        return f"at most {bounds.maximum}"
    if bounds.maximum is None:
        return f"at least {bounds.minimum}"
    return f"{bounds.minimum} to {bounds.maximum}"


def _are_integers_within(values: pa.ChunkedArray, bounds: Range) -> pa.ChunkedArray:
    """Which integers lie within bounds, compared exactly: bounds become integers of their type."""
    limits = np.iinfo(values.type.to_pandas_dtype())
    least, most = int(limits.min), int(limits.max)
    low = least if bounds.minimum is None else bounds.minimum
    high = most if bounds.maximum is None else bounds.maximum
    low = math.ceil(min(max(low, least), most + 1))
    high = math.floor(max(min(high, most), least - 1))
    if low > most or high < least:
        return pc.is_null(values)
    return pc.and_(
        pc.greater_equal(values, pa.scalar(low, values.type)),
        pc.less_equal(values, pa.scalar(high, values.type)),
    )


def _are_floats_within(values: pa.ChunkedArray, bounds: Range) -> pa.ChunkedArray:
    """Which floats lie within bounds, compared exactly; NaN never does."""
    low = (
        -math.inf if bounds.minimum is None else _round_to_double(bounds.minimum, towards=math.inf)
    )
    high = (
        math.inf if bounds.maximum is None else _round_to_double(bounds.maximum, towards=-math.inf)
    )
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def _round_to_double(bound: int | float, *, towards: float) -> float:
    """The nearest double on one side of a bound: large integers lie between doubles."""
    try:
        nearest = float(bound)
    except OverflowError:
        nearest = math.copysign(math.inf, bound)
    is_beyond = nearest >= bound if towards > 0 else nearest <= bound
    return nearest if is_beyond else math.nextafter(nearest, towards)


def find_unmatched(subject: RuleSubject, check: Check) -> Finding:
    """The rows whose text has no match of a pattern; a null needs none."""
    values, name = _column_of(subject, check.property), check.property
    # Arrow searches with RE2, the engine that admitted the pattern.
    is_matched = pc.match_substring_regex(values, check.pattern)

    def build_violation(row: int) -> Violation:
        value = shorten_value(values[row])
        pattern = shorten_value(check.pattern)
        message = f"@check violation on {subject.type_.name}.{name}: '{value}' (/{pattern}/)"
        return subject.build_violation("check", message, row=row, property=name, value=value)

    return Finding(to_positions(pc.invert(is_matched)), build_violation)


def find_failed(subject: RuleSubject, condition: Condition) -> Finding:
    """The rows for which a condition is false; where it is not known, it holds."""
    rows = TypeRows(subject.change.rows, subject.change.shape)
    is_false = evaluate_truth(
        typed_tree.Negation(compile_condition(condition.text, subject.type_)), rows, {}
    )

    def build_violation(row: int) -> Violation:
        message = f"@check violation on {subject.type_.name}: {shorten_value(condition.text)}"
        shown = ", ".join(
            f"{name} = {list_shown_values(_column_of(subject, name).slice(row, 1))[0]}"
            for name in condition.members
        )
        return subject.build_violation("check", f"{message} ({shown})", row=row)

    return Finding(np.flatnonzero(is_false).astype(np.int64), build_violation)


def _column_of(subject: RuleSubject, name: str) -> pa.ChunkedArray:
    return subject.change.rows[subject.change.shape.columns[name]]
