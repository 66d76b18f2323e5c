"""Makes the conditions of a mutation as simple as those of a read."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from omnigraph.query.rewrites.fold_constants import fold_conditions
from omnigraph.query.rewrites.split_conjunctions import split_conditions
from omnigraph.query.typed_tree import (
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    Mutation,
    PatternWrite,
    RowsWrite,
    Statement,
    UpdateEdges,
    UpdateNodes,
)


def simplify_statements(mutation: Mutation) -> Mutation:
    """Fold and split the conditions that select what is updated or deleted."""
    return replace(mutation, statements=tuple(map(_simplify, mutation.statements)))


def _simplify(statement: Statement) -> Statement:
    match statement:
        case UpdateNodes() | UpdateEdges() | DeleteNodes() | DeleteEdges():
            conditions = tuple(split_conditions(fold_conditions(statement.conditions)))
            unchanged = conditions == statement.conditions
            return statement if unchanged else replace(statement, conditions=conditions)
        case InsertNode() | InsertEdge() | PatternWrite() | RowsWrite():
            return statement
        case _:
            assert_never(statement)
