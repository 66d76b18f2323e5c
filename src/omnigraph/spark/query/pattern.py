"""The operators of a pattern as joins of data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.execution.budget import Budget
from omnigraph.execution.expressions import evaluate_constant, is_constant
from omnigraph.execution.pushdown import SYSTEM_COLUMNS
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.typed import Expr, SystemName
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.spark.query.blocks import filter_by_block
from omnigraph.spark.query.conditions import split_conditions, split_edge_conditions
from omnigraph.spark.query.equalities import JoinKeyStep, find_equalities
from omnigraph.spark.query.frames import Frame, FrameBuilder
from omnigraph.spark.query.layout import Field, Variable
from omnigraph.spark.query.tables import ScanOutput, TableScan
from omnigraph.spark.query.traversals import expand_frame

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
            case _:
                raise AssertionError(f"{type(operator).__name__} is no part of a pattern")

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
