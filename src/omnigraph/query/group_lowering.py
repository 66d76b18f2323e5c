"""Groups of a checked read to operators: `Aggregate`, and what is computed from its columns.

An aggregate that is only a part of a returned value, or that only `having` reads, gets a column of
its own, which no text can name and no result has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from omnigraph.query.logical_plan import Aggregate, Having, Operator, Project, Sort
from omnigraph.query.tree_walk import iter_subexpressions, map_children
from omnigraph.query.typed_reads import Column, OrderKey, Read
from omnigraph.query.typed_tree import AggregateValue, BoundValue, ColumnValue, Expr, SystemValue

_HIDDEN = "#"
# What an expression over groups reads.
_OVER_GROUPS = (AggregateValue, ColumnValue)


@dataclass(slots=True)
class GroupLowering:
    """The columns of the groups of a read; `ties` is what orders equal rows of the pattern."""

    read: Read
    ties: Sequence[SystemValue | BoundValue]
    # The columns of the `Aggregate`, and by name what is computed from them.
    grouped: list[Column] = field(default_factory=list)
    computed: dict[str, Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        later: list[Column] = []
        for column in self.read.columns:
            if isinstance(column.value, AggregateValue):
                self.grouped.append(replace(column, value=self._add_ties(column.value)))
            elif any(isinstance(each, _OVER_GROUPS) for each in iter_subexpressions(column.value)):
                later.append(column)
            else:
                self.grouped.append(column)
        self.computed = {column.name: column.value for column in later}

    def lower_groups(self, matched: Operator) -> Operator:
        """The groups that satisfy `having`, in the order of the query."""
        conditions = tuple(map(self._resolve, self.read.having))
        keys = tuple(replace(key, value=self._resolve(key.value)) for key in self._list_keys())
        self.computed = {name: self._resolve(value) for name, value in self.computed.items()}
        root: Operator = Aggregate(matched, tuple(self.grouped))
        if conditions:
            root = Having(root, conditions)
        return Sort(root, keys) if keys else root

    def project_groups(self, groups: Operator) -> Operator:
        """The columns of the result, if groups have others."""
        if not self.computed and len(self.grouped) == len(self.read.columns):
            return groups
        columns = tuple(
            replace(
                column,
                value=self.computed.get(column.name, ColumnValue(column.name, column.type)),
            )
            for column in self.read.columns
        )
        return Project(groups, columns)

    def _list_keys(self) -> tuple[OrderKey, ...]:
        """The keys of `order`, and the columns that then order groups: all those of their keys."""
        read = self.read
        if not read.order and read.rank is None:
            return ()
        ordered = {key.value for key in read.order}
        own = [
            ColumnValue(column.name, column.type)
            for column in self.grouped
            if not isinstance(column.value, AggregateValue)
        ]
        return (*read.order, *(OrderKey(value) for value in own if value not in ordered))

    def _resolve(self, value: Expr) -> Expr:
        """An expression over columns that the groups have."""
        if isinstance(value, ColumnValue) and value.name in self.computed:
            return self._resolve(self.computed[value.name])
        if isinstance(value, AggregateValue):
            return self._find_column(self._add_ties(value))
        return map_children(value, self._resolve)

    def _find_column(self, value: AggregateValue) -> ColumnValue:
        for column in self.grouped:
            if column.value == value:
                return ColumnValue(column.name, column.type)
        name = f"{_HIDDEN}{len(self.grouped)}"
        self.grouped.append(Column(name, value, value.type))
        return ColumnValue(name, value.type)

    def _add_ties(self, call: AggregateValue) -> AggregateValue:
        if not call.is_ordered:
            return call
        ties = tuple(each for each in self.ties if each not in call.order)
        return replace(
            call,
            order=(*call.order, *ties),
            is_descending=(*call.is_descending, *(False for _ in ties)),
        )
