"""The logical plan: for a read, operators over rows of bound variables.

A row binds node and edge variables. Operators form a tree through `input`; a correlated block is a
plan of its own whose leaf is `Outer`, evaluated once per outer row. Every plan of a query,
rewritten or not, gives the same rows. A mutation has no operators: its plan is the checked
mutation, whose conditions a rewrite folds and splits.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query.ast import AggregateFunction, CompareOp, PathSelector, SetOperator
from omnigraph.query.typed_reads import Column, EdgeStep, OrderKey, PathStep
from omnigraph.query.typed_table_calls import TableCall, TableVariable
from omnigraph.query.typed_tree import (
    AggregateValue,
    Expr,
    Mutation,
    Parameter,
    PathObject,
    PropertyValue,
    ResultType,
    RowCount,
    Score,
    TypeGuard,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One row that binds nothing: the leaf of a query."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The outer row: the leaf of a correlated block."""


@dataclass(frozen=True, slots=True)
class StageEntity:
    """A node or edge variable of staged rows, whose id is in a column of the plans before."""

    column: str
    variable: str
    types: tuple[str, ...]
    is_edge: bool = False
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class StageRows:
    """The rows of a plan, or of several that are combined from left to right: the leaf of a query.

    They bind `entities`. All other columns, of which `values` has the types, are properties of
    `variable`, which stands for such a row.
    """

    plans: tuple[ReadPlan, ...]
    operators: tuple[SetOperator, ...]
    variable: str
    entities: tuple[StageEntity, ...]
    values: tuple[PropertyValue, ...]


Leaf = Unit | Outer | StageRows
LEAVES = (Unit, Outer, StageRows)


