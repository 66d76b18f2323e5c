"""A read plan, run on Spark."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import EngineUnsupported
from omnigraph.execution.budget import Budget
from omnigraph.execution.expressions import Params, constant
from omnigraph.execution.options import DEFAULTS, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.tail import split
from omnigraph.execution.text_predicates import check_options
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.typed import NOW_NAME, Expr, NearestScore, RrfScore, TextMatch
from omnigraph.query.walk import chain_of, expressions_of, subexpressions
from omnigraph.spark.query.frames import DEFAULT_SIZES, Sizes, Workshop
from omnigraph.spark.query.layout import layout_of
from omnigraph.spark.query.pattern import Lowering
from omnigraph.spark.query.tail import Tail
from omnigraph.spark.query.time_limit import within
from omnigraph.spark.scans import place_of
from omnigraph.spark.session import Sessions, opened


def run_query(  # noqa: PLR0913 — one keyword for each decision of the caller
    where: Sessions,
    plan: plans.ReadPlan,
    view: View,
    params: Params,
    *,
    now: int,
    options: ReadOptions = DEFAULTS,
    sizes: Sizes = DEFAULT_SIZES,
) -> Result:
    """The result of a plan; `now` is the millisecond of the request."""
    budget = options.budget or Budget()
    known = {**params, NOW_NAME: now}
    _require_able(plan, known)
    parts = split(plan.root)
    layout = layout_of(plan.root, view.catalog)
    place = place_of(view.tables)
    tail = Tail(plan, parts, layout, known)
    budget.check()
    spark = opened(where)
    workshop = Workshop(spark, place, layout, known, sizes)
    with within(spark, budget):
        try:
            operators = chain_of(parts.pattern)[1:]
            frame = Lowering(view, workshop, budget).chain(operators, None, tail.needed)
            found = tail.table(frame)
        finally:
            workshop.close()
    budget.hold(found.nbytes)
    return Result(plan.columns, found)


def _require_able(plan: plans.ReadPlan, params: Params) -> None:
    """Refuse what only runs in this process, and options that no row would have to meet."""
    for operator in _operators(plan.root):
        if isinstance(operator, plans.Rank):
            raise EngineUnsupported("spark", f"a ranked search by {_ranking(operator)}")
    matches = [each for each in _expressions(plan.root) if isinstance(each, TextMatch)]
    check_options(matches, lambda expr: constant(expr, params))


def _ranking(rank: plans.Rank) -> str:
    match rank.score:
        case NearestScore():
            return "nearest"
        case RrfScore():
            return "rrf"
        case _:
            return "bm25"


def _operators(root: plans.Operator) -> Iterator[plans.Operator]:
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, plans.Exists | plans.CompareBlock):
            yield from _operators(operator.block)


def _expressions(root: plans.Operator) -> Iterator[Expr]:
    for operator in _operators(root):
        for expr in expressions_of(operator):
            yield from subexpressions(expr)
