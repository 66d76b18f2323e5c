"""Rows to the integers that they are grouped and sorted by.

What has a number already is compared by it; all other values are coded where they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch, find_bound_rows
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.sorted_arrays import pack_pairs
from omnigraph.execution.sources.graph_source import DenseIds, Entities
from omnigraph.execution.sources.topology.topology_columns import (
    DenseColumn,
    NumberColumn,
    TextColumn,
)
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.query import typed_tree
from omnigraph.query.tree_walk import variables_of
from omnigraph.query.typed_tree import Expr, SystemName
from omnigraph.rows.comparison import Values
from omnigraph.rows.evaluator import evaluate
from omnigraph.rows.group_aggregates import encode_group_keys
from omnigraph.rows.row_order import Codes, RowIndices, compute_value_codes
from omnigraph.schema.type_sets import is_type_set

# Integers in so small a range are their own codes.
_RANGE_MAX: Final = 2**20


@dataclass(frozen=True, slots=True)
class RowKey:
    """An expression to sort rows by."""

    value: Expr
    batch: Batch
    context: ExecutionContext
    is_descending: bool = False

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        """Codes in the order of the values; those of ids are their ranks."""
        batch = (
            self.batch if places is None else _select_columns(self.value, self.batch).take(places)
        )
        match self.value:
            case _ if _is_lacking(self.value, batch, self.context):
                return compute_value_codes(evaluate_rows(self.value, batch, self.context))
            case typed_tree.SystemValue(variable, SystemName.TYPE) if variable in batch.edges:
                bound = batch.edges[variable]
                return [_rank_names(bound.types).take(bound.type_indices)]
            case _ if (known := _resolve_entities(self.value, batch, self.context)) is not None:
                entities, numbers = known
                return [entities.rank_ids(numbers)]
            case _ if (texts := _find_text_codes(self.value, batch, self.context)) is not None:
                column, codes = texts
                return [column.ranks_of(codes)]
            case _:
                return compute_value_codes(evaluate_rows(self.value, batch, self.context))


def compute_key_codes(key: Expr, batch: Batch, context: ExecutionContext) -> Codes:
    """Integers from zero that are equal exactly for equal keys."""
    match key:
        case typed_tree.NodeValue(variable) | typed_tree.SystemValue(variable, SystemName.ID) if (
            variable in batch.nodes and not _is_id_of_several(key, context)
        ):
            # The number of a node that a row lacks is -1.
            numbers = batch.nodes[variable]
            return numbers + 1 if variable in context.nullable else numbers
        case typed_tree.EdgeValue(variable):
            bound = batch.edges[variable]
            found = pack_pairs(bound.type_indices.astype(np.int64), bound.dense_ids + 1)
            return np.unique(found, return_inverse=True)[1]
        case _ if _is_lacking(key, batch, context):
            return encode_group_keys(evaluate_rows(key, batch, context))
        case typed_tree.SystemValue(variable, SystemName.TYPE) if variable in batch.edges:
            return batch.edges[variable].type_indices
        case _ if (known := _resolve_entities(key, batch, context)) is not None:
            return known[1]
        case _ if (texts := _find_text_codes(key, batch, context)) is not None:
            return texts[1] + 1
        case _ if (codes := _find_integer_codes(key, batch, context)) is not None:
            return codes
        case _:
            return encode_group_keys(evaluate_rows(key, batch, context))


def _is_lacking(expr: Expr, batch: Batch, context: ExecutionContext) -> bool:
    """Whether an expression reads a variable that some of the rows lack."""
    names = variables_of(expr) & context.nullable
    return bool(names) and not all(find_bound_rows(batch, name).all() for name in names)


def _resolve_entities(
    expr: Expr, batch: Batch, context: ExecutionContext
) -> tuple[Entities, DenseIds] | None:
    """The entities that an expression gives the ids of, if they are of one type."""
    source = context.source
    match expr:
        case typed_tree.NodeValue(variable):
            name = SystemName.ID
        case typed_tree.SystemValue(variable, name):
            pass
        case _:
            return None
    if variable in batch.nodes:
        if name is SystemName.TYPE or _is_id_of_several(expr, context):
            return None
        return source.get_nodes(context.nodes_of[variable]), batch.nodes[variable]
    bound = batch.edges[variable]
    if len(bound.types) != 1:
        return None
    edges, type_ = source.get_edges(bound.types[0]), context.view.catalog.edges[bound.types[0]]
    match name:
        case SystemName.ID:
            return edges, bound.dense_ids
        case SystemName.SRC:
            return source.get_nodes(type_.source), edges.fetch_sources(bound.dense_ids)
        case SystemName.DST:
            return source.get_nodes(type_.target), edges.fetch_targets(bound.dense_ids)
        case SystemName.TYPE:
            return None


def _is_id_of_several(expr: Expr, context: ExecutionContext) -> bool:
    """Whether an expression is an id that nodes of several types may have."""
    return isinstance(expr, typed_tree.SystemValue) and is_type_set(
        context.nodes_of.get(expr.variable, "")
    )


def _find_text_codes(
    expr: Expr, batch: Batch, context: ExecutionContext
) -> tuple[TextColumn, Codes] | None:
    """The codes of texts, -1 for null, if the source keeps the texts of all entities so."""
    column, numbers = _find_dense_column(expr, batch, context) or (None, None)
    return (column, column.get_codes(numbers)) if isinstance(column, TextColumn) else None


def _find_integer_codes(expr: Expr, batch: Batch, context: ExecutionContext) -> Codes | None:
    """The codes of integers in a small range, 0 for null, if the source keeps them so."""
    column, numbers = _find_dense_column(expr, batch, context) or (None, None)
    if not isinstance(column, NumberColumn) or column.dtype.kind not in "iu":
        return None
    least, greatest = int(column.numbers.min(initial=0)), int(column.numbers.max(initial=0))
    if greatest - least >= _RANGE_MAX:
        return None
    codes: Codes = (column.get_numbers(numbers) - least).astype(np.int64) + 1
    nulls = column.get_nulls(numbers)
    return codes if nulls is None else codes * ~nulls


def _find_dense_column(
    expr: Expr, batch: Batch, context: ExecutionContext
) -> tuple[DenseColumn, DenseIds] | None:
    """The column of a property, if the source keeps it whole, and the numbers of the rows."""
    if not isinstance(expr, typed_tree.PropertyValue):
        return None
    known = _resolve_entities(typed_tree.SystemValue(expr.variable, SystemName.ID), batch, context)
    if known is None or not isinstance(known[0], DenseEntities):
        return None
    return known[0].get_column(expr.property), known[1]


def _select_columns(expr: Expr, batch: Batch) -> Batch:
    """The rows with nothing but what an expression reads."""
    names = variables_of(expr)
    return Batch(
        batch.num_rows,
        {name: numbers for name, numbers in batch.nodes.items() if name in names},
        {name: bound for name, bound in batch.edges.items() if name in names},
        scores=batch.scores if isinstance(expr, typed_tree.Score) else None,
        values={name: values for name, values in batch.values.items() if name in names},
    )


def _rank_names(names: tuple[str, ...]) -> RowIndices:
    """The position of each name among the sorted ones."""
    positions = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.array([positions[name] for name in names], np.int64)


def evaluate_rows(expr: Expr, batch: Batch, context: ExecutionContext) -> Values:
    """A value for each row; a node is its id, and a score is the one its rank gave the row."""
    if isinstance(expr, typed_tree.Score):
        assert batch.scores is not None, "a rank comes before all that reads its scores"
        return batch.scores
    found = evaluate(expr, context.rows_of(batch), context.params)
    if not isinstance(found, pa.Scalar):
        return found
    if batch.num_rows > 1:
        # A function may have made a constant that is long.
        context.budget.require_memory(batch.num_rows * pa.repeat(found, 1).nbytes)
    # Arrow repeats a vector once or more, but not zero times.
    return pa.repeat(found, max(batch.num_rows, 1)).slice(0, batch.num_rows)
