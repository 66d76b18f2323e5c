"""Checked queries: every name resolved, every expression typed, nothing left to look up.

The checker turns a syntax tree into these; plans reuse the expressions as they are. Values are
plain Python: a Date is its epoch day, a DateTime its epoch millisecond, a list or vector a tuple,
and an F32 constant is already rounded to 32 bits.
"""

from __future__ import annotations

from enum import StrEnum

from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast import AggregateFunction, CompareOp, Metric, TextFunction
from omnigraph.query.typed_guards import GUARDED, GuardTest, TypeGuard
from omnigraph.query.typed_statements import (
    Action,
    Assign,
    DeleteBound,
    DeleteEach,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    Mutation,
    PatternWrite,
    RecordAction,
    RecordParameter,
    RowsWrite,
    Statement,
    UpdateBound,
    UpdateEach,
    UpdateEdges,
    UpdateNodes,
    WriteEach,
)
from omnigraph.schema.property_types import ListType, PropertyType, Scalar, make_scalar_type

# Statements of mutations, and guards, are in modules of their own, and found here too.
__all__ = [
    "GUARDED",
    "Action",
    "Assign",
    "DeleteBound",
    "DeleteEach",
    "DeleteEdges",
    "DeleteNodes",
    "GuardTest",
    "InsertEdge",
    "InsertNode",
    "Mutation",
    "PatternWrite",
    "RecordAction",
    "RecordParameter",
    "RowsWrite",
    "Statement",
    "TypeGuard",
    "UpdateBound",
    "UpdateEach",
    "UpdateEdges",
    "UpdateNodes",
    "WriteEach",
]

Value = None | bool | int | float | str | tuple["Value", ...]

BOOL = make_scalar_type(Scalar.BOOL)
STRING = make_scalar_type(Scalar.STRING)
DATETIME = make_scalar_type(Scalar.DATETIME)
F32 = make_scalar_type(Scalar.F32)
F64 = make_scalar_type(Scalar.F64)
I64 = make_scalar_type(Scalar.I64)

# Anonymous endpoints are variables whose names no text can spell.
ANONYMOUS_PREFIX = "_#"
# The rows of a stage, whose properties are the values that it carries, have such a variable.
STAGE_PREFIX = "#stage"
# The variable that stands for the row under test in a mutation's `where`.
ROW = "#row"
# The default column name and the reserved parameter of `now()`.
NOW_NAME = "__nanograph_now"


class SystemName(StrEnum):
    """A field every entity has; edges have all four, nodes only `id`."""

    ID = "id"
    SRC = "src"
    DST = "dst"
    TYPE = "type"


# ---- expressions ----


@tree_node(frozen=True, slots=True)
class Constant:
    """A literal, converted to the type it is used at."""

    value: Value
    type: PropertyType


# What `count(*)` counts: a value that no row lacks.
EVERY_ROW = Constant(True, BOOL)


@tree_node(frozen=True, slots=True)
class ParameterValue:
    """A declared parameter."""

    name: str
    type: PropertyType


# How many rows: a literal, or a parameter of the request.
RowCount = int | ParameterValue


@tree_node(frozen=True, slots=True)
class NowValue:
    """The instant of the request."""

    type: PropertyType = DATETIME


@tree_node(frozen=True, slots=True)
class PropertyValue:
    """A property of a bound node, a bound edge, or the row under test."""

    variable: str
    property: str
    type: PropertyType


@tree_node(frozen=True, slots=True)
class SystemValue:
    """A system field of a bound node, a bound edge, or the row under test."""

    variable: str
    name: SystemName
    type: PropertyType = STRING


@tree_node(frozen=True, slots=True)
class NodeObject:
    """The type of a bare node in `return`: an object of `@id` and its readable properties."""

    type_name: str
    is_nullable: bool = False

    def __str__(self) -> str:
        return f"{self.type_name}?" if self.is_nullable else self.type_name


