"""The syntax tree of a `.gq` file. Spans do not take part in equality."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.diagnostics.source import NOWHERE, Span
from omnigraph.schema.ast import Name
from omnigraph.schema.types import PropertyType


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


class AggregateFunction(StrEnum):
    """An aggregate."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


class TextFunction(StrEnum):
    """A text predicate."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


# ---- expressions ----


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    """An unsigned integer that fits signed 64 bits."""

    value: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    """A decimal number as written; it may be too large for a float."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A decoded string."""

    value: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    """`true` or `false`."""

    value: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateLiteral:
    """`date("…")`."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateTimeLiteral:
    """`datetime("…")`."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`; items are literals or parameters."""

    items: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a parameter or a bound variable; `name` has no `$`, and `_` is anonymous."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    """`$v.p`."""

    variable: Variable
    property: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SystemAccess:
    """`$v.@id`; the field name has no `@`."""

    variable: Variable
    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SystemField:
    """A bare `@id`, `@src` or `@dst` in a mutation's `where`; `name` has no `@`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Identifier:
    """A bare word: an alias in `order`, an own property in a mutation's `where`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TextPredicate:
    """`search(f, q)`, `match_text(f, q)` or `fuzzy(f, q[, edits])`."""

    function: TextFunction
    target: Expr
    query: Expr
    edits: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Nearest:
    """`nearest($v.p, query)`."""

    target: PropertyAccess
    query: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bm25:
    """`bm25(field, query)`."""

    target: Expr
    query: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rrf:
    """`rrf(first, second[, k])`."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`count(e)` and the like, in a projection or an order key."""

    function: AggregateFunction
    argument: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    op: CompareOp
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TextTest:
    """`left contains right` or `contains(left, right)`; the call form takes Strings only."""

    op: TextOp
    left: Expr
    right: Expr
    is_call: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """`item in list`."""

    item: Expr
    items: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`operand is null`, or `is not null` when negated."""

    operand: Expr
    is_negated: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Two or more operands, none of them an `And` unless it was parenthesised."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more operands, none of them an `Or` unless it was parenthesised."""

    operands: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`not operand`."""

    operand: Expr
    span: Span = field(default=NOWHERE, compare=False)


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
Expr = (
    Literal
    | Variable
    | PropertyAccess
    | SystemAccess
    | SystemField
    | Identifier
    | Now
    | TextPredicate
    | RankCall
    | AggregateCall
    | Comparison
    | TextTest
    | Membership
    | NullTest
    | And
    | Or
    | Not
)


# ---- match clauses ----


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`p: value` inside a binding."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$v: Type { p: value }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EdgeName:
    """An edge in a traversal; `is_quoted` when written as a string."""

    text: str
    is_quoted: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NamedEdges:
    """One name, or an alternation of several."""

    names: tuple[EdgeName, ...]


@dataclass(frozen=True, slots=True)
class AnyEdge:
    """The wildcard `*`."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class HopBounds:
    """`{minimum,maximum}`; a missing maximum is refused by the checker."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$source [$edge:] edges [{m,n}] $target`, or with `<edges>` in both directions."""

    source: Variable
    edge_variable: Variable | None
    edges: NamedEdges | AnyEdge
    is_undirected: bool
    bounds: HopBounds | None
    target: Variable
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """A Boolean expression that must be true."""

    condition: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NotBlock:
    """`not { … }`: no inner match may exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ExistsBlock:
    """`exists { … }`: some inner match must exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateBlock:
    """`count { … } op value` or `sum(e) { … } op value`."""

    function: AggregateFunction
    argument: Expr | None
    clauses: tuple[Clause, ...]
    op: CompareOp
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


Clause = Binding | Traversal | Filter | NotBlock | ExistsBlock | AggregateBlock


# ---- declarations ----


@dataclass(frozen=True, slots=True)
class Projection:
    """An item of `return`."""

    value: Expr
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


class Direction(StrEnum):
    """A written sort direction."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An item of `order`; no direction means ascending."""

    value: Expr
    direction: Direction | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ReadBody:
    """`match`, `return`, `order`, `limit`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    limit_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`p: value` in `insert` or `set`."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    condition: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    condition: Expr
    span: Span = field(default=NOWHERE, compare=False)


Mutation = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationBody:
    """One or more mutations, done together."""

    mutations: tuple[Mutation, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: Type`; `name` has no `$`."""

    name: Name
    type: PropertyType
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A `query` declaration."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: ReadBody | MutationBody
    description: str | None = None
    instruction: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


# ---- files ----


@dataclass(frozen=True, slots=True)
class SetSetting:
    """`set name = value;`; a bare word is `is_word`."""

    name: Name
    value: int | str
    is_word: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """`reset name;`, or `reset all;` with no name."""

    name: Name | None
    span: Span = field(default=NOWHERE, compare=False)


Setting = SetSetting | ResetSetting


@dataclass(frozen=True, slots=True)
class Show:
    """`show name;`, or `show all;` with no name."""

    name: Name | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BranchCreate:
    """`branch create name [from parent]`."""

    name: Name
    parent: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BranchDelete:
    """`branch delete name`."""

    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BranchMerge:
    """`branch merge source [into target]`."""

    source: Name
    target: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BranchList:
    """`branch list`."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Explain:
    """`explain query …`."""

    query: Query
    span: Span = field(default=NOWHERE, compare=False)


BranchStatement = BranchCreate | BranchDelete | BranchMerge | BranchList
Statement = BranchStatement | Show | Explain


@dataclass(frozen=True, slots=True)
class File:
    """Settings lines, then either query declarations or one statement."""

    settings: tuple[Setting, ...]
    queries: tuple[Query, ...] = ()
    statement: Statement | None = None
