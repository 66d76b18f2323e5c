"""Prepares reads: the plan, its parameters, and the resources it may use."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from omnigraph.engine import arguments
from omnigraph.engine.read_cursors import ReadCursor, decode_cursor, digest_question
from omnigraph.engine.resources import Resources
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import InvalidArgumentError, WrongQueryKindError
from omnigraph.execution.executor import QueryExecutor
from omnigraph.execution.operators.page_operator import Pager
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import PATH_WORK, WORK, Budget, ReadOptions
from omnigraph.execution.result import Result
from omnigraph.execution.sources.topology.memory_cache import compute_default_bytes
from omnigraph.query import bind_parameters
from omnigraph.query.ast import Setting
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_settings import EffectiveSetting, SettingValue, resolve_settings
from omnigraph.query.row_limits import RowLimits
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View

# The text of queries, or the path of a file that holds it.
QueryText: TypeAlias = str | os.PathLike[str]

# The engine of a read: this process, or the tasks of a Spark session.
ReadEngine: TypeAlias = Literal["local", "spark"]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read as a caller asked for it, with the budget that all its stages draw on."""

    text: str
    name: str | None
    params: object
    settings: Mapping[str, SettingValue] | None
    budget: Budget


@dataclass(frozen=True, slots=True)
class PreparedRead:
    """A read of one snapshot, ready to run."""

    reads: QueryExecutor
    view: View
    plan: ReadPlan
    params: Params
    now: int
    options: ReadOptions
    # Of a read with pages: what its cursors belong to, and the one that it was given.
    question: str = ""
    cursor: ReadCursor | None = None

    def run(self) -> Result:
        """Its result."""
        pager = self._make_pager()
        options = replace(self.options, pager=pager)
        found = self.reads.run(self.plan, self.view, self.params, now=self.now, options=options)
        return self._complete(found, pager)

    def _make_pager(self) -> Pager:
        return Pager(None if self.cursor is None else self.cursor.position)

    def _complete(self, found: Result, pager: Pager) -> Result:
        """A result with what is beside its rows."""
        at, plan, cursor = self.view.snapshot, self.plan, None
        if plan.after is not None and pager.end is not None:
            following = ReadCursor(self.question, at.commit, at.seq, self.now, pager.end)
            cursor = following.encode()
        return Result(
            found.columns,
            found.to_arrow(),
            commit_id=at.commit,
            total=pager.total if plan.has_total else None,
            cursor=cursor,
            has_cursor=plan.after is not None,
        )

    def run_on_spark(self) -> Result:
        """Its result, found by tasks of the Spark session of this process."""
        sessions = import_spark_module("spark_session").get_session
        result: Result = import_spark_module("query").run_query(
            sessions, self.plan, self.view, self.params, now=self.now, options=self.options
        )
        return self._complete(result, Pager())

    def explain(self, *, analyze: bool) -> Explained:
        """How it runs."""
        return self.reads.explain(
            self.plan,
            self.view,
            self.params,
            now=self.now,
            options=replace(self.options, pager=self._make_pager()),
            analyze=analyze,
        )


def build_read_request(  # noqa: PLR0913 — one keyword for each decision of the caller
    text: object,
    *,
    name: object = None,
    params: object = None,
    timeout: object = None,
    memory: int | None = None,
    settings: Mapping[str, SettingValue] | None = None,
    cancel: object = None,
) -> ReadRequest:
    """What a caller asked for; its time starts here."""
    budget = build_budget(timeout, memory, cancel)
    return ReadRequest(
        read_query_text(text),
        arguments.require_optional_text("name", name),
        arguments.normalize_parameters(params, poll=budget.check_interrupts),
        settings,
        budget,
    )


def build_budget(timeout: object, memory: object, cancel: object) -> Budget:
    """The bounds of a request; its time starts here."""
    seconds = _require_optional_seconds("timeout", timeout)
    bytes_max = arguments.require_optional_count("memory", memory)
    return Budget(
        compute_default_bytes() if bytes_max is None else bytes_max,
        None if seconds is None else time.monotonic() + seconds,
        cancellation=arguments.require_cancellation(cancel),
    )


def build_time_budget(timeout: object, cancel: object) -> Budget:
    """The bounds of a comparison: its time, which starts here, and what stops it."""
    seconds = _require_optional_seconds("timeout", timeout)
    deadline = None if seconds is None else time.monotonic() + seconds
    return Budget(deadline=deadline, cancellation=arguments.require_cancellation(cancel))


def read_query_text(text: object) -> str:
    """The text of queries, which may be in a file."""
    if not isinstance(text, os.PathLike):
        return arguments.require_text("text", text)
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise InvalidArgumentError("text", f"{os.fspath(text)}: {reason}") from failure


def prepare_read(
    resources: Resources,
    view: View,
    request: ReadRequest,
    *,
    limits: RowLimits | None = None,
    is_partial: bool = False,
) -> PreparedRead:
    """The read of a text, compiled and with its parameters: all, or those there are, to explain."""
    environment, budget = resources.environment, request.budget
    compiled = resources.plans.get(
        request.text, name=request.name, schema=view.schema, limits=limits, budget=budget
    )
    plan = compiled.plan
    if not isinstance(plan, ReadPlan):
        raise WrongQueryKindError(plan.name, is_mutation=True)
    _limit_work(request, compiled.settings)
    bound = bind_parameters(
        plan.parameters,
        request.params,
        strictness=environment.mode,
        is_partial=is_partial,
        budget=budget,
    )
    if resources.reads.is_search(plan, view):
        resources.reads.turns.exclude(request.text, request.name)
    options = ReadOptions(environment.access, budget)
    now = environment.now_ms()
    if plan.after is None:
        return PreparedRead(resources.reads, view, plan, bound, now, options)
    question = digest_question(compiled.query, bound, plan.after)
    given = bound.get(plan.after)
    cursor = decode_cursor(given, question) if isinstance(given, str) else None
    # All pages are of one instant.
    now = now if cursor is None else cursor.now
    return PreparedRead(resources.reads, view, plan, bound, now, options, question, cursor)


def _limit_work(request: ReadRequest, lines: tuple[Setting, ...]) -> None:
    if lines or request.settings:
        settings = resolve_settings(lines, request=request.settings)
        request.budget.limit_work(_require_number(settings[WORK]))
        request.budget.limit_path_work(_require_number(settings[PATH_WORK]))


def _require_number(setting: EffectiveSetting) -> int:
    assert isinstance(setting.value, int), f"{setting.name} is a number"
    return setting.value


def _require_optional_seconds(argument: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidArgumentError(argument, f"a {type(value).__name__} is not a number of seconds")
    if math.isnan(value) or value < 0:
        raise InvalidArgumentError(argument, f"{value} is not a time to wait")
    return float(value)


def require_engine(engine: object) -> ReadEngine:
    """The engine that a caller named."""
    match engine:
        case "local" | "spark":
            return engine
        case _:
            raise InvalidArgumentError("engine", f"{engine!r} is neither 'local' nor 'spark'")
