"""The operators of a pattern as joins of data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from omnigraph.execution.query_budget import Budget
from omnigraph.query import logical_plan as plans
from omnigraph.query.ast import AggregateFunction, CompareOp
from omnigraph.query.logical_plan import CompareBlock, Exists
from omnigraph.query.tree_walk import bound_variables_of, chain_of, used_variables_of
from omnigraph.query.typed_tree import Compare, Expr, SystemName, SystemValue
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import (
    Values,
    comparable_type_of,
    compare_constant,
    flatten_chunks,
    to_comparable,
    to_numpy,
)
from omnigraph.rows.evaluator import Params, evaluate_column, evaluate_constant, is_constant
from omnigraph.rows.pushdown import SYSTEM_COLUMNS
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.property_types import PropertyType
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout, Variable
from omnigraph.spark.query.partial_aggregates import (
    FinalAggregation,
    GroupFilter,
    GroupKey,
    PartialAggregation,
    make_measure,
)
from omnigraph.spark.query.query_frames import Frame, FrameBuilder, FrameTask, apply_task
from omnigraph.spark.query.table_scans import (
    ScanOutput,
    TableScan,
    split_conditions,
    split_edge_conditions,
)
from omnigraph.spark.query.traversal_joins import expand_frame
from omnigraph.spark.spark_types import to_wire

# The column of a row that binds nothing.
_SINGLE_ROW = Field("u", pa.bool_())


@dataclass(frozen=True)
class PatternLowering:
    """Makes data frames of the operators of one query."""

    view: View
    builder: FrameBuilder
    budget: Budget
    # Conditions on edge variables, which the scan of the edges can test.
    edge_conditions: Mapping[str, Sequence[Expr]] = field(default_factory=dict)

    def lower_chain(
        self, operators: Sequence[plans.Operator], start: Frame | None, needed: frozenset[str]
    ) -> Frame:
        """The rows of operators, from the rows around a block or from none.

        `needed` are the columns that are read afterwards; there may be others.
        """
        operators, conditions = split_edge_conditions(operators)
        at = replace(self, edge_conditions=conditions)
        lives = [needed]
        for operator in reversed(operators):
            lives.append(lives[-1] | self.builder.layout.collect_needed_columns(operator))
        frame = start
        for place, live in enumerate(lives[-2::-1]):
            self.budget.check_interrupts()
            frame = at.lower_operator(operators[place], frame, live, later=operators[place + 1 :])
        return self.make_single_row() if frame is None else frame

    def make_single_row(self) -> Frame:
        """One row that binds nothing."""
        data = self.builder.spark.range(1).selectExpr("true as u")
        return Frame(data, (_SINGLE_ROW,), is_small=True)

    def lower_operator(
        self,
        operator: plans.Operator,
        frame: Frame | None,
        live: frozenset[str],
        *,
        later: Sequence[plans.Operator],
    ) -> Frame | None:
        """The rows of one operator; `live` are the columns that are read by later ones."""
        match operator:
            case plans.Scan():
                return self._lower_scan(operator, frame, live, later)
            case plans.Filter(condition=condition):
                if frame is not None:
                    return self.builder.filter_rows(frame, [condition]).select_columns(live)
                assert is_constant(condition), "without rows there is nothing to read"
                is_true = evaluate_constant(condition, self.builder.params) is True
                return None if is_true else self.builder.make_empty([_SINGLE_ROW])
            case plans.Expand():
                assert frame is not None, "a traversal starts at a bound node"
                return expand_frame(self, operator, frame, live)
            case plans.Exists() | plans.CompareBlock():
                return filter_by_block(self, operator, frame or self.make_single_row(), live)
            case plans.Lateral():
                assert frame is not None, "a lateral block is about a row"
                return join_block(self, operator, frame, live)
            case _:
                raise AssertionError(f"{type(operator).__name__} is not part of a pattern")

    def _lower_scan(
        self,
        scan: plans.Scan,
        frame: Frame | None,
        live: frozenset[str],
        later: Sequence[plans.Operator],
    ) -> Frame:
        own, others = split_conditions(scan.conditions, scan.variable)
        wanted = live.union(*map(self.builder.layout.collect_read_columns, others))
        found = self.scan_nodes(scan.variable, own, wanted, is_partner=frame is not None)
        if frame is not None:
            found = self._join_nodes(frame, found, scan.variable, later)
        return self.builder.filter_rows(found, others).select_columns(live)

    def _join_nodes(
        self, frame: Frame, nodes: Frame, name: str, later: Sequence[plans.Operator]
    ) -> Frame:
        """Each row with each node, or with those that a later filter lets stand beside it."""
        layout, params = self.builder.layout, self.builder.params
        known = list(find_equalities(layout, later, frozenset(frame.columns), name))
        if not known:
            return frame.cross_join(nodes)
        fields = [each.field for each in known]
        left = JoinKeyStep(layout, params, tuple((each.field, each.left) for each in known))
        right = JoinKeyStep(layout, params, tuple((each.field, each.right) for each in known))
        return frame.add_step(left, [*frame.fields, *fields]).join(
            nodes.add_step(right, [*nodes.fields, *fields]), [each.column for each in fields]
        )

    # ---- tables ----

    def scan_nodes(
        self,
        name: str,
        conditions: Sequence[Expr],
        wanted: frozenset[str],
        *,
        is_partner: bool = False,
    ) -> Frame:
        """The nodes that a variable may be bound to: their ids, and the columns that are wanted.

        A partner is joined with other rows.
        """
        variable = self.builder.layout.variables[name]
        key = TypeKey(TypeKind.NODE, variable.types[0])
        fields = [variable.system[SystemName.ID]]
        fields += [each for each in variable.properties.values() if each.column in wanted]
        output = ScanOutput(self._map_physical_columns(variable, key, fields))
        scans = [self.build_table_scan(key, conditions, [output])]
        make = self.builder.scan_join_side if is_partner else self.builder.scan_tables
        return make(scans, fields)

    def build_table_scan(
        self, key: TypeKey, conditions: Sequence[Expr], outputs: Sequence[ScanOutput]
    ) -> TableScan:
        """The rows of a type that satisfy conditions."""
        pin = self.view.snapshot.pins[str(key)]
        return TableScan(pin, self.view.get_shape(key), tuple(conditions), tuple(outputs))

    def _map_physical_columns(
        self, variable: Variable, key: TypeKey, fields: Iterable[Field]
    ) -> tuple[tuple[str, str], ...]:
        """Where the columns of a variable come from; not its type, which no table has."""
        columns = self.view.get_shape(key).columns
        properties = variable.properties
        sources = {properties[name].column: columns[name] for name in properties.keys() & columns}
        for name, each in variable.system.items():
            if name in SYSTEM_COLUMNS:
                sources[each.column] = SYSTEM_COLUMNS[name]
        return tuple(
            (each.column, sources[each.column]) for each in fields if each.column in sources
        )

    def map_edge_columns(
        self, variable: Variable, key: TypeKey, fields: Sequence[Field]
    ) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """Where the columns of an edge come from, and those that are the same for all edges."""
        kind = variable.system[SystemName.TYPE]
        constants = ((kind.column, key.name),) if kind in fields else ()
        return self._map_physical_columns(variable, key, fields), constants


def join_block(
    lowering: PatternLowering, op: plans.Lateral, frame: Frame, live: frozenset[str]
) -> Frame:
    """The rows with those of a block, which is matched once for equal outer variables."""
    layout = lowering.builder.layout
    frame, outer, identity = _select_outer(lowering, op, frame)
    on = [layout.field_of(each).column for each in identity]
    own = frozenset().union(*map(layout.columns_of, bound_variables_of(op)))
    needed = frozenset(on) | (own & live)
    inner = lowering.lower_chain(chain_of(op.block)[1:], outer, needed).select_columns(needed)
    how = "left" if op.is_optional else "inner"
    return frame.join(inner, on, how=how).select_columns(live)


def _select_outer(
    lowering: PatternLowering, op: Exists | CompareBlock | plans.Lateral, frame: Frame
) -> tuple[Frame, Frame, tuple[SystemValue, ...]]:
    """The rows around a block, each of what it reads of them once, and what identifies that."""
    layout = lowering.builder.layout
    identity = layout.identity_of(used_variables_of(op))
    if frame.scans is None:
        # Read twice: for the block, and for the rows around it.
        frame = lowering.builder.persist(frame)
    if not identity:
        return frame, lowering.make_single_row(), identity
    on = [layout.field_of(each).column for each in identity]
    once = frame.select_columns(layout.collect_needed_columns(op))
    outer = Frame(once.data.dropDuplicates(on), once.fields, is_small=once.is_small)
    return frame, outer, identity


def filter_by_block(
    lowering: PatternLowering, op: Exists | CompareBlock, frame: Frame, live: frozenset[str]
) -> Frame:
    """The rows for which a block passes."""
    layout, workshop = lowering.builder.layout, lowering.builder
    frame, outer, identity = _select_outer(lowering, op, frame)
    on = [layout.field_of(each).column for each in identity]
    match op:
        case Exists(is_negated=is_negated):
            inner = lowering.lower_chain(chain_of(op.block)[1:], outer, frozenset(on))
            if not identity:
                is_kept = inner.data.isEmpty() == is_negated
                found = frame if is_kept else workshop.make_empty(frame.fields)
            else:
                how = "left_anti" if is_negated else "left_semi"
                found = frame.join(inner.select_columns(frozenset(on)), on, how=how)
        case CompareBlock():
            found = _compare_block(lowering, op, frame, outer, identity)
    return found.select_columns(live)


def _compare_block(
    lowering: PatternLowering,
    op: CompareBlock,
    frame: Frame,
    outer: Frame,
    identity: tuple[SystemValue, ...],
) -> Frame:
    workshop = lowering.builder
    layout, params = workshop.layout, workshop.params
    value = evaluate_constant(op.value, params)
    if value is None:
        return workshop.make_empty(frame.fields)
    needed = frozenset().union(*map(layout.collect_read_columns, identity))
    if op.argument is not None:
        needed |= layout.collect_read_columns(op.argument)
    inner = lowering.lower_chain(chain_of(op.block)[1:], outer, needed)
    keys = tuple(
        GroupKey(each, replace(layout.field_of(each), column=f"g{number}"))
        for number, each in enumerate(identity)
    )
    partial = PartialAggregation(layout, params, keys, (make_measure(op.function, op.argument, 0),))
    combined = FinalAggregation(partial)
    # Of nothing, only a count is known.
    is_count = op.function is AggregateFunction.COUNT
    none_passes = (
        is_count and compare_constant(op.op, pa.array([0], pa.int64()), value)[0].as_py() is True
    )
    parts = inner.add_step(partial, partial.fields)
    if not keys:
        _, found = combined.combine_groups(parts.data.toArrow())
        passes = compare_constant(op.op, found[0], value)[0].as_py() is True
        return frame if passes else workshop.make_empty(frame.fields)
    groups = tuple(each.field for each in keys)
    names = [each.column for each in groups]
    task = FrameTask(
        groups, (GroupFilter(combined, op.op, value, is_passing=not none_passes),), is_whole=True
    )
    found_keys = Frame(apply_task(parts.data.repartition(*names), task), groups)
    on = [layout.field_of(each).column for each in identity]
    named = found_keys.rename_columns(dict(zip(names, on, strict=True)))
    return frame.join(named, on, how="left_anti" if none_passes else "left_semi")


@dataclass(frozen=True, slots=True)
class Equality:
    """Two expressions that must be equal, and the column of their values on both sides."""

    left: Expr
    right: Expr
    field: Field


@dataclass(frozen=True)
class JoinKeyStep:
    """Adds to rows what they are joined by."""

    layout: Layout
    params: Params
    keys: tuple[tuple[Field, Expr], ...]

    def run(self, table: pa.Table) -> pa.Table:
        """The rows with the keys."""
        rows = FrameRows(table, self.layout)
        for key, expr in self.keys:
            values = _compute_key_values(evaluate_column(expr, rows, self.params), key.kind)
            table = table.append_column(key.column, to_wire(values))
        return table


def find_equalities(
    layout: Layout, later: Sequence[plans.Operator], bound: frozenset[str], name: str
) -> Iterator[Equality]:
    """What later filters say is equal of bound rows, by their columns, and of a variable."""
    own = layout.columns_of(name)
    for number, operator in enumerate(later):
        if not isinstance(operator, plans.Filter):
            continue
        match operator.condition:
            case Compare(op=CompareOp.EQ, left=left, right=right):
                pass
            case _:
                continue
        if layout.collect_read_columns(left) <= own:
            left, right = right, left
        kind = _find_key_type(left, right)
        sides = layout.collect_read_columns(left), layout.collect_read_columns(right)
        if kind is not None and all(sides) and sides[0] <= bound and sides[1] <= own:
            yield Equality(left, right, Field(f"j{number}", kind))


def _find_key_type(left: Expr, right: Expr) -> pa.DataType | None:
    """The type that values of both sides are joined at."""
    types = [each.type for each in (left, right) if isinstance(each.type, PropertyType)]
    if len(types) < 2:
        return None
    kinds = {comparable_type_of(arrow_type_of(each)) for each in types}
    if any(pa.types.is_nested(each) or pa.types.is_large_binary(each) for each in kinds):
        return None
    if len(kinds) == 1:
        return kinds.pop()
    is_number = all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in kinds)
    # Equal numbers are equal when rounded too.
    return pa.float64() if is_number else None


def _compute_key_values(values: Values, kind: pa.DataType) -> pa.Array:
    """Values to join by: neither null nor NaN equals anything, and there is one zero."""
    known = flatten_chunks(to_comparable(values))
    if known.type != kind:
        known = known.cast(kind, safe=False)
    if not pa.types.is_floating(kind):
        return known
    numbers = to_numpy(known) + kind.to_pandas_dtype()(0)
    return pa.array(numbers, kind, mask=np.isnan(numbers) | to_numpy(known.is_null()))
