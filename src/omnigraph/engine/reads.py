"""Reads, from what callers ask to what runs: the plan, its parameters, and what it may use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from omnigraph.engine import arguments
from omnigraph.engine.distributed import spark_module
from omnigraph.engine.resources import Resources
from omnigraph.errors import InvalidArgument, WrongQueryKind
from omnigraph.execution.expressions import Params
from omnigraph.execution.options import DEFAULTS, Access, ReadOptions
from omnigraph.execution.planner.explain import Explained
from omnigraph.execution.read import Reads
from omnigraph.execution.result import Result
from omnigraph.execution.topology.memory import default_bytes
from omnigraph.execution.view import View
from omnigraph.query import bind_parameters
from omnigraph.query.ast import Setting
from omnigraph.query.plan import ReadPlan
from omnigraph.query.settings import EffectiveSetting, SettingValue, effective_settings

# Who answers a read: this process, or the tasks of a Spark session.
ReadEngine: TypeAlias = Literal["local", "spark"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a read may use, as callers say it: seconds, bytes, and settings of the request."""

    timeout: float | None = None
    memory: int | None = None
    settings: Mapping[str, SettingValue] | None = None


@dataclass(frozen=True, slots=True)
class PreparedRead:
    """A read of one snapshot, ready to run."""

    reads: Reads
    view: View
    plan: ReadPlan
    params: Params
    now: int
    options: ReadOptions

    def run(self) -> Result:
        """Its result."""
        return self.reads.run(self.plan, self.view, self.params, now=self.now, options=self.options)

    def run_on_spark(self) -> Result:
        """Its result, found by tasks of the Spark session of this process."""
        sessions = spark_module("session").session
        result: Result = spark_module("query").run_query(
            sessions, self.plan, self.view, self.params, now=self.now, options=self.options
        )
        return result

    def explain(self, *, analyze: bool) -> Explained:
        """How it runs."""
        return self.reads.explain(
            self.plan,
            self.view,
            self.params,
            now=self.now,
            options=self.options,
            analyze=analyze,
        )


def prepared_read(  # noqa: PLR0913 — one keyword for each decision of the caller
    resources: Resources,
    view: View,
    text: object,
    *,
    name: object,
    params: object,
    bounds: Bounds,
    is_partial: bool = False,
) -> PreparedRead:
    """The read of a text, compiled and with its parameters: all, or those there are, to explain."""
    checked, named = arguments.text("text", text), arguments.text_or_none("name", name)
    compiled = resources.plans.get(checked, name=named, schema=view.schema)
    plan, environment = compiled.plan, resources.environment
    if not isinstance(plan, ReadPlan):
        raise WrongQueryKind(plan.name, is_mutation=True)
    options = _options(bounds, compiled.settings, environment.access)
    bound = bind_parameters(
        plan.parameters,
        arguments.plain_parameters(params),
        strictness=environment.mode,
        is_partial=is_partial,
    )
    return PreparedRead(resources.reads, view, plan, bound, environment.now_ms(), options)


def _options(bounds: Bounds, lines: tuple[Setting, ...], access: Access) -> ReadOptions:
    memory = arguments.count_or_none("memory", bounds.memory)
    work_limit = DEFAULTS.work_limit
    if lines or bounds.settings:
        settings = effective_settings(lines, request=bounds.settings)
        work_limit = _number(settings["traversal_work_limit"])
    return ReadOptions(
        access,
        default_bytes() if memory is None else memory,
        _seconds_or_none("timeout", bounds.timeout),
        work_limit,
    )


def _number(setting: EffectiveSetting) -> int:
    assert isinstance(setting.value, int), f"{setting.name} is a number"
    return setting.value


def _seconds_or_none(argument: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidArgument(argument, f"a {type(value).__name__} is not a number of seconds")
    if math.isnan(value) or value < 0:
        raise InvalidArgument(argument, f"{value} is not a time to wait")
    return float(value)


def checked_engine(engine: object) -> ReadEngine:
    """The engine that a caller named."""
    match engine:
        case "local" | "spark":
            return engine
        case _:
            raise InvalidArgument("engine", f"{engine!r} is neither 'local' nor 'spark'")