@tree_node(frozen=True, slots=True)
class NodeValue:
    """A bare node variable; counted as a row, returned as an object, ordered by id."""

    variable: str
    type: NodeObject


class PathPart(StrEnum):
    """What of a path a value is."""

    WHOLE = "path"
    NODES = "nodes"
    EDGES = "edges"


@tree_node(frozen=True, slots=True)
class PathObject(NodeObject):
    """The type of a path, or of the list of its nodes or edges, with the types on the way."""

    node_types: tuple[str, ...] = ()
    edge_types: tuple[str, ...] = ()
    part: PathPart = PathPart.WHOLE

    def __str__(self) -> str:
        name = {PathPart.NODES: "[Node]", PathPart.EDGES: "[Edge]"}.get(self.part, "Path")
        return f"{name}?" if self.is_nullable else name


@tree_node(frozen=True, slots=True)
class PathValue:
    """A path, or its nodes or edges; it is returned, and not compared."""

    variable: str
    type: PathObject


@tree_node(frozen=True, slots=True)
class NodeList(NodeObject):
    """The type of a list of nodes of one type."""

    def __str__(self) -> str:
        return f"[{self.type_name}]"


@tree_node(frozen=True, slots=True)
class EdgeObject(NodeObject):
    """The type of a bare edge in `return`, with the types that it may be of."""

    edge_types: tuple[str, ...] = ()


@tree_node(frozen=True, slots=True)
class EdgeValue:
    """A bare edge variable: returned as an object, and not compared."""

    variable: str
    type: EdgeObject


@tree_node(frozen=True, slots=True)
class BoundValue:
    """A variable that a clause binds to a value."""

    variable: str
    type: PropertyType


@tree_node(frozen=True, slots=True)
class ListOf:
    """A list literal with parameters among its items.

    Its element type is one that all items widen to; each item keeps a type of its own, and is
    compared at that type.
    """

    items: tuple[Expr, ...]
    type: PropertyType


@tree_node(frozen=True, slots=True)
class FunctionValue:
    """A function of values, by the name of its signature; operators and `case` are functions too.

    The arguments of `case` are conditions and values in turn, and at last what else there is.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: PropertyType


@tree_node(frozen=True, slots=True)
class Compare:
    """A comparison by exact value; null if a side is null."""

    op: CompareOp
    left: Expr
    right: Expr
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class Member:
    """Whether `item` is in the list `items`; null if either is null."""

    item: Expr
    items: Expr
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class Substring:
    """Whether `text` contains `part`; null if either is null."""

    text: Expr
    part: Expr
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class Prefix:
    """Whether `text` starts with `prefix`; null if either is null."""

    text: Expr
    prefix: Expr
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class IsNull:
    """Whether the operand is null (or is not, when negated); never null itself."""

    operand: Expr
    is_negated: bool
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class AllOf:
    """Three-valued conjunction."""

    operands: tuple[Expr, ...]
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class AnyOf:
    """Three-valued disjunction."""

    operands: tuple[Expr, ...]
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class Negation:
    """Three-valued negation."""

    operand: Expr
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class TextMatch:
    """A text predicate on a node property; only ever a whole condition or an `AllOf` operand."""

    function: TextFunction
    variable: str
    property: str
    query: Expr
    edits: Expr | None = None
    type: PropertyType = BOOL


@tree_node(frozen=True, slots=True)
class NearestScore:
    """How far a vector is from another one, or from the embedding of a query text.

    By `l2` it is the square of the distance, by `cosine` 1 less the cosine, by `dot` the product
    with the other sign: the smaller, the nearer. Another vector may be one that a row has.
    """

    variable: str
    property: str
    query: Expr
    metric: Metric = Metric.L2
    type: PropertyType = F32


@tree_node(frozen=True, slots=True)
class Bm25Score:
    """BM25 of a query text, with the statistics of the whole field."""

    variable: str
    property: str
    query: Expr
    type: PropertyType = F32


@tree_node(frozen=True, slots=True)
class RrfScore:
    """Reciprocal rank fusion of arms that rank one variable; no `k` means the default."""

    arms: tuple[NearestScore | Bm25Score, ...]
    k: Expr | None = None
    type: PropertyType = F64


Score = NearestScore | Bm25Score | RrfScore


@tree_node(frozen=True, slots=True)
class ScoreValue:
    """The score of each row as a value that a clause binds; null for a row that has none."""

    score: NearestScore | Bm25Score
    type: PropertyType = F32.as_nullable()


@tree_node(frozen=True, slots=True)
class AggregateValue:
    """An aggregate over the rows of a group.

    `order` are the rows' sort keys for `collect`, which lists the first `limit` values, and for
    `min_by` and `max_by`, which take the value of the first row whose first key is not null;
    `is_descending` says for each key whether the greatest comes first. `fraction` is that of
    `percentile`.
    """

    function: AggregateFunction
    argument: Expr
    type: ResultType
    is_distinct: bool = False
    fraction: Expr | None = None
    order: tuple[Expr, ...] = ()
    is_descending: tuple[bool, ...] = ()
    limit: int | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the rows changes it."""
        return self.function in ORDERED_AGGREGATES


