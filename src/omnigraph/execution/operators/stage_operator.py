"""The rows of stages: what they carry on, and how those of several reads are combined.

Entities are carried as their numbers. Values are carried as a table, whose rows are numbered like
the nodes of a type: to all operators they are properties of one more node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch, BoundEdges, count_row_bytes
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows, evaluate_groups
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.sources.graph_source import DenseIds, Edges, Nodes, RowIndices, Source
from omnigraph.query.ast import SetOperator
from omnigraph.query.logical_plan import StageRows
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_reads import Column
from omnigraph.query.typed_tree import (
    AggregateValue,
    ColumnValue,
    Expr,
    NodeValue,
    PropertyValue,
    SystemValue,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import Values, flatten_chunks
from omnigraph.rows.evaluator import Params
from omnigraph.rows.group_aggregates import encode_group_keys, group_by_codes, with_one_zero
from omnigraph.rows.kernels.function_call import I64_MAX
from omnigraph.rows.row_order import Codes

# For a row: its code in a column, its group and its place.
_ROW_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """Rows that a stage ends with: entities and values by column."""

    num_rows: int
    nodes: Mapping[str, DenseIds]
    edges: Mapping[str, BoundEdges]
    values: Mapping[str, pa.Array]

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        columns = (*self.nodes.values(), *(each.dense_ids for each in self.edges.values()))
        own: int = sum(each.nbytes for each in (*columns, *self.values.values()))
        return own

    def take(self, places: RowIndices) -> CarriedRows:
        """Some rows, in the order of the places."""
        chosen = pa.array(places)
        return CarriedRows(
            len(places),
            {name: numbers.take(places) for name, numbers in self.nodes.items()},
            {name: bound.take(places) for name, bound in self.edges.items()},
            {name: values.take(chosen) for name, values in self.values.items()},
        )


def carry_rows(
    rows: Batch | GroupedRows,
    columns: Sequence[Column],
    stage: StageRows,
    context: ExecutionContext,
) -> CarriedRows:
    """What a stage keeps of the rows of a plan, which has these columns."""
    by_name = {column.name: column for column in columns}
    batch = rows.first_rows if isinstance(rows, GroupedRows) else rows
    nodes: dict[str, DenseIds] = {}
    edges: dict[str, BoundEdges] = {}
    for entity in stage.entities:
        source = by_name[entity.column].value
        assert isinstance(source, SystemValue | NodeValue), "an entity is carried by its number"
        if entity.is_edge:
            edges[entity.column] = batch.edges[source.variable]
        else:
            nodes[entity.column] = batch.nodes[source.variable]
    values: dict[str, pa.Array] = {}
    for value in stage.values:
        context.budget.check_interrupts()
        values[value.property] = _carry_values(by_name[value.property], value, rows, context)
    return CarriedRows(rows.num_rows, nodes, edges, values)


def _carry_values(
    column: Column, value: PropertyValue, rows: Batch | GroupedRows, context: ExecutionContext
) -> pa.Array:
    found = flatten_chunks(_evaluate_column(column, rows, context))
    found = _convert_values(found, arrow_type_of(value.type))
    context.budget.allocate(found.nbytes)
    return found


def _convert_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of the common type of combined reads; an integer that does not fit in I64 is null."""
    if values.type == kind:
        return values
    if pa.types.is_uint64(values.type) and kind == pa.int64():
        is_fit = pc.less_equal(values, pa.scalar(I64_MAX, values.type))
        values = pc.if_else(is_fit, values, pa.scalar(None, values.type))
    return values.cast(kind, safe=False)


def _evaluate_column(
    column: Column, rows: Batch | GroupedRows, context: ExecutionContext
) -> Values:
    if isinstance(rows, Batch):
        return evaluate_rows(column.value, rows, context)
    if isinstance(column.value, AggregateValue):
        return rows.aggregates[column.name]
    if any(isinstance(part, ColumnValue) for part in iter_subexpressions(column.value)):
        return evaluate_groups(column.value, rows, context)
    return with_one_zero(evaluate_rows(column.value, rows.first_rows, context))


# ---- combined rows ----


def combine_rows(
    parts: Sequence[CarriedRows], operators: Sequence[SetOperator], context: ExecutionContext
) -> CarriedRows:
    """The rows of reads, combined from left to right."""
    found = parts[0]
    for operator, part in zip(operators, parts[1:], strict=True):
        context.budget.check_interrupts()
        found = _combine_two(found, operator, part, context)
    return found


