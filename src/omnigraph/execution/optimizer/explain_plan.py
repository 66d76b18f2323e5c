"""How a plan runs, or ran: its operators with their access paths, rows and times.

Operators are listed from the result down. Rows are estimated from statistics, and measured if the
plan is run. What a run does beside the operators of the plan is listed too: `Weigh` finds what
hangs from a variable without enumerating it, and `Follow` gets a node that another one determines.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, Final

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.enumerate_operator import EnumerationPlan, factor_key_of
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.operators.profiler import Profiler
from omnigraph.execution.operators.stage_operator import StagedSource
from omnigraph.execution.optimizer.factor_trees import FactorBranch, FactorTree, PartialAggregate
from omnigraph.execution.optimizer.join_order import JoinOrder
from omnigraph.execution.optimizer.pattern_graph import Variable
from omnigraph.execution.optimizer.physical_plan import PhysicalPlan
from omnigraph.execution.search import FieldRef, field_cache_of
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.execution.sources.type_set_source import TypeSetSource
from omnigraph.html_views import render_table, wrap_view
from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import (
    Expand,
    Operator,
    Outer,
    Scan,
    StageRows,
    TableFunction,
    Unit,
)
from omnigraph.query.query_explain import format_operator
from omnigraph.query.tree_walk import chain_of, iter_subexpressions, link_chain
from omnigraph.query.typed_tree import Compare, Expr, PropertyValue, SystemValue, TextMatch
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.evaluator import is_constant
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.rows.pushdown import column_of, iter_conjuncts
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.property_types import Scalar
from omnigraph.schema.type_sets import is_type_set
from omnigraph.versioning.effects import ID_COLUMN


@dataclass(frozen=True, slots=True)
class AccessPath:
    """A way, and the index it uses, if it uses one."""

    name: str = ""
    index: str = ""


@dataclass(frozen=True, slots=True)
class AccessPaths:
    """The ways of one read."""

    context: ExecutionContext

    @property
    def is_whole(self) -> bool:
        """Whether whole types are in memory."""
        source = self.context.source
        while isinstance(source, StagedSource | TypeSetSource):
            source = source.base
        return isinstance(source, TopologySource)

    def find_operator_path(self, operator: Operator) -> AccessPath:
        """The way of an operator; those that read no type have none."""
        match operator:
            case Scan():
                return self.find_node_path(operator.type_name, operator.conditions)
            case Expand():
                return self._find_edge_path(operator)
            case TableFunction():
                return _TOPOLOGY if self.is_whole else AccessPath("scan")
            case _:
                return AccessPath()

    def find_node_path(self, type_name: str, conditions: Iterable[Expr]) -> AccessPath:
        """The way to the nodes of a type that satisfy conditions."""
        if is_type_set(type_name):
            return AccessPath("topology" if self.is_whole else "scan")
        key, known = TypeKey(TypeKind.NODE, type_name), list(iter_conjuncts(conditions))
        shape = self.context.view.get_shape(key)
        ids = find_candidate_ids(known, shape, self.context.params)
        words = self._format_indexed_texts(type_name, known)
        if self.is_whole:
            texts = [f"{type_name}.{name}" for name in _collect_equal_texts(known)]
            if ids is not None:
                return AccessPath("lookup", f"{type_name}.@id")
            if texts:
                return AccessPath("postings", texts[0])
            return AccessPath("words", words) if words else AccessPath("topology")
        if ids is not None:
            return AccessPath("lookup", self._find_index_name(key, ID_COLUMN))
        if words:
            return AccessPath("words", words)
        read = {
            column_of(part, shape)
            for condition in known
            for part in iter_subexpressions(condition)
            if isinstance(part, PropertyValue | SystemValue)
        }
        names = (
            self._find_index_name(key, column)
            for column in sorted(read - {None}, key=str)
            if column
        )
        return AccessPath("scan", ", ".join(name for name in names if name))

    def _format_indexed_texts(self, type_name: str, conditions: Iterable[Expr]) -> str:
        """The properties whose words are looked up; empty without any."""
        view = self.context.view
        names = dict.fromkeys(
            each.property
            for each in conditions
            if isinstance(each, TextMatch)
            and field_cache_of(view).can_keep_texts(FieldRef(view, type_name, each.property))
        )
        return ", ".join(f"{type_name}.{name}" for name in names)

    def _find_edge_path(self, expand: Expand) -> AccessPath:
        names = []
        for step in expand.steps:
            columns = [TARGET_COLUMN if step.is_reversed else SOURCE_COLUMN]
            if expand.is_undirected:
                columns = [SOURCE_COLUMN, TARGET_COLUMN]
            if self.is_whole:
                ways = {SOURCE_COLUMN: "out", TARGET_COLUMN: "in"}
                names += [f"{step.edge_type} {ways[column]}" for column in columns]
            else:
                key = TypeKey(TypeKind.EDGE, step.edge_type)
                names += [self._find_index_name(key, column) for column in columns]
        found = ", ".join(dict.fromkeys(name for name in names if name))
        return AccessPath("topology" if self.is_whole else "lookup", found)

    def _find_index_name(self, key: TypeKey, column: str) -> str:
        """The name of the index that serves comparisons of a column; empty without one."""
        serving = self.context.view.open_table(key).indexes
        return next((index.name for index in serving if index.column == column), "")


def _collect_equal_texts(conditions: Iterable[Expr]) -> Iterator[str]:
    for condition in conditions:
        match condition:
            case Compare(CompareOp.EQ, PropertyValue() as value, other) if is_constant(other):
                pass
            case Compare(CompareOp.EQ, other, PropertyValue() as value) if is_constant(other):
                pass
            case _:
                continue
        if value.type.scalar is Scalar.STRING:
            yield value.property


_COLUMNS: Final = (
    "operator",
    "access",
    "index",
    "estimated_rows",
    "actual_rows",
    "time_ms",
    "detail",
)
_MILLISECONDS: Final = 1_000
_TOPOLOGY: Final = AccessPath("topology")


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """An operator of a run; rows and time are None where they are not estimated or measured."""

    operator: str
    detail: str
    access: str = ""
    index: str = ""
    estimated_rows: int | None = None
    actual_rows: int | None = None
    time_ms: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Explained:
    """The operators of a run, from the result down."""

    rows: tuple[ExplainedRow, ...]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        rows = [_format_cells(row) for row in self.rows]
        return wrap_view(
            render_table(_COLUMNS, rows, shown=len(rows), total=len(rows), noun="operator")
        )

    def to_dicts(self) -> list[dict[str, Any]]:  # Any: texts and numbers
        """The operators as data."""
        return [asdict(row) for row in self.rows]

    def to_text(self) -> str:
        """The operators as a table; but for times, it is the same for the same snapshot."""
        lines = [_COLUMNS, *map(_format_cells, self.rows)]
        widths = [max(len(line[place]) for line in lines) for place in range(len(_COLUMNS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


class PlanExplainer:
    """Puts the rows of an explanation together; `watch` is what was measured, if anything was."""

    def __init__(self, context: ExecutionContext, watch: Profiler | None) -> None:
        self._paths = AccessPaths(context)
        self._watch = watch

    # ---- patterns ----

    def explain_factorized(self, known: PhysicalPlan) -> Iterator[ExplainedRow]:
        """The operators of a run on whole types, in the order they run."""
        for core, choice in zip(known.enumerations, known.join_orders, strict=True):
            yield from self._explain_enumeration(core, iter(choice.rows))
        for way in known.deferred.links:
            access = self._paths.find_operator_path(way.expand)
            yield self._build_row("Follow", format_operator(way.expand), None, access=access)

    def explain_matched(
        self, pattern: Operator, choices: Sequence[JoinOrder]
    ) -> Iterator[ExplainedRow]:
        """The operators of a pattern that is matched, in the order they run."""
        estimates = chain.from_iterable(choice.rows for choice in choices)
        leaf, *operators = chain_of(pattern)
        if isinstance(leaf, StageRows):
            yield self._build_row("StageRows", _format_stage(leaf), id(leaf))
        for operator in operators:
            row = self._explain_operator(operator, id(operator))
            is_estimated = isinstance(operator, Scan | Expand)
            yield _with_estimate(row, next(estimates, None) if is_estimated else None)

    def _explain_enumeration(
        self, core: EnumerationPlan, estimates: Iterator[float]
    ) -> Iterator[ExplainedRow]:
        start = core.start
        scan = Scan(Unit(), start.name, start.type_name, start.conditions)
        yield from self._explain_binding(
            self._explain_operator(scan, start.name), start, core, next(estimates)
        )
        for step in core.steps:
            row = self._explain_operator(step.operator, id(step))
            estimate = next(estimates) if isinstance(step.operator, Expand) else None
            if step.variable is None:
                yield _with_estimate(row, estimate)
            else:
                yield from self._explain_binding(row, step.variable, core, estimate)

    def _explain_binding(
        self, row: ExplainedRow, variable: Variable, core: EnumerationPlan, estimate: float | None
    ) -> Iterator[ExplainedRow]:
        """An operator that binds a variable, and what is done with its nodes as soon as it did."""
        tree = core.trees[variable.name]
        # The estimate is that of the rows that are left after weighing.
        yield _with_estimate(row, estimate if tree.is_bare else None)
        for block in variable.blocks:
            detail = f"${variable.name}: block{format_operator(block)}"
            yield self._build_row(type(block).__name__, detail, None)
        if not tree.is_bare:
            row = self._build_row(
                "Weigh", _format_tree(tree), factor_key_of(variable.name), access=_TOPOLOGY
            )
            yield _with_estimate(row, estimate)

    def _explain_operator(self, operator: Operator, part: Hashable) -> ExplainedRow:
        access = self._paths.find_operator_path(operator)
        return self._build_row(
            type(operator).__name__, format_operator(operator), part, access=access
        )

    # ---- the rest ----

    def explain_rest(self, steps: Sequence[Operator]) -> Iterator[ExplainedRow]:
        """The operators after the pattern."""
        for step in steps:
            yield self._build_row(type(step).__name__, format_operator(step), id(step))

    def _build_row(
        self, name: str, detail: str, part: Hashable, *, access: AccessPath | None = None
    ) -> ExplainedRow:
        way = access or AccessPath()
        row = ExplainedRow(name, detail, way.name, way.index)
        spent = None if self._watch is None else self._watch.spent.get(part)
        if spent is None:
            return row
        time_ms = round(spent.seconds * _MILLISECONDS, 3)
        return replace(row, actual_rows=spent.rows, time_ms=time_ms)


def run_operators(
    pattern: Operator, context: ExecutionContext, watch: Profiler, start: Batch | None = None
) -> Batch:
    """The rows of a pattern, one operator after the other if each runs by itself.

    Those of a stage start from the rows that they are given.
    """
    leaf, *operators = chain_of(pattern)
    scans = [each for each in operators if isinstance(each, Scan)]
    if start is not None:
        watch.start()
        watch.record(id(leaf), start.num_rows)
        if not scans:
            return _run_one_by_one(operators, context, watch, start)
    if start is not None or len(scans) != 1 or not isinstance(operators[0], Scan):
        watch.start()
        found = run_pattern(pattern, context, start)
        watch.record(id(pattern), found.num_rows)
        return found
    watch.start()
    rows = run_pattern(link_chain([leaf, operators[0]]), context)
    watch.record(id(operators[0]), rows.num_rows)
    return _run_one_by_one(operators[1:], context, watch, rows)


def _run_one_by_one(
    operators: Iterable[Operator], context: ExecutionContext, watch: Profiler, rows: Batch
) -> Batch:
    for operator in operators:
        rows = run_pattern(link_chain([Outer(), operator]), context, rows)
        watch.record(id(operator), rows.num_rows)
    return rows


def _format_stage(stage: StageRows) -> str:
    """What the rows of a stage bind, and how they come from those of its reads."""
    words = [str(operator) for operator in stage.operators]
    return " ".join([*words, format_operator(stage)])


def _with_estimate(row: ExplainedRow, estimate: float | None) -> ExplainedRow:
    return row if estimate is None else replace(row, estimated_rows=round(estimate))


def _format_tree(tree: FactorTree) -> str:
    """What hangs from a variable, and which values are carried to it."""
    parts = [
        format_operator(replace(branch.link.expand, conditions=branch.tree.variable.conditions))
        for branch in _iter_branches(tree)
    ]
    values = [
        f"{item.kind} of ${item.value.variable}.{item.value.property}" for item in _iter_items(tree)
    ]
    return "; ".join([f"${tree.variable.name}", *parts, *values])


def _iter_branches(tree: FactorTree) -> Iterator[FactorBranch]:
    for branch in tree.branches:
        yield branch
        yield from _iter_branches(branch.tree)


def _iter_items(tree: FactorTree) -> Iterator[PartialAggregate]:
    yield from tree.items
    for branch in tree.branches:
        yield from _iter_items(branch.tree)


def _format_cells(row: ExplainedRow) -> tuple[str, ...]:
    def shown(value: float | str | None) -> str:
        return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)

    return tuple(shown(getattr(row, name)) for name in _COLUMNS)
