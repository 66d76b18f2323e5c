"""A read plan, run on Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from omnigraph.errors import EngineUnsupportedError, SparkDriverLostError, SparkFailedError
from omnigraph.execution.optimizer.plan_split import split_plan, variable_types_of
from omnigraph.execution.query_budget import DEFAULT_OPTIONS, Budget, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.query import logical_plan as plans
from omnigraph.query.limit_binding import bind_limit, read_limit
from omnigraph.query.tree_walk import (
    BLOCKS,
    STAGES,
    chain_of,
    expressions_of,
    iter_subexpressions,
    used_variables_of,
)
from omnigraph.query.typed_tree import (
    NOW_NAME,
    AggregateValue,
    EdgeValue,
    Expr,
    FunctionValue,
    NearestScore,
    NodeObject,
    RrfScore,
    Score,
    ScoreValue,
    TextMatch,
)
from omnigraph.rows.evaluator import Params, evaluate_constant
from omnigraph.rows.kernels.pattern_kernels import require_pattern
from omnigraph.rows.text_predicates import require_valid_options
from omnigraph.rows.view import View
from omnigraph.schema.type_sets import is_type_set
from omnigraph.spark.job_cancellation import JobGroup, cancel_on_error
from omnigraph.spark.query.column_layout import build_layout
from omnigraph.spark.query.pattern_lowering import PatternLowering
from omnigraph.spark.query.query_frames import DEFAULT_THRESHOLDS, FrameBuilder, SizeThresholds
from omnigraph.spark.query.result_stage import ResultStage
from omnigraph.spark.spark_failures import FAILURES, is_driver_lost
from omnigraph.spark.spark_jobs import reason_of
from omnigraph.spark.spark_session import SessionProvider, open_session
from omnigraph.spark.type_scans import address_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How often a running query is asked whether it may go on.
POLL_SECONDS: Final = 0.05

# How often the jobs of one that may not are stopped.
STOP_SECONDS: Final = 0.2


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
    limit = plan.open_limit
    plan = plan if limit is None else bind_limit(plan, read_limit(limit, params))
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
    variables = variable_types_of(plan.root)
    if plan.is_paged or any(map(is_type_set, variables.nodes.values())):
        what = "a page with a cursor or a total" if plan.is_paged else "a variable of several types"
        raise EngineUnsupportedError("spark", what)
    nullable = variables.nullable
    for operator in _iter_operators(plan.root):
        if isinstance(operator, plans.Rank):
            what = f"a ranked search by {_format_score(operator.score)}"
            raise EngineUnsupportedError("spark", what)
        if isinstance(operator, plans.StageRows):
            what = "combined reads" if operator.operators else "a read with stages"
            raise EngineUnsupportedError("spark", what)
        if isinstance(operator, (*STAGES, plans.Expand)) and (problem := _find_problem(operator)):
            raise EngineUnsupportedError("spark", problem)
        if isinstance(operator, BLOCKS) and used_variables_of(operator) & nullable:
            raise EngineUnsupportedError("spark", "a block about what 'optional' may leave out")
    _require_supported_objects(plan)
    matches = [each for each in _iter_expressions(plan.root) if isinstance(each, TextMatch)]
    require_valid_options(matches, lambda expr: evaluate_constant(expr, params))
    # An error of a task would be one of Spark.
    for expr in _iter_expressions(plan.root):
        if isinstance(expr, FunctionValue) and expr.function == "matches":
            pattern = evaluate_constant(expr.arguments[1], params)
            if isinstance(pattern, str):
                require_pattern(pattern)


def _require_supported_objects(plan: plans.ReadPlan) -> None:
    if plan.is_graph:
        raise EngineUnsupportedError("spark", "'return graph'")
    for expr in _iter_expressions(plan.root):
        if isinstance(expr, EdgeValue):
            raise EngineUnsupportedError("spark", "an edge as an object")
        if isinstance(expr, AggregateValue) and isinstance(expr.type, NodeObject):
            raise EngineUnsupportedError("spark", f"{expr.function}() of nodes")


def _find_problem(
    operator: plans.Expand
    | plans.Lateral
    | plans.Unnest
    | plans.TableFunction
    | plans.Extend
    | plans.BlockColumn
    | plans.PathExpand,
) -> str | None:
    match operator:
        case plans.Expand(guards=guards, is_selection=is_selection):
            what = "a traversal of selected edges under a row guard"
            return what if guards and is_selection else None
        case plans.Lateral():
            word = "optional" if operator.is_optional else "each"
            return f"'{word}' with a limit" if operator.is_cut else None
        case plans.Unnest():
            return "'for'"
        case plans.TableFunction(call=call):
            return f"the table function '{call.function}'"
        case plans.Extend(value=ScoreValue(score)):
            return f"{_format_score(score)} as a value"
        case plans.PathExpand():
            return "a path"
        case plans.Extend():
            return "a long 'let', or one inside 'optional'"
        case plans.BlockColumn():
            return "a block in an expression"


def _format_score(score: Score) -> str:
    match score:
        case NearestScore():
            return "nearest"
        case RrfScore():
            return "rrf"
        case _:
            return "bm25"


def _iter_operators(root: plans.Operator) -> Iterator[plans.Operator]:
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, BLOCKS):
            yield from _iter_operators(operator.block)


def _iter_expressions(root: plans.Operator) -> Iterator[Expr]:
    for operator in _iter_operators(root):
        for expr in expressions_of(operator):
            yield from iter_subexpressions(expr)


@contextmanager
def enforce_budget(spark: SparkSession, budget: Budget) -> Iterator[None]:
    """Stop the jobs that are started meanwhile as soon as a budget stops the query."""
    try:
        with cancel_on_error(spark) as jobs, _watch_budget(jobs, budget):
            yield
    except FAILURES as failure:
        if is_driver_lost(failure):
            raise SparkDriverLostError("run the query") from failure
        budget.check_interrupts()
        raise SparkFailedError("run the query", reason_of(failure)) from failure
    budget.check_interrupts()


@contextmanager
def _watch_budget(jobs: JobGroup, budget: Budget) -> Iterator[None]:
    """Watch a budget in a thread of its own, if it can stop the query at all."""
    is_done = threading.Event()
    if budget.may_be_stopped:
        watch = threading.Thread(
            target=_poll_budget, args=(jobs, budget, is_done), name="omnigraph-timeout", daemon=True
        )
        watch.start()
    try:
        yield
    finally:
        is_done.set()


def _poll_budget(jobs: JobGroup, budget: Budget, is_done: threading.Event) -> None:
    while not budget.is_over:
        if is_done.wait(POLL_SECONDS):
            return
    # Again and again: a job may just have been about to start.
    while True:
        jobs.cancel()
        if is_done.wait(STOP_SECONDS):
            return
