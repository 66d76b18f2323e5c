"""Query declarations."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast.query_expressions import (
    AggregateFunction,
    CompareOp,
    Expr,
    OrderKey,
    Variable,
)
from omnigraph.query.ast.query_paths import PathClause
from omnigraph.query.ast.table_calls import ForTable
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import PropertyType


@tree_node(frozen=True, slots=True)
class Projection:
    """An item of `return`."""

    value: Expr
    alias: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


class SetOperator(StrEnum):
    """How the rows of two reads become those of one."""

    UNION = "union"
    UNION_ALL = "union all"
    INTERSECT = "intersect"
    EXCEPT = "except"


@tree_node(frozen=True, slots=True)
class SetOperation:
    """Reads whose rows are combined from left to right; a single one stood in braces."""

    terms: tuple[ReadBody, ...]
    operators: tuple[SetOperator, ...] = ()
    operator_spans: tuple[Span, ...] = field(default=(), compare=False)


@tree_node(frozen=True, slots=True)
class ReadBody:
    """`match`, `return` or `with`, `having`, `order`, `limit`, `offset` or `after`, `total`.

    `input` is what it starts from: the stage before, which ends in `with`, or combined reads, of
    whose rows it has nothing but what follows `return`.
    """

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    having: tuple[Expr, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | Variable | None = None
    offset: int | Variable | None = None
    after: Variable | None = None
    has_total: bool = False
    is_distinct: bool = False
    # Whether the distinct nodes and edges are returned, instead of rows.
    is_graph: bool = False
    input: ReadBody | SetOperation | None = None
    limit_span: Span = field(default=NO_SPAN, compare=False)
    offset_span: Span = field(default=NO_SPAN, compare=False)
    after_span: Span = field(default=NO_SPAN, compare=False)
    total_span: Span = field(default=NO_SPAN, compare=False)
    match_span: Span = field(default=NO_SPAN, compare=False)
    return_span: Span = field(default=NO_SPAN, compare=False)
    having_span: Span = field(default=NO_SPAN, compare=False)
    order_span: Span = field(default=NO_SPAN, compare=False)
    # From brace to brace, if the read stood in braces.
    braces_span: Span = field(default=NO_SPAN, compare=False)

    @property
    def needs_braces(self) -> bool:
        """Whether it stands in braces among reads that are combined."""
        has_tail = bool(self.having or self.order) or self.is_paged
        has_tail = has_tail or (self.limit, self.offset) != (None, None)
        return has_tail or isinstance(self.input, SetOperation)

    @property
    def is_paged(self) -> bool:
        """Whether the answer has a cursor or a total beside its rows."""
        return self.after is not None or self.has_total


@tree_node(frozen=True, slots=True)
class Assignment:
    """`p: value` in `insert` or `set`."""

    property: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


class WriteVerb(StrEnum):
    """What happens to an entity that has the key of the written one."""

    # It is replaced whole; `insert` is the name that the reference language has for it.
    INSERT = "insert"
    REPLACE = "replace"
    # It must not exist.
    CREATE = "create"
    # Only what is assigned changes.
    UPSERT = "upsert"


@tree_node(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`, or another verb that may make an entity."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    verb: WriteVerb = WriteVerb.INSERT
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


Mutation = Insert | Update | Delete


@tree_node(frozen=True, slots=True)
class UpdateVariable:
    """`update $v set { … }` after a `match`."""

    variable: Variable
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class DeleteVariables:
    """`delete $v, $w` after a `match`."""

    variables: tuple[Variable, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Action = UpdateVariable | DeleteVariables | Insert


@tree_node(frozen=True, slots=True)
class PatternWrite:
    """`match { … }`, perhaps after stages, and what is done with its rows."""

    clauses: tuple[Clause, ...]
    actions: tuple[Action, ...]
    input: ReadBody | None = None
    match_span: Span = field(default=NO_SPAN, compare=False)
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class RowsWrite:
    """`for $row in $rows { … }`: statements that are done for each record of a parameter."""

    variable: Variable
    source: Variable
    statements: tuple[Mutation, ...]
    span: Span = field(default=NO_SPAN, compare=False)


MutationStatement = Mutation | PatternWrite | RowsWrite


@tree_node(frozen=True, slots=True)
class MutationBody:
    """One or more statements, done together."""

    mutations: tuple[MutationStatement, ...]


@tree_node(frozen=True, slots=True)
class RecordField:
    """`name: Type` of a record."""

    name: Name
    type: PropertyType
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class RecordListType:
    """`[{ name: Type }]`, or `[Person]` for records with the properties of a type."""

    fields: tuple[RecordField, ...]
    type_name: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)

    def __str__(self) -> str:
        if self.type_name is not None:
            return f"[{self.type_name.text}]"
        shown = ", ".join(f"{each.name.text}: {each.type}" for each in self.fields)
        return f"[{{ {shown} }}]"


@tree_node(frozen=True, slots=True)
class Parameter:
    """`$name: Type`, or `$name: Type = default`; `name` has no `$`."""

    name: Name
    type: PropertyType | RecordListType
    default: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Query:
    """A `query` declaration."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: ReadBody | MutationBody
    description: str | None = None
    instruction: str | None = None
    span: Span = field(default=NO_SPAN, compare=False)
    header_span: Span = field(default=NO_SPAN, compare=False)
    parameters_span: Span = field(default=NO_SPAN, compare=False)
    description_span: Span = field(default=NO_SPAN, compare=False)
    instruction_span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class PropertyMatch:
    """`p: value` inside a binding."""

    property: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Binding:
    """`$v: Type { p: value }`, or `$v: (A | B)`, whose types are `members`, or `$v: *`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()
    members: tuple[Name, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class EdgeName:
    """An edge in a traversal; `is_quoted` when written as a string."""

    text: str
    is_quoted: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NamedEdges:
    """One name, or an alternation of several."""

    names: tuple[EdgeName, ...]


@tree_node(frozen=True, slots=True)
class AnyEdge:
    """The wildcard `*`."""

    span: Span = field(default=NO_SPAN, compare=False)


# No shortest way has so many hops: it is the maximum of bounds that have none.
HOPS_MAX = 2**32 - 1


@tree_node(frozen=True, slots=True)
class HopBounds:
    """`{minimum,maximum}`, or `{minimum,}`."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Traversal:
    """`$source [$edge:] edges [{m,n}] $target`, or with `<edges>` in both directions."""

    source: Variable
    edge_variable: Variable | None
    edges: NamedEdges | AnyEdge
    is_undirected: bool
    bounds: HopBounds | None
    target: Variable
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Filter:
    """A Boolean expression that must be true."""

    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class NotBlock:
    """`not { … }`: no inner match may exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class ExistsBlock:
    """`exists { … }`: some inner match must exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class AggregateBlock:
    """`count { … } op value` or `sum(e) { … } op value`."""

    function: AggregateFunction
    argument: Expr | None
    clauses: tuple[Clause, ...]
    op: CompareOp
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class LateralBlock:
    """`optional { … }` or `each { … }`: its variables can be seen after it.

    The tail filters, orders and cuts the inner matches of each outer row. `block_span` ends before
    it.
    """

    clauses: tuple[Clause, ...]
    is_optional: bool
    order: tuple[OrderKey, ...] = ()
    limit: int | Variable | None = None
    offset: int | Variable | None = None
    having: tuple[Expr, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    block_span: Span = field(default=NO_SPAN, compare=False)

    @property
    def word(self) -> str:
        """The word that it starts with."""
        return "optional" if self.is_optional else "each"


@tree_node(frozen=True, slots=True)
class Let:
    """`let $x = value`: a name for a value."""

    variable: Variable
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class ForEach:
    """`for $x in items`, or `for $x, $i in items`: a row for each item, and its position."""

    variable: Variable
    position: Variable | None
    items: Expr
    span: Span = field(default=NO_SPAN, compare=False)


Clause = (
    Binding
    | Traversal
    | Filter
    | NotBlock
    | ExistsBlock
    | AggregateBlock
    | LateralBlock
    | Let
    | ForEach
    | ForTable
    | PathClause
)


@tree_node(frozen=True, slots=True)
class SetSetting:
    """`set name = value;`; a bare word is `is_word`."""

    name: Name
    value: int | str
    is_word: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class ResetSetting:
    """`reset name;`, or `reset all;` with no name."""

    name: Name | None
    span: Span = field(default=NO_SPAN, compare=False)


Setting = SetSetting | ResetSetting


@tree_node(frozen=True, slots=True)
class Show:
    """`show name;`, or `show all;` with no name."""

    name: Name | None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BranchCreate:
    """`branch create name [from parent]`."""

    name: Name
    parent: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BranchDelete:
    """`branch delete name`."""

    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BranchMerge:
    """`branch merge source [into target]`."""

    source: Name
    target: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class BranchList:
    """`branch list`."""

    span: Span = field(default=NO_SPAN, compare=False)


@tree_node(frozen=True, slots=True)
class Explain:
    """`explain query …`."""

    query: Query
    span: Span = field(default=NO_SPAN, compare=False)


BranchStatement = BranchCreate | BranchDelete | BranchMerge | BranchList
Statement = BranchStatement | Show | Explain


@tree_node(frozen=True, slots=True)
class File:
    """Settings lines, then either query declarations or one statement."""

    settings: tuple[Setting, ...]
    queries: tuple[Query, ...] = ()
    statement: Statement | None = None
