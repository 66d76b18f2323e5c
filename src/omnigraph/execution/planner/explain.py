"""How a plan runs, or ran: its operators with their access paths, rows and times.

Operators are listed from the result down. Rows are estimated from statistics, and measured if the
plan is run. What a run does beside the operators of the plan is listed too: `Weigh` finds what
hangs from a variable without enumerating it, and `Follow` gets a node that another one determines.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, Final

from omnigraph.execution.batch import Batch
from omnigraph.execution.pattern import run_pattern
from omnigraph.execution.planner.access_paths import AccessPath, AccessPaths
from omnigraph.execution.planner.choice import Choice
from omnigraph.execution.planner.core import Core, weighing_of
from omnigraph.execution.planner.graph import Variable
from omnigraph.execution.planner.physical import Physical
from omnigraph.execution.planner.rows import numbered
from omnigraph.execution.planner.trees import Branch, Item, Tree
from omnigraph.execution.planner.watch import Watch
from omnigraph.execution.reading import Reading
from omnigraph.query.explain import operator_text
from omnigraph.query.plan import Expand, Operator, Outer, Scan, Unit
from omnigraph.query.walk import chain_of, link

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
    """An operator of a run; rows and time are None where nobody estimates or measures them."""

    operator: str
    detail: str
    access: str = ""
    index: str = ""
    estimated_rows: int | None = None
    actual_rows: int | None = None
    time_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The operators of a run, from the result down."""

    rows: tuple[ExplainedRow, ...]

    def to_dicts(self) -> list[dict[str, Any]]:  # Any: texts and numbers
        """The operators as data."""
        return [asdict(row) for row in self.rows]

    def to_text(self) -> str:
        """The operators as a table; but for times, it is the same for the same snapshot."""
        lines = [_COLUMNS, *map(_cells, self.rows)]
        widths = [max(len(line[place]) for line in lines) for place in range(len(_COLUMNS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


class Explaining:
    """Puts the rows of an explanation together; `watch` is what was measured, if anything was."""

    def __init__(self, reading: Reading, watch: Watch | None) -> None:
        self._paths = AccessPaths(reading)
        self._watch = watch

    # ---- patterns ----

    def weighed(self, known: Physical) -> Iterator[ExplainedRow]:
        """The operators of a run on whole types, in the order they run."""
        for core, choice in zip(known.cores, known.choices, strict=True):
            yield from self._core(core, iter(choice.rows))
        for way in known.deferred.links:
            access = self._paths.operator(way.expand)
            yield self._row("Follow", operator_text(way.expand), None, access=access)

    def matched(self, pattern: Operator, choices: Sequence[Choice]) -> Iterator[ExplainedRow]:
        """The operators of a pattern that is matched, in the order they run."""
        estimates = chain.from_iterable(choice.rows for choice in choices)
        for operator in chain_of(pattern)[1:]:
            row = self._operator(operator, id(operator))
            is_estimated = isinstance(operator, Scan | Expand)
            yield _estimated(row, next(estimates, None) if is_estimated else None)

    def _core(self, core: Core, estimates: Iterator[float]) -> Iterator[ExplainedRow]:
        start = core.start
        scan = Scan(Unit(), start.name, start.type_name, start.conditions)
        yield from self._binding(self._operator(scan, start.name), start, core, next(estimates))
        for step in core.steps:
            row = self._operator(step.operator, id(step))
            estimate = next(estimates) if isinstance(step.operator, Expand) else None
            if step.variable is None:
                yield _estimated(row, estimate)
            else:
                yield from self._binding(row, step.variable, core, estimate)

    def _binding(
        self, row: ExplainedRow, variable: Variable, core: Core, estimate: float | None
    ) -> Iterator[ExplainedRow]:
        """An operator that binds a variable, and what is done with its nodes as soon as it did."""
        tree = core.trees[variable.name]
        # The estimate is that of the rows that are left after weighing.
        yield _estimated(row, estimate if tree.is_bare else None)
        for block in variable.blocks:
            detail = f"${variable.name}: block{operator_text(block)}"
            yield self._row(type(block).__name__, detail, None)
        if not tree.is_bare:
            row = self._row("Weigh", _tree_text(tree), weighing_of(variable.name), access=_TOPOLOGY)
            yield _estimated(row, estimate)

    def _operator(self, operator: Operator, part: Hashable) -> ExplainedRow:
        access = self._paths.operator(operator)
        return self._row(type(operator).__name__, operator_text(operator), part, access=access)

    # ---- the rest ----

    def rest(self, steps: Sequence[Operator]) -> Iterator[ExplainedRow]:
        """The operators after the pattern."""
        for step in steps:
            yield self._row(type(step).__name__, operator_text(step), id(step))

    def _row(
        self, name: str, detail: str, part: Hashable, *, access: AccessPath | None = None
    ) -> ExplainedRow:
        way = access or AccessPath()
        row = ExplainedRow(name, detail, way.name, way.index)
        spent = None if self._watch is None else self._watch.spent.get(part)
        if spent is None:
            return row
        time_ms = round(spent.seconds * _MILLISECONDS, 3)
        return replace(row, actual_rows=spent.rows, time_ms=time_ms)


def run_operators(pattern: Operator, reading: Reading, watch: Watch) -> Batch:
    """The rows of a pattern, one operator after the other where they can be told apart."""
    leaf, *operators = chain_of(pattern)
    scans = [each for each in operators if isinstance(each, Scan)]
    if len(scans) != 1 or not isinstance(operators[0], Scan):
        watch.start()
        found = run_pattern(pattern, reading)
        watch.note(id(pattern), found.num_rows)
        return found
    watch.start()
    rows = run_pattern(link([leaf, operators[0]]), reading)
    watch.note(id(operators[0]), rows.num_rows)
    for operator in operators[1:]:
        found = run_pattern(link([Outer(), operator]), reading, numbered(rows))
        rows = Batch(found.num_rows, found.nodes, found.edges)
        watch.note(id(operator), rows.num_rows)
    return rows


def _estimated(row: ExplainedRow, estimate: float | None) -> ExplainedRow:
    return row if estimate is None else replace(row, estimated_rows=round(estimate))


def _tree_text(tree: Tree) -> str:
    """What hangs from a variable, and which values are carried to it."""
    parts = [
        operator_text(replace(branch.link.expand, conditions=branch.tree.variable.conditions))
        for branch in _branches(tree)
    ]
    values = [
        f"{item.kind} of ${item.value.variable}.{item.value.property}" for item in _items(tree)
    ]
    return "; ".join([f"${tree.variable.name}", *parts, *values])


def _branches(tree: Tree) -> Iterator[Branch]:
    for branch in tree.branches:
        yield branch
        yield from _branches(branch.tree)


def _items(tree: Tree) -> Iterator[Item]:
    yield from tree.items
    for branch in tree.branches:
        yield from _items(branch.tree)


def _cells(row: ExplainedRow) -> tuple[str, ...]:
    def shown(value: float | str | None) -> str:
        return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)

    return tuple(shown(getattr(row, name)) for name in _COLUMNS)
