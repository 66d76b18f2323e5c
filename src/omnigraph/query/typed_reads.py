"""Checked reads: their patterns, their columns and their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast import AggregateFunction, CompareOp, PathSelector, SetOperator
from omnigraph.query.typed_table_calls import TableCall, TableVariable
from omnigraph.query.typed_tree import (
    STRING,
    AggregateValue,
    Expr,
    Mutation,
    Parameter,
    PathObject,
    PropertyValue,
    ResultType,
    RowCount,
    Score,
)

# What `return graph` gives for each node and edge; `data` is a JSON object.
GRAPH_COLUMNS: Final = {
    name: STRING.as_nullable(name in ("src", "dst"))
    for name in ("kind", "type", "id", "src", "dst", "data")
}

# ---- patterns ----


@tree_node(frozen=True, slots=True)
class EdgeStep:
    """One edge type of a traversal; reversed when the written source sits at the edge's target."""

    edge_type: str
    is_reversed: bool = False


@tree_node(frozen=True, slots=True)
class Binding:
    """A declared node variable and the conditions of its property matches."""

    variable: str
    type_name: str
    conditions: tuple[Expr, ...] = ()


@tree_node(frozen=True, slots=True)
class Traversal:
    """A step between two node variables.

    Without `edge_variable`, a pair of ends matches at most once, at its shortest distance over all
    `steps` together, if that lies within the bounds; the start itself lies at distance 0, and at 1
    over a loop if it is not wanted at 0. With one, each edge is its own match, and the bounds are
    1..1. An empty tuple of steps (a wildcard that fits nothing) matches nothing.
    """

    source: str
    source_type: str
    steps: tuple[EdgeStep, ...]
    target: str
    target_type: str
    is_undirected: bool = False
    edge_variable: str | None = None
    # Whether the query selected edges by alternation or wildcard; a work limit applies then.
    is_selection: bool = False
    minimum: int = 1
    maximum: int = 1


@tree_node(frozen=True, slots=True)
class Condition:
    """A filter."""

    value: Expr


@tree_node(frozen=True, slots=True)
class ExistsBlock:
    """At least one inner match (or none, when negated) per outer row."""

    pattern: Pattern
    is_negated: bool


@tree_node(frozen=True, slots=True)
class AggregateBlock:
    """An aggregate over the inner matches per outer row, compared with a constant.

    No argument counts matches. Every function but `count` is undefined, and so satisfies nothing,
    when no inner match has a non-null argument.
    """

    pattern: Pattern
    function: AggregateFunction
    argument: Expr | None
    op: CompareOp
    value: Expr


@tree_node(frozen=True, slots=True)
class LateralBlock:
    """Each outer row with its inner matches, or with those that its tail leaves.

    An optional block leaves an outer row without any as it is, its own variables null. `keys` order
    the matches of one outer row if there is a limit or an offset.
    """

    pattern: Pattern
    is_optional: bool
    keys: tuple[OrderKey, ...] = ()
    limit: RowCount | None = None
    offset: RowCount | None = None


@tree_node(frozen=True, slots=True)
class Let:
    """A variable with the value of an expression; null where an optional block has no match.

    Outside of such blocks the name of a value is replaced by the expression, unless that is long.
    """

    variable: str
    value: Expr


@tree_node(frozen=True, slots=True)
class ForEach:
    """Each row with each item of a list, and with its position from zero if that has a name."""

    variable: str
    position: str | None
    items: Expr


@tree_node(frozen=True, slots=True)
class ForTable:
    """Each row with each row of a table whose nodes are those that `joined` are bound to."""

    call: TableCall
    variables: tuple[TableVariable, ...]
    joined: tuple[str, ...] = ()

    @property
    def introduced(self) -> tuple[TableVariable, ...]:
        """The variables that it binds."""
        return tuple(each for each in self.variables if each.name not in self.joined)


@tree_node(frozen=True, slots=True)
class BlockColumn:
    """A variable with an aggregate over the inner matches, or whether there is one."""

    pattern: Pattern
    variable: str
    value: AggregateValue | None