ORDERED_AGGREGATES = frozenset(
    {AggregateFunction.COLLECT, AggregateFunction.MIN_BY, AggregateFunction.MAX_BY}
)
# Those of the reference language: what they are of several parts of a group, they are of it all.
PLAIN_AGGREGATES = frozenset(
    {
        AggregateFunction.COUNT,
        AggregateFunction.SUM,
        AggregateFunction.AVG,
        AggregateFunction.MIN,
        AggregateFunction.MAX,
    }
)


@tree_node(frozen=True, slots=True)
class ColumnValue:
    """A column of the aggregated result, in what is computed from its rows."""

    name: str
    type: ResultType


ResultType = PropertyType | NodeObject
Expr = (
    Constant
    | ParameterValue
    | NowValue
    | PropertyValue
    | SystemValue
    | NodeValue
    | PathValue
    | EdgeValue
    | BoundValue
    | ListOf
    | FunctionValue
    | Compare
    | Member
    | Substring
    | Prefix
    | IsNull
    | AllOf
    | AnyOf
    | Negation
    | TextMatch
    | GuardTest
    | Score
    | ScoreValue
    | AggregateValue
    | ColumnValue
)


def is_never_null(expr: Expr) -> bool:
    """Whether an expression has a value on every row: then to count it is to count rows."""
    match expr:
        case NodeValue() | SystemValue():
            return not expr.type.is_nullable
        case Constant(value):
            return value is not None
        case _:
            return False


def element_type_of(items: Expr) -> PropertyType:
    """The type of the items of a list; only those of a property are never null."""
    assert isinstance(items.type, PropertyType)
    assert isinstance(items.type.value, ListType)
    is_stored = isinstance(items, PropertyValue)
    return make_scalar_type(items.type.value.element, is_nullable=not is_stored)


# ---- parameters and mutations ----


@tree_node(frozen=True, slots=True)
class Parameter:
    """A declared parameter; one with a default may be left out."""

    name: str
    type: PropertyType
    default: Constant | None = None


def value_column_of(variable: str) -> str:
    """The column of the source of a statement for a variable that is bound to values."""
    return f"${variable}"


def path_length_of(variable: str) -> str:
    """The variable for the number of edges of a path."""
    return f"{variable}#length"


def path_rank_of(variable: str) -> str:
    """The variable for the place of a path among those of its ends, by the edges on the way."""
    return f"{variable}#rank"


def column_name_of(variable: str, name: str | SystemName) -> str:
    """The column of the source of a statement for a property, or a field, of a variable."""
    return f"{variable}.@{name}" if isinstance(name, SystemName) else f"{variable}.{name}"
