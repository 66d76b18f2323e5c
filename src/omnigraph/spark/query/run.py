"""A read plan, run on Spark."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import EngineUnsupportedError
from omnigraph.execution.budget import Budget
from omnigraph.execution.expressions import Params, evaluate_constant
from omnigraph.execution.options import DEFAULT_OPTIONS, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.tail import split_plan
from omnigraph.execution.text_predicates import require_valid_options
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.typed import NOW_NAME, Expr, NearestScore, RrfScore, TextMatch
from omnigraph.query.walk import chain_of, expressions_of, iter_subexpressions
from omnigraph.spark.query.frames import DEFAULT_THRESHOLDS, FrameBuilder, SizeThresholds
from omnigraph.spark.query.layout import build_layout
from omnigraph.spark.query.pattern import PatternLowering
from omnigraph.spark.query.tail import ResultStage
from omnigraph.spark.query.time_limit import enforce_budget
from omnigraph.spark.scans import address_of
from omnigraph.spark.session import SessionProvider, open_session


def run_query(  # noqa: PLR0913 — one keyword for each decision of the caller
    where: SessionProvider,
    plan: plans.ReadPlan,
    view: View,
    params: Params,
    *,
    now: int,
    options: ReadOptions = DEFAULT_OPTIONS,
    sizes: SizeThresholds = DEFAULT_THRESHOLDS,
) -> Result:
    """The result of a plan; `now` is the millisecond of the request."""
    budget = options.budget or Budget()
    known = {**params, NOW_NAME: now}
    _require_supported(plan, known)
    parts = split_plan(plan.root)
    layout = build_layout(plan.root, view.catalog)
    place = address_of(view.tables)
    tail = ResultStage(plan, parts, layout, known)
    budget.check_interrupts()
    spark = open_session(where)
    workshop = FrameBuilder(spark, place, layout, known, sizes)
    with enforce_budget(spark, budget):
        try:
            operators = chain_of(parts.pattern)[1:]
            frame = PatternLowering(view, workshop, budget).lower_chain(
                operators, None, tail.needed_columns
            )
            found = tail.build_table(frame)
        finally:
            workshop.close()
    budget.allocate(found.nbytes)
    return Result(plan.columns, found)


def _require_supported(plan: plans.ReadPlan, params: Params) -> None:
    """Refuse what only runs in this process, and options that no row would have to meet."""
    for operator in _iter_operators(plan.root):
        if isinstance(operator, plans.Rank):
            raise EngineUnsupportedError("spark", f"a ranked search by {_format_ranking(operator)}")
    matches = [each for each in _iter_expressions(plan.root) if isinstance(each, TextMatch)]
    require_valid_options(matches, lambda expr: evaluate_constant(expr, params))


def _format_ranking(rank: plans.Rank) -> str:
    match rank.score:
        case NearestScore():
            return "nearest"
        case RrfScore():
            return "rrf"
        case _:
            return "bm25"


def _iter_operators(root: plans.Operator) -> Iterator[plans.Operator]:
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, plans.Exists | plans.CompareBlock):
            yield from _iter_operators(operator.block)


def _iter_expressions(root: plans.Operator) -> Iterator[Expr]:
    for operator in _iter_operators(root):
        for expr in expressions_of(operator):
            yield from iter_subexpressions(expr)