@dataclass(frozen=True, slots=True)
class Scan:
    """Each input row with each node of a type that satisfies the conditions."""

    input: Operator
    variable: str
    type_name: str
    conditions: tuple[Expr, ...] = ()
    # The properties anything above reads, sorted, or None for all of them.
    properties: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expand:
    """Each input row with each match of a traversal from a bound node.

    When `target_is_bound`, keeps the rows (once per edge, with an edge variable) whose target is
    reached; otherwise binds the target to each reached node that satisfies the conditions. The
    meaning of steps, bounds and edge variable is that of `typed_reads.Traversal`. Nodes that
    `guards` hide are not there: neither to pass nor to count.
    """

    input: Operator
    source: str
    source_type: str
    steps: tuple[EdgeStep, ...]
    target: str
    target_type: str
    is_undirected: bool = False
    edge_variable: str | None = None
    is_selection: bool = False
    minimum: int = 1
    maximum: int = 1
    target_is_bound: bool = False
    conditions: tuple[Expr, ...] = ()
    properties: tuple[str, ...] | None = None
    edge_properties: tuple[str, ...] | None = None
    guards: tuple[TypeGuard, ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows whose condition is true."""

    input: Operator
    condition: Expr


@dataclass(frozen=True, slots=True)
class Exists:
    """Rows for which the block has a row (or has none, when negated)."""

    input: Operator
    block: Operator
    is_negated: bool


@dataclass(frozen=True, slots=True)
class CompareBlock:
    """Rows for which an aggregate over the block compares true with a value."""

    input: Operator
    block: Operator
    function: AggregateFunction
    argument: Expr | None
    op: CompareOp
    value: Expr


@dataclass(frozen=True, slots=True)
class Lateral:
    """Each input row with each row of the block, whose variables are bound from then on.

    With a limit or an offset, with those alone that are so far among the rows of this input row, in
    the order of the keys. When optional, an input row without any stays, the block's variables
    null: such a variable is a value like any other, but no traversal leads from or to it.
    """

    input: Operator
    block: Operator
    is_optional: bool
    keys: tuple[OrderKey, ...] = ()
    limit: RowCount | None = None
    offset: RowCount | None = None

    @property
    def is_cut(self) -> bool:
        """Whether it may leave rows of the block out."""
        return self.limit is not None or bool(self.offset)


@dataclass(frozen=True, slots=True)
class Unnest:
    """Each input row with each item of a list, in its order; a null list has none."""

    input: Operator
    variable: str
    position: str | None
    items: Expr


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Each input row with each row of a table, which reads no row.

    Of variables that are `joined`, which the input binds, both have the same node. The graph of the
    call has no node that `guards` hide.
    """

    input: Operator
    call: TableCall
    variables: tuple[TableVariable, ...]
    joined: tuple[str, ...] = ()
    guards: tuple[TypeGuard, ...] = ()


@dataclass(frozen=True, slots=True)
class Extend:
    """Each input row with a value."""

    input: Operator
    variable: str
    value: Expr


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """Each input row with an aggregate over the rows of a block, or whether it has one."""

    input: Operator
    block: Operator
    variable: str
    value: AggregateValue | None


@dataclass(frozen=True, slots=True)
class PathExpand:
    """Each input row with the paths from a bound node to another one.

    Unless `target_is_bound`, that is each node of its type that paths lead to. `variable` is the
    path, `length` the number of its edges, and `rank` its place among those of the same ends. The
    meaning of steps, bounds and selector is that of `typed_reads.PathMatch`. No path has a node
    that `guards` hide.
    """

    input: Operator
    variable: str
    length: str
    rank: str
    source: str
    source_type: str
    target: str
    target_type: str
    steps: tuple[PathStep, ...]
    type: PathObject
    selector: PathSelector = PathSelector.SHORTEST
    minimum: int = 1
    maximum: int = 1
    target_is_bound: bool = True
    guards: tuple[TypeGuard, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether there may be several between two nodes."""
        return self.selector is not PathSelector.SHORTEST


@dataclass(frozen=True, slots=True)
class Rank:
    """Scores rows and keeps those that have a score.

    `nearest` drops null vectors, `bm25` drops rows without a matching token, `rrf` keeps entities
    that an arm ranked, where a `nearest` arm ranks at most `window` entities.
    """

    input: Operator
    score: Score
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups by the key columns; without keys there is exactly one group.

    `columns` lists keys and aggregates in result order; an aggregate's value is an
    `AggregateValue`.
    """

    input: Operator
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Having:
    """The rows of an `Aggregate` whose conditions, about its columns, are true."""

    input: Operator
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """Rows in the order of the keys; null is the smallest value, NaN the greatest number."""

    input: Operator
    keys: tuple[OrderKey, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """So many rows, all if None, after the first ones; or after those of the pages before.

    `after` is the parameter with a cursor, which is a position among the rows of a `Sort`.
    """

    input: Operator
    count: int | None
    offset: int = 0
    after: str | None = None

    @property
    def end(self) -> int | None:
        """How many rows of the input are enough."""
        return None if self.count is None or self.after else self.offset + self.count


@dataclass(frozen=True, slots=True)
class ParameterLimit:
    """A `Limit` whose numbers are known when a request gives its parameters."""

    input: Operator
    count: RowCount | None
    offset: RowCount | None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The result columns of each row."""

    input: Operator
    columns: tuple[Column, ...]


Operator = (
    Unit
    | Outer
    | StageRows
    | Scan
    | Expand
    | Filter
    | Exists
    | CompareBlock
    | Lateral
    | Unnest
    | TableFunction
    | Extend
    | BlockColumn
    | PathExpand
    | Rank
    | Aggregate
    | Having
    | Sort
    | Limit
    | ParameterLimit
    | Project
)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column as the caller sees it."""

    name: str
    type: ResultType


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read, ready to run.

    `root` is a `Project`, or an `Aggregate` under `Having`, `Sort` and `Limit`, with a `Project`
    above if something is computed from the groups. `guards` say which nodes its reader sees; the
    rewrite `guard_types` applies them.
    """

    name: str
    parameters: tuple[Parameter, ...]
    root: Operator
    columns: tuple[ResultColumn, ...]
    is_ordered: bool
    # The limit, if only the parameters of a request say what it is.
    open_limit: ParameterLimit | None = None
    # The parameter with the cursor of the page before, and whether all rows are counted.
    after: str | None = None
    has_total: bool = False
    guards: tuple[TypeGuard, ...] = ()
    # Whether the nodes and edges of the columns are the result, each of them once.
    is_graph: bool = False

    @property
    def is_paged(self) -> bool:
        """Whether the answer has a cursor or a total beside its rows."""
        return self.after is not None or self.has_total


Plan = ReadPlan | Mutation