@tree_node(frozen=True, slots=True)
class PathStep:
    """Edges of one type, walked in one direction from one node type to another.

    Where the other direction is walked too, `is_return` says that a loop is not met again.
    """

    edge_type: str
    source_type: str
    target_type: str
    is_reversed: bool = False
    is_return: bool = False


@tree_node(frozen=True, slots=True)
class PathMatch:
    """A variable with a shortest path between two nodes, with each of them, or with any path.

    Ties are decided by the edges on the way, by type and id. No path has a node twice, but that one
    from a node to itself may be a single loop, if it may not be without an edge.
    """

    variable: str
    source: str
    source_type: str
    target: str
    target_type: str
    steps: tuple[PathStep, ...]
    type: PathObject
    selector: PathSelector = PathSelector.SHORTEST
    minimum: int = 1
    maximum: int = 1

    @property
    def is_all(self) -> bool:
        """Whether there may be several between two nodes."""
        return self.selector is not PathSelector.SHORTEST


Clause = (
    Binding
    | Traversal
    | Condition
    | ExistsBlock
    | AggregateBlock
    | LateralBlock
    | Let
    | ForEach
    | ForTable
    | BlockColumn
    | PathMatch
)


@tree_node(frozen=True, slots=True)
class Pattern:
    """Clauses in source order; `nodes` and `edges` are the variables they introduce themselves.

    Those of a lateral block are listed in its own pattern. `nodes` maps each variable (anonymous
    ones included) to its node type in order of appearance; `edges` maps each edge variable to the
    edge types it may be of.
    """

    clauses: tuple[Clause, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[str, tuple[str, ...]], ...] = ()


# ---- queries ----


@tree_node(frozen=True, slots=True)
class Column:
    """A column of the result; `name` is its alias, or its default name if it has none.

    In an aggregated query a value that is computed over aggregates reads keys as `ColumnValue`s.
    """

    name: str
    value: Expr
    type: ResultType
    alias: str | None = None


@tree_node(frozen=True, slots=True)
class OrderKey:
    """A sort key; in an aggregated query its value is a `ColumnValue` that names an item."""

    value: Expr
    is_descending: bool = False


@tree_node(frozen=True, slots=True)
class Read:
    """A checked read: `rank` is the leading order key if it is a rank call, `order` the rest.

    In an aggregated query the conditions of `having` read items as `ColumnValue`s, and may have
    aggregates of their own; in any other they are conditions on the rows.
    """

    name: str
    parameters: tuple[Parameter, ...]
    pattern: Pattern
    columns: tuple[Column, ...]
    is_aggregated: bool = False
    having: tuple[Expr, ...] = ()
    rank: Score | None = None
    order: tuple[OrderKey, ...] = ()
    limit: RowCount | None = None
    offset: RowCount | None = None
    # The parameter with the cursor of the page before.
    after: str | None = None
    has_total: bool = False
    # Whether the nodes and edges of the columns are the result, each of them once.
    is_graph: bool = False
    # What the pattern extends; a single row that binds nothing if None.
    input: Stage | None = None


def iter_reads(read: Read) -> Iterator[Read]:
    """A read and those that its rows come from."""
    yield read
    if read.input is not None:
        for each in read.input.reads:
            yield from iter_reads(each)


@tree_node(frozen=True, slots=True)
class CarriedEntity:
    """A node or edge variable that rows have from a stage; the column of its name has its id.

    Where an edge may be of several types, the column `edge_type_column_of` has its type. Rows may
    lack an entity that `is_nullable`.
    """

    name: str
    types: tuple[str, ...]
    is_edge: bool = False
    is_nullable: bool = False


def edge_type_column_of(name: str) -> str:
    """The column of a stage that has the type of a carried edge."""
    return f"{name}.@type"


@tree_node(frozen=True, slots=True)
class Stage:
    """Rows to start from: those of a read that ends in `with`, or of reads that are combined.

    `variable` stands for such a row: its properties are the columns that are not entities.
    """

    reads: tuple[Read, ...]
    operators: tuple[SetOperator, ...]
    variable: str
    entities: tuple[CarriedEntity, ...]
    values: tuple[PropertyValue, ...]


CheckedQuery = Read | Mutation
