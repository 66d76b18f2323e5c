"""Conditions to the SQL filter that a table evaluates while it reads.

Only what SQL means exactly as we do is pushed down, and what is a little wider is evaluated again
on the rows that pass. Everything else is not pushed down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import pyarrow as pa

from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed_tree import Expr, SystemName, Value
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.comparison import MIRRORED, Comparison, fit_constant
from omnigraph.rows.evaluator import (
    Params,
    evaluate_constant,
    find_few_matchable,
    is_constant,
    poll_of,
)
from omnigraph.versioning.effects import ID_COLUMN

SYSTEM_COLUMNS: Final = {
    SystemName.ID: ID_COLUMN,
    SystemName.SRC: SOURCE_COLUMN,
    SystemName.DST: TARGET_COLUMN,
}
# A longer list is faster to look up in memory than to parse.
ITEMS_MAX = 1_000
# A parsed filter is a tree as deep as it has operators, which must not exhaust a thread's stack.
TESTS_MAX = 64
# The SQL parser gives up between 15 and 30 nested parentheses.
DEPTH_MAX = 8
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1


class Fidelity(IntEnum):
    """How close a filter is to its condition."""

    # It passes every row that satisfies the condition, and maybe others.
    WIDER = 1
    # It passes the same rows, but may be false where the condition is null.
    SAME_ROWS = 2
    # It is true, false and null where the condition is.
    SAME_TRUTH = 3


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """A filter for the table, None if there is nothing to filter, and what is left to evaluate."""

    filter: str | None
    rest: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Sql:
    text: str
    fidelity: Fidelity
    tests: int = 1
    depth: int = 0


def push_down(conditions: Iterable[Expr], shape: TableShape, params: Params) -> PushedFilter:
    """Split conditions about rows of one type into a filter and the rest."""
    writer, poll = _SqlWriter(shape, params), poll_of(params)
    filters: list[str] = []
    rest: list[Expr] = []
    tests = 0
    for condition in iter_conjuncts(conditions):
        poll()
        sql = writer.write_sql(condition)
        if sql is None or tests + sql.tests > TESTS_MAX or sql.depth > DEPTH_MAX:
            rest.append(condition)
            continue
        tests += sql.tests
        filters.append(sql.text)
        if sql.fidelity is Fidelity.WIDER:
            rest.append(condition)
    return PushedFilter(" AND ".join(filters) or None, tuple(rest))


def iter_conjuncts(conditions: Iterable[Expr]) -> Iterable[Expr]:
    """The conditions that must all hold, with conjunctions taken apart."""
    for condition in conditions:
        if isinstance(condition, typed_tree.AllOf):
            yield from iter_conjuncts(condition.operands)
        else:
            yield condition


def column_of(expr: Expr, shape: TableShape) -> str | None:
    """The physical column that an expression is, if it is one."""
    match expr:
        case typed_tree.PropertyValue():
            return shape.columns[expr.property]
        case typed_tree.SystemValue():
            return SYSTEM_COLUMNS.get(expr.name)
        case _:
            return None


def quote_sql_text(text: str) -> str:
    """A text as SQL spells it; only quotes have a meaning inside."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class _SqlWriter:
    shape: TableShape
    params: Params

    def write_sql(self, expr: Expr) -> _Sql | None:
        """The filter of a condition, or None if the table cannot evaluate it."""
        if is_constant(expr):
            value = evaluate_constant(expr, self.params)
            fidelity = Fidelity.SAME_ROWS if value is None else Fidelity.SAME_TRUTH
            return _Sql("true" if value else "false", fidelity)
        write = _WRITERS.get(type(expr))
        return None if write is None else write(self, expr)

    def find_column(self, expr: Expr) -> tuple[str, pa.DataType] | None:
        """The quoted name and the type of the scalar column that an expression is."""
        name = column_of(expr, self.shape)
        if name is None:
            return None
        kind = self.shape.schema.field(name).type
        return None if pa.types.is_nested(kind) else (f"`{name}`", kind)

    def evaluate_operand(self, expr: Expr) -> Value:
        """The value of a constant operand."""
        return evaluate_constant(expr, self.params)


def _write_boolean(writer: _SqlWriter, expr: typed_tree.PropertyValue) -> _Sql | None:
    column = writer.find_column(expr)
    return column and _Sql(column[0], Fidelity.SAME_TRUTH)


def _write_comparison(writer: _SqlWriter, expr: typed_tree.Compare) -> _Sql | None:
    left, right, op = expr.left, expr.right, expr.op
    if is_constant(left):
        left, right, op = right, left, MIRRORED[op]
    column = writer.find_column(left)
    if column is None or not is_constant(right):
        return None
    name, kind = column
    value = writer.evaluate_operand(right)
    if value is None:
        return _Sql("false", Fidelity.SAME_ROWS)
    test = fit_constant(op, value, kind)
    if isinstance(test, bool):
        return _Sql(f"{name} IS NOT NULL" if test else "false", Fidelity.SAME_ROWS)
    literal = _write_literal(test.value, kind)
    if literal is None:
        return None
    return _Sql(f"{name} {test.op} {literal}", _fidelity_of(test, kind))


