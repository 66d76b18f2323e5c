"""Expressions, and the operators and functions in them."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.tree_nodes import tree_node

if TYPE_CHECKING:
    from omnigraph.query.ast.query_declarations import Clause
from omnigraph.schema.ast import Name


class CompareOp(StrEnum):
    """A comparison operator."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class TextOp(StrEnum):
    """A word operator on text (or, for `contains`, on a list)."""

    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


class ArithmeticOp(StrEnum):
    """An operator on numbers, and on what can be added or subtracted like them."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"


class AggregateFunction(StrEnum):
    """An aggregate."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COUNT_IF = "count_if"
    TOTAL = "total"
    MEDIAN = "median"
    PERCENTILE = "percentile"
    VARIANCE = "variance"
    STDDEV = "stddev"
    EVERY = "every"
    SOME = "some"
    MODE = "mode"
    MIN_BY = "min_by"
    MAX_BY = "max_by"
    COLLECT = "collect"


class Direction(StrEnum):
    """A written sort direction."""

    ASC = "asc"
    DESC = "desc"


class TextFunction(StrEnum):
    """A text predicate."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"
    ALL_WORDS = "all_words"
    PHRASE = "phrase"
    PREFIX = "prefix"


class Metric(StrEnum):
    """How the distance of two vectors is measured."""

    L2 = "l2"
    COSINE = "cosine"
    DOT = "dot"


@tree_node(frozen=True, slots=True)
class IntegerLiteral:
    """An unsigned integer that fits 64 bits; in strict mode with a sign."""

    value: int
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class FloatLiteral:
    """A decimal number as written; it may be too large for a float."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class StringLiteral:
    """A decoded string."""

    value: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BooleanLiteral:
    """`true` or `false`."""

    value: bool
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class DateLiteral:
    """`date("…")`."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class DateTimeLiteral:
    """`datetime("…")`."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`; items are literals or parameters."""

    items: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Variable:
    """`$name`: a parameter or a bound variable; `name` has no `$`, and `_` is anonymous."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class PropertyAccess:
    """`$v.p`, or `$v.p?`, which is null where the type of a node lacks it."""

    variable: Variable
    property: Name
    is_optional: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class SystemAccess:
    """`$v.@id`; the field name has no `@`."""

    variable: Variable
    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class SystemField:
    """A bare `@id`, `@src` or `@dst` in a mutation's `where`; `name` has no `@`."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Identifier:
    """A bare word: an alias in `order`, an own property in a mutation's `where`."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Now:
    """`now()`."""

    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class TextPredicate:
    """`search(f, q)` and the like, or `fuzzy(f, q[, edits])`."""

    function: TextFunction
    target: Expr
    query: Expr
    edits: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Nearest:
    """`nearest($v.p, query)`; a system field has no vector, which the checker says."""

    target: PropertyAccess | SystemAccess
    query: Expr
    options: tuple[NamedArgument, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Bm25:
    """`bm25(field, query)`."""

    target: Expr
    query: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Rrf:
    """`rrf(first, second, …[, k])`."""

    arms: tuple[Nearest | Bm25, ...]
    k: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class OrderKey:
    """An item of `order`; no direction means ascending."""

    value: Expr
    direction: Direction | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class AggregateCall:
    """`count(e)` and the like; `second` is what `percentile` and `min_by` take besides."""

    function: AggregateFunction
    argument: Expr
    second: Expr | None = None
    is_distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NullLiteral:
    """`null` as an argument; it has every type."""

    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class AllRows:
    """The `*` of `count(*)`."""

    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NamedArgument:
    """`name: value` after the other arguments of a call."""

    name: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class FunctionCall:
    """`name(a, b, option: c)`: a function of values."""

    name: str
    arguments: tuple[Expr, ...]
    options: tuple[NamedArgument, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Case:
    """`case { condition: value, … else: value }`: the value of the first condition that is true."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Minus:
    """`-operand`."""

    operand: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Arithmetic:
    """`left op right`."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    op: CompareOp
    left: Expr
    right: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class TextTest:
    """`left contains right` or `contains(left, right)`; the call form takes Strings only."""

    op: TextOp
    left: Expr
    right: Expr
    is_call: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Membership:
    """`item in list`."""

    item: Expr
    items: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NullTest:
    """`operand is null`, or `is not null` when negated."""

    operand: Expr
    is_negated: bool
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class TypeTest:
    """`$v is Type`, or `is (A | B)`; `is not` when negated."""

    variable: Variable
    types: tuple[Name, ...]
    is_negated: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class And:
    """Two or more operands, none of them an `And` unless it was parenthesised."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Or:
    """Two or more operands, none of them an `Or` unless it was parenthesised."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Not:
    """`not operand`."""

    operand: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BlockValue:
    """`exists { … }`, `count { … }`, `sum(e) { … }`: a value of the matches of a block.

    No function means `exists`; without a call, matches are counted.
    """

    function: AggregateFunction | None
    call: AggregateCall | None
    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Literal = (
    IntegerLiteral
    | FloatLiteral
    | StringLiteral
    | BooleanLiteral
    | DateLiteral
    | DateTimeLiteral
    | ListLiteral
)
RankCall = Nearest | Bm25 | Rrf
Computation = FunctionCall | Case | Minus | Arithmetic
Expr = (
    Literal
    | NullLiteral
    | AllRows
    | Computation
    | Variable
    | PropertyAccess
    | SystemAccess
    | SystemField
    | Identifier
    | Now
    | TextPredicate
    | RankCall
    | AggregateCall
    | BlockValue
    | Comparison
    | TextTest
    | Membership
    | NullTest
    | TypeTest
    | And
    | Or
    | Not
)
