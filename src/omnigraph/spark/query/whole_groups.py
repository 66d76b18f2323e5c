"""Aggregates that need all rows of a group in one task: what of a row is sent there, and they."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.query.typed_tree import AggregateValue, NodeObject, ResultType
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.evaluator import Params, evaluate_column, evaluate_constant
from omnigraph.rows.group_aggregates import group_rows, make_single_group, with_one_zero
from omnigraph.rows.row_order import ValuesKey
from omnigraph.rows.whole_aggregates import (
    GroupedValues,
    aggregate_whole_groups,
    read_fraction,
)
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout
from omnigraph.spark.query.partial_aggregates import GroupKey
from omnigraph.spark.query.sort_encoding import encode_sort_values, sort_type_of
from omnigraph.spark.spark_types import from_wire, to_wire


def value_type_of(type_: ResultType) -> pa.DataType:
    """The type of values; a bare node is its id."""
    return pa.utf8() if isinstance(type_, NodeObject) else arrow_type_of(type_)


@dataclass(frozen=True)
class GroupArguments:
    """From rows to what groups are made of: keys, arguments, and what arguments are ordered by."""

    layout: Layout
    params: Params
    keys: tuple[GroupKey, ...]
    calls: tuple[AggregateValue, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of a row."""
        return (
            *(field for key in self.keys for field in (key.field, *(f for f, _ in key.carried))),
            *(field for number in range(len(self.calls)) for field in self.fields_of(number)),
        )

    def fields_of(self, number: int) -> tuple[Field, ...]:
        """The columns of an aggregate: its argument, and what orders the rows."""
        call = self.calls[number]
        return (
            Field(f"a{number}v", value_type_of(call.argument.type)),
            *(
                Field(f"a{number}k{place}", sort_type_of(value_type_of(key.type)))
                for place, key in enumerate(call.order)
            ),
        )

    def run(self, table: pa.Table) -> pa.Table:
        """The keys and arguments at some rows."""
        rows = FrameRows(table, self.layout)
        found: dict[str, pa.Array] = {}
        for key in self.keys:
            found[key.field.column] = to_wire(
                with_one_zero(evaluate_column(key.value, rows, self.params))
            )
            for field, column in key.carried:
                found[field.column] = flatten_chunks(table[column])
        for number, call in enumerate(self.calls):
            argument, *order = self.fields_of(number)
            found[argument.column] = to_wire(evaluate_column(call.argument, rows, self.params))
            for field, value in zip(order, call.order, strict=True):
                found[field.column] = encode_sort_values(evaluate_column(value, rows, self.params))
        return pa.table(found)


@dataclass(frozen=True)
class WholeAggregation:
    """From the rows of whole groups to groups with their aggregates."""

    arguments: GroupArguments

    def combine_groups(self, table: pa.Table) -> tuple[pa.Table, Mapping[int, pa.Array]]:
        """The first row of each group, for its keys, and the values of each aggregate."""
        keys = [from_wire(table[key.field.column], key.field.kind) for key in self.arguments.keys]
        groups = group_rows(keys, table.num_rows) if keys else make_single_group(table.num_rows)
        found: dict[int, pa.Array] = {}
        for number, call in enumerate(self.arguments.calls):
            argument, *order = self.arguments.fields_of(number)
            fraction = None
            if call.fraction is not None:
                fraction = read_fraction(evaluate_constant(call.fraction, self.arguments.params))
            sorted_by = tuple(
                ValuesKey(table[field.column], is_descending)
                for field, is_descending in zip(order, call.is_descending, strict=True)
            )
            values = from_wire(table[argument.column], argument.kind)
            rows = GroupedValues(values, groups, sorted_by, fraction)
            found[number] = aggregate_whole_groups(call, rows)
        firsts = table.take(pa.array(groups.first_rows)) if keys else table.slice(0, 0)
        return firsts, found