def _combine_two(
    left: CarriedRows, operator: SetOperator, right: CarriedRows, context: ExecutionContext
) -> CarriedRows:
    context.budget.require_memory(left.nbytes + right.nbytes)
    rows = _concatenate(left, right)
    # Rows that differ in nothing but the sign of a zero are equal, and have no order.
    rows = replace(rows, values={name: with_one_zero(v) for name, v in rows.values.items()})
    if operator is SetOperator.UNION_ALL:
        return rows
    columns = len(rows.nodes) + len(rows.values)
    with context.budget.reserve((columns + 1) * rows.num_rows * _ROW_BYTES):
        # The number of an entity that is not there is -1.
        codes: list[Codes] = [each.astype(np.int64) + 1 for each in rows.nodes.values()]
        codes += map(encode_group_keys, rows.values.values())
        groups = group_by_codes(codes, rows.num_rows)
        is_left, is_right = (
            np.bincount(of_row, minlength=groups.count) > 0
            for of_row in np.split(groups.of_row, [left.num_rows])
        )
        places = groups.first_rows[_select_groups(operator, is_left, is_right)]
        return rows.take(places)


def _select_groups(
    operator: SetOperator, is_left: npt.NDArray[np.bool_], is_right: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which of the distinct rows stay."""
    match operator:
        case SetOperator.UNION | SetOperator.UNION_ALL:
            return is_left | is_right
        case SetOperator.INTERSECT:
            return is_left & is_right
        case SetOperator.EXCEPT:
            return is_left & ~is_right
        case _:
            assert_never(operator)


def _concatenate(left: CarriedRows, right: CarriedRows) -> CarriedRows:
    assert not left.edges, "edges are not returned"
    return CarriedRows(
        left.num_rows + right.num_rows,
        {name: np.concatenate([each, right.nodes[name]]) for name, each in left.nodes.items()},
        {},
        {name: pa.concat_arrays([each, right.values[name]]) for name, each in left.values.items()},
    )


# ---- the rows of the next stage ----


def start_rows(
    rows: CarriedRows, stage: StageRows, context: ExecutionContext
) -> tuple[Batch, ExecutionContext]:
    """The rows as the next stage sees them, and where it reads their values."""
    nodes = {each.variable: rows.nodes[each.column] for each in stage.entities if not each.is_edge}
    edges = {each.variable: rows.edges[each.column] for each in stage.entities if each.is_edge}
    if stage.values:
        nodes[stage.variable] = np.arange(rows.num_rows, dtype=np.int32)
        source = StagedSource(context.source, stage.variable, ValueRows(rows.num_rows, rows.values))
        context = replace(context, source=source)
    batch = Batch(rows.num_rows, nodes, edges)
    context.budget.allocate(rows.num_rows * count_row_bytes(batch))
    return batch, context


@dataclass(frozen=True, slots=True)
class StagedSource:
    """A source with the values of the rows of a stage, which have a type of their own."""

    base: Source
    variable: str
    rows: Nodes

    def get_nodes(self, type_name: str) -> Nodes:
        """The nodes of a type, or the rows of the stage."""
        return self.rows if type_name == self.variable else self.base.get_nodes(type_name)

    def get_edges(self, type_name: str) -> Edges:
        """The edges of a type."""
        return self.base.get_edges(type_name)


@dataclass(frozen=True, slots=True)
class ValueRows:
    """The values of rows, as properties; such a row is not an entity, and has no id."""

    count: int
    values: Mapping[str, pa.Array]

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a column."""
        return self.values[name].take(pa.array(at))

    def list_all(self) -> DenseIds:
        """Every row."""
        return np.arange(self.count, dtype=np.int32)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Rows have no ids."""
        _refuse(at)

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Rows have no ids."""
        _refuse(at)

    def find(self, ids: pa.Array) -> DenseIds:
        """Rows have no ids."""
        _refuse(ids)

    def filter_nodes(self, conditions: Iterable[Expr], _params: Params) -> DenseIds:
        """Rows are not scanned."""
        _refuse(conditions)

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        """Rows are in no table."""
        _refuse(at)

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        """Rows are in no table."""
        _refuse(row_ids)


def _refuse(_asked: object) -> NoReturn:
    raise AssertionError("the row of a stage has nothing but values")
