"""Checked statements of mutations, which `typed_tree` has among the other checked queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query.ast import WriteVerb

if TYPE_CHECKING:
    from omnigraph.query.typed_reads import Read
    from omnigraph.query.typed_tree import Expr, Parameter


@tree_node(frozen=True, slots=True)
class Assign:
    """A property and the expression it gets.

    That of an update or an upsert may read `ROW`, the entity before the statement, whose properties
    are null if there was none. All others are constant.
    """

    property: str
    value: Expr


@tree_node(frozen=True, slots=True)
class InsertNode:
    """Write a node; the verb says what happens to one that has its key."""

    type_name: str
    assignments: tuple[Assign, ...]
    verb: WriteVerb = WriteVerb.INSERT


@tree_node(frozen=True, slots=True)
class InsertEdge:
    """The same for an edge; the ends are physical ids."""

    type_name: str
    source: Expr
    target: Expr
    assignments: tuple[Assign, ...]
    verb: WriteVerb = WriteVerb.INSERT


@tree_node(frozen=True, slots=True)
class UpdateNodes:
    """Assign to every node that satisfies the conditions."""

    type_name: str
    assignments: tuple[Assign, ...]
    conditions: tuple[Expr, ...]


@tree_node(frozen=True, slots=True)
class UpdateEdges:
    """Assign to every edge that satisfies the conditions; its ends stay."""

    type_name: str
    assignments: tuple[Assign, ...]
    conditions: tuple[Expr, ...]


@tree_node(frozen=True, slots=True)
class DeleteNodes:
    """Delete every node that satisfies the conditions, and its edges."""

    type_name: str
    conditions: tuple[Expr, ...]


@tree_node(frozen=True, slots=True)
class DeleteEdges:
    """Delete every edge that satisfies the conditions."""

    type_name: str
    conditions: tuple[Expr, ...]


@tree_node(frozen=True, slots=True)
class UpdateBound:
    """Assign to every entity that a variable is bound to; `types` are those it may be of."""

    variable: str
    types: tuple[str, ...]
    is_edge: bool
    assignments: tuple[Assign, ...]


@tree_node(frozen=True, slots=True)
class DeleteBound:
    """Delete every entity that a variable is bound to."""

    variable: str
    types: tuple[str, ...]
    is_edge: bool


@tree_node(frozen=True, slots=True)
class WriteEach:
    """Write an entity for each row; an edge has the ids of its ends, a node None."""

    type_name: str
    ends: tuple[Expr, Expr] | None
    assignments: tuple[Assign, ...]
    verb: WriteVerb


Action = UpdateBound | DeleteBound | WriteEach


@tree_node(frozen=True, slots=True)
class PatternWrite:
    """Actions on the rows of a pattern, as it is before the first of them.

    `source` returns what the actions read: a column for each property and field of a variable,
    named as `column_name_of` says.
    """

    source: Read
    actions: tuple[Action, ...]


@tree_node(frozen=True, slots=True)
class RecordParameter:
    """A declared parameter with a list of records: the names and types of their fields."""

    name: str
    fields: tuple[Parameter, ...]


@tree_node(frozen=True, slots=True)
class UpdateEach:
    """Assign to the entity that each row names, if there is one.

    `identity` are the members of its key, or its `@id`, with what each row says they are.
    """

    type_name: str
    is_edge: bool
    identity: tuple[Assign, ...]
    assignments: tuple[Assign, ...]


@tree_node(frozen=True, slots=True)
class DeleteEach:
    """Delete the entity that each row names in the same way."""

    type_name: str
    is_edge: bool
    identity: tuple[Assign, ...]


RecordAction = WriteEach | UpdateEach | DeleteEach


@tree_node(frozen=True, slots=True)
class RowsWrite:
    """What is done for each record; `variable` has the fields of the record."""

    variable: str
    parameter: str
    actions: tuple[RecordAction, ...]


Statement = (
    InsertNode
    | InsertEdge
    | UpdateNodes
    | UpdateEdges
    | DeleteNodes
    | DeleteEdges
    | PatternWrite
    | RowsWrite
)


@tree_node(frozen=True, slots=True)
class Mutation:
    """A checked mutation: its statements take effect together."""

    name: str
    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    records: tuple[RecordParameter, ...] = ()