def _fidelity_of(test: Comparison, kind: pa.DataType) -> Fidelity:
    # To SQL, NaN is a number, and the greatest.
    if pa.types.is_floating(kind) and test.op in (CompareOp.GT, CompareOp.GE):
        return Fidelity.WIDER
    return Fidelity.SAME_TRUTH


def _write_member(writer: _SqlWriter, expr: typed_tree.Member) -> _Sql | None:
    column = writer.find_column(expr.item)
    if column is None or not is_constant(expr.items):
        return None
    name, kind = column
    items = writer.evaluate_operand(expr.items)
    if items is None:
        return _Sql("false", Fidelity.SAME_ROWS)
    wanted = find_few_matchable(items, kind, writer.params, count_max=ITEMS_MAX)
    if wanted is None:
        return None
    literals = [_write_literal(item, kind) for item in wanted.to_pylist()]
    if None in literals:
        return None
    if not literals:
        return _Sql("false", Fidelity.SAME_ROWS)
    return _Sql(f"{name} IN ({', '.join(filter(None, literals))})", Fidelity.SAME_TRUTH)


def _write_text_test(writer: _SqlWriter, function: str, text: Expr, part: Expr) -> _Sql | None:
    column = writer.find_column(text)
    if column is None or not is_constant(part):
        return None
    value = writer.evaluate_operand(part)
    if value is None:
        return _Sql("false", Fidelity.SAME_ROWS)
    assert isinstance(value, str)
    return _Sql(f"{function}({column[0]}, {quote_sql_text(value)})", Fidelity.SAME_TRUTH)


def _write_null_test(writer: _SqlWriter, expr: typed_tree.IsNull) -> _Sql | None:
    column = writer.find_column(expr.operand)
    word = "IS NOT NULL" if expr.is_negated else "IS NULL"
    return column and _Sql(f"{column[0]} {word}", Fidelity.SAME_TRUTH)


def _write_junction(writer: _SqlWriter, word: str, operands: Sequence[Expr]) -> _Sql | None:
    parts = [writer.write_sql(operand) for operand in operands]
    known = [part for part in parts if part is not None]
    # A conjunction without some operands is only wider; a disjunction needs all of them.
    if not known or (word == "OR" and len(known) < len(parts)):
        return None
    fidelity = min(part.fidelity for part in known)
    if len(known) < len(parts):
        fidelity = Fidelity.WIDER
    text = f" {word} ".join(part.text for part in known)
    depth = max(part.depth for part in known) + 1
    return _Sql(f"({text})", fidelity, sum(part.tests for part in known), depth)


def _write_negation(writer: _SqlWriter, expr: typed_tree.Negation) -> _Sql | None:
    operand = writer.write_sql(expr.operand)
    if operand is None or operand.fidelity is not Fidelity.SAME_TRUTH:
        return None
    return _Sql(f"NOT ({operand.text})", Fidelity.SAME_TRUTH, operand.tests, operand.depth + 1)


# Any: each function takes the one kind of expression it stands beside.
_WRITERS: Final[Mapping[type[Expr], Callable[[_SqlWriter, Any], _Sql | None]]] = {
    typed_tree.PropertyValue: _write_boolean,
    typed_tree.Compare: _write_comparison,
    typed_tree.Member: _write_member,
    typed_tree.Substring: lambda writer, expr: _write_text_test(
        writer, "contains", expr.text, expr.part
    ),
    typed_tree.Prefix: lambda writer, expr: _write_text_test(
        writer, "starts_with", expr.text, expr.prefix
    ),
    typed_tree.IsNull: _write_null_test,
    typed_tree.AllOf: lambda writer, expr: _write_junction(writer, "AND", expr.operands),
    typed_tree.AnyOf: lambda writer, expr: _write_junction(writer, "OR", expr.operands),
    typed_tree.Negation: _write_negation,
}


def _write_literal(value: Value, kind: pa.DataType) -> str | None:
    """A constant of a column's (plain) type as SQL, or None if SQL cannot spell it safely."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quote_sql_text(value)
        case float():
            # An index keeps the two zeros apart, and SQL has no word for the infinite.
            return repr(value) if math.isfinite(value) and value != 0 else None
        case int() if pa.types.is_date32(kind):
            return f"arrow_cast({value}, 'Date32')"
        case int() if pa.types.is_date64(kind):
            return f"arrow_cast({value}, 'Date64')"
        case int():
            # The smallest is read as the negation of a number that is too large.
            return str(value) if _INTEGER_MIN < value <= _INTEGER_MAX else None
        case _:
            return None
