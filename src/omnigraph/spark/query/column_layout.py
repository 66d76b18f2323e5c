"""Which columns of a data frame hold what the variables of a plan are bound to.

Columns are numbered, not named after variables: Spark takes names that differ in case for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import logical_plan as plans
from omnigraph.query.tree_walk import (
    BLOCKS,
    bound_variables_of,
    chain_of,
    expressions_of,
    iter_subexpressions,
    used_variables_of,
)
from omnigraph.query.typed_tree import (
    Expr,
    NodeValue,
    PropertyValue,
    SystemName,
    SystemValue,
    TextMatch,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.evaluator import Params, evaluate_column
from omnigraph.rows.result_types import iter_object_properties
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.spark_types import from_wire, spark_type_of, wire_type_of


@dataclass(frozen=True, slots=True)
class Field:
    """A column, and the type of the values that it carries."""

    column: str
    kind: pa.DataType

    @property
    def spark(self) -> str:
        """The column as Spark declares it."""
        return f"{self.column} {spark_type_of(wire_type_of(self.kind))}"


@dataclass(frozen=True, slots=True)
class Variable:
    """A bound variable: the types it may be of, and its columns."""

    name: str
    types: tuple[str, ...]
    is_edge: bool
    system: Mapping[SystemName, Field]
    properties: Mapping[str, Field]

    @property
    def id(self) -> str:
        """The column of the id."""
        return self.system[SystemName.ID].column

    @property
    def identity(self) -> tuple[SystemValue, ...]:
        """The values that identify one of its entities: ids are unique within a type only."""
        names = (SystemName.TYPE, SystemName.ID) if len(self.types) > 1 else (SystemName.ID,)
        return tuple(SystemValue(self.name, name) for name in names)

    @property
    def fields(self) -> Iterator[Field]:
        """All its columns."""
        yield from self.system.values()
        yield from self.properties.values()


@dataclass(frozen=True)
class Layout:
    """The variables of a plan and its blocks, no two of which have the same name."""

    variables: Mapping[str, Variable]
    catalog: Catalog

    def field_of(self, expr: PropertyValue | SystemValue | TextMatch | NodeValue) -> Field:
        """The column of a field of a variable."""
        variable = self.variables[expr.variable]
        match expr:
            case PropertyValue() | TextMatch():
                return variable.properties[expr.property]
            case SystemValue():
                return variable.system[expr.name]
            case NodeValue():
                return variable.system[SystemName.ID]

    def collect_read_columns(self, expr: Expr) -> frozenset[str]:
        """The columns that an expression reads."""
        return frozenset(
            self.field_of(part).column
            for part in iter_subexpressions(expr)
            if isinstance(part, PropertyValue | SystemValue | TextMatch | NodeValue)
        )

    def object_fields_of(self, node: NodeValue) -> dict[str, Field]:
        """What a bare node shows beside its id."""
        properties = self.variables[node.variable].properties
        return {
            each.name: properties[each.name]
            for each in iter_object_properties(node.type, self.catalog)
        }

    def identity_of(self, names: Iterable[str]) -> tuple[SystemValue, ...]:
        """The values that identify a binding of some variables."""
        return tuple(part for name in sorted(names) for part in self.variables[name].identity)

    def columns_of(self, name: str) -> frozenset[str]:
        """All columns of a variable."""
        return frozenset(each.column for each in self.variables[name].fields)

    def collect_needed_columns(self, operator: plans.Operator) -> frozenset[str]:
        """The columns that an operator reads of its input."""
        found = set().union(*map(self.collect_read_columns, expressions_of(operator)))
        match operator:
            case plans.Expand():
                found.add(self.variables[operator.source].id)
                if operator.target_is_bound:
                    found.add(self.variables[operator.target].id)
            case plans.Exists() | plans.CompareBlock() | plans.Lateral():
                found |= self._collect_block_columns(operator)
            case plans.Project() | plans.Aggregate():
                for column in operator.columns:
                    if isinstance(column.value, NodeValue):
                        shown = self.object_fields_of(column.value).values()
                        found |= {each.column for each in shown}
            case _:
                pass
        return frozenset(found.difference(*map(self.columns_of, bound_variables_of(operator))))

    def _collect_block_columns(
        self, operator: plans.Exists | plans.CompareBlock | plans.Lateral
    ) -> set[str]:
        chain = chain_of(operator.block)
        found = {
            self.field_of(each).column for each in self.identity_of(used_variables_of(operator))
        }
        found |= set().union(
            *map(self.collect_needed_columns, chain), *_iter_argument_columns(self, operator)
        )
        inner = frozenset().union(*map(bound_variables_of, chain))
        return found.difference(*map(self.columns_of, inner))


def _iter_argument_columns(
    layout: Layout, operator: plans.Exists | plans.CompareBlock | plans.Lateral
) -> Iterator[frozenset[str]]:
    if isinstance(operator, plans.CompareBlock) and operator.argument is not None:
        yield layout.collect_read_columns(operator.argument)


def build_layout(root: plans.Operator, catalog: Catalog) -> Layout:
    """The columns of everything that a plan and its blocks bind."""
    types: dict[str, tuple[tuple[str, ...], bool]] = {}
    for operator in _iter_operators(root):
        match operator:
            case plans.Scan(variable=variable, type_name=type_name):
                types[variable] = (type_name,), False
            case plans.Expand():
                types[operator.source] = (operator.source_type,), False
                types[operator.target] = (operator.target_type,), False
                if operator.edge_variable is not None:
                    members = dict.fromkeys(step.edge_type for step in operator.steps)
                    types[operator.edge_variable] = tuple(members), True
            case _:
                pass
    return Layout(
        {
            name: _build_variable(number, name, *found, catalog)
            for number, (name, found) in enumerate(types.items())
        },
        catalog,
    )


def _build_variable(
    number: int, name: str, types: tuple[str, ...], is_edge: bool, catalog: Catalog
) -> Variable:
    known = catalog.edges if is_edge else catalog.nodes
    kinds = {
        name: arrow_type_of(each.type)
        for type_name in types
        for name, each in known[type_name].properties.items()
    }
    system = list(SystemName) if is_edge else [SystemName.ID]
    return Variable(
        name,
        types,
        is_edge,
        {each: Field(f"v{number}{each}", pa.utf8()) for each in system},
        {
            name: Field(f"v{number}p{place}", kinds[name])
            for place, name in enumerate(sorted(kinds))
        },
    )


def _iter_operators(root: plans.Operator) -> Iterator[plans.Operator]:
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, BLOCKS):
            yield from _iter_operators(operator.block)


@dataclass(frozen=True)
class FrameRows:
    """Rows in memory whose columns are those of a layout."""

    rows: pa.Table
    layout: Layout

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        count: int = self.rows.num_rows
        return count

    def get_property(self, variable: str, name: str) -> pa.Array:
        """The values of a property."""
        found = self.layout.variables[variable].properties.get(name)
        # A selection that fits no edge has no rows, and no properties.
        return pa.nulls(0) if found is None else from_wire(self.rows[found.column], found.kind)

    def get_system_field(self, variable: str, name: SystemName) -> pa.Array:
        """The values of a system field."""
        field = self.layout.variables[variable].system[name]
        return from_wire(self.rows[field.column], field.kind)


def filter_satisfying(rows: FrameRows, conditions: Iterable[Expr], params: Params) -> pa.Table:
    """The rows that satisfy all conditions."""
    found = rows
    for condition in conditions:
        mask = pc.fill_null(evaluate_column(condition, found, params), False)
        found = FrameRows(found.rows.filter(mask), found.layout)
    return found.rows
