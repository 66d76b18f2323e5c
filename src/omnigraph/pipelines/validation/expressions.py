"""Expressions before anything runs: Spark's parser reads all of them, and where the columns of a
source are known, Spark resolves them, with the code that a run resolves them with.

Spark is started for that, on this machine, unless the process has a session already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

from omnigraph.engine.distributed import import_spark_module
from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.fields import Findings
from omnigraph.pipelines.mapping import (
    Constant,
    EmbeddedText,
    Endpoint,
    Expression,
    MappingRule,
    RecordMapping,
    Template,
    Value,
)
from omnigraph.pipelines.places import Position
from omnigraph.pipelines.sql import is_column_name
from omnigraph.schema.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL_MASTER: Final = "local[1]"


@dataclass(slots=True)
class LazySparkSession:
    """A session that is started when it is first asked for; `problem` says why there is none.

    As a context, it ends a session that the process did not have before: that of a run is another.
    """

    start: Callable[[], SparkSession] = field(default_factory=lambda: _open_session)
    problem: str | None = None
    _started: Any = None  # Any: a session
    _is_own: bool = False

    def __enter__(self) -> LazySparkSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own and self._started is not None:
            self._started.stop()

    def get_session(self) -> SparkSession | None:
        """The session, or None where Spark cannot start."""
        if self._started is None and self.problem is None:
            try:
                self._is_own = import_spark_module("session").active_session() is None
                self._started = self.start()
            except OmnigraphError as failure:
                self.problem = failure.message
        found: SparkSession | None = self._started
        return found


def _open_session() -> SparkSession:
    """The session of the process, the server that the environment names, or one on this machine."""
    module = import_spark_module("session")
    active: SparkSession | None = module.active_session()
    if active is not None:
        own: SparkSession = module.strict(active)
        return own
    is_remote = bool(os.environ.get(module.REMOTE_VARIABLE))
    made: SparkSession = module.session(
        None if is_remote else module.SparkOptions(master=_LOCAL_MASTER)
    )
    return made


def has_expressions(mapped: RecordMapping) -> bool:
    """Whether a mapping has more than names of columns, so that a parser has to read it."""
    return any(not is_column_name(sql) for sql, _ in _iter_expressions(mapped))


def check_syntax(mapped: RecordMapping, findings: Findings, spark: SparkSession) -> None:
    """Report every expression that Spark cannot read, whatever the columns are."""
    misread = import_spark_module("parsing").misread
    for sql, place in dict.fromkeys(_iter_expressions(mapped)):
        if sql.strip() and not is_column_name(sql):
            problem = misread(sql, spark)
            if problem is not None:
                findings.add_problem(place, f"'{sql}' is no expression: {problem.rstrip('.')}")


def check_columns(
    mapped: RecordMapping, catalog: Catalog, sources: Mapping[str, DataFrame], findings: Findings
) -> None:
    """Report what cannot work over the columns of sources; `sources` are those that are known.

    What findings already tell of is left out, and so is a rule that names none of the sources.
    """
    # Spark is here by now.
    from omnigraph.pipelines.frames import resolve_frames  # noqa: PLC0415

    bad = {
        Position(each.line, each.column) for each in findings.problems if each.file == mapped.file
    }
    rules = tuple(
        sound
        for rule in mapped.rules
        if rule.source in sources and (sound := _without_faults(rule, catalog, bad)) is not None
    )
    resolve_frames(replace(mapped, rules=rules), catalog, sources, findings)


def _without_faults(rule: MappingRule, catalog: Catalog, bad: set[Position]) -> MappingRule | None:
    """A rule without what is known to be wrong with it; None if nothing is left to look at."""
    type_ = catalog.find_edge(rule.type_name) if rule.is_edge else catalog.nodes.get(rule.type_name)
    steps = {each.position for each in rule.explode} | (
        set() if rule.chunk is None else {rule.chunk.position}
    )
    if type_ is None or bad & steps:
        return None
    return replace(
        rule,
        values={
            name: value
            for name, value in rule.values.items()
            if name in type_.properties
            and not bad & {value.position, rule.position_of(f"set.{name}")}
        },
        where=None if rule.position_of("where") in bad else rule.where,
        id=None if rule.id is None or rule.id.position in bad else rule.id,
        ends=_without_faulty_ends(rule.ends, bad),
    )


def _without_faulty_ends(
    ends: tuple[Endpoint, Endpoint] | None, bad: set[Position]
) -> tuple[Endpoint, Endpoint] | None:
    return (
        None
        if ends is None
        else (_without_faulty_end(ends[0], bad), _without_faulty_end(ends[1], bad))
    )


def _without_faulty_end(end: Endpoint, bad: set[Position]) -> Endpoint:
    values = [*end.members.values(), *([] if end.value is None else [end.value])]
    if values and not bad & {end.position, *(value.position for value in values)}:
        return end
    return Endpoint(Constant("", end.position), {}, end.position)


def _iter_expressions(mapped: RecordMapping) -> Iterator[tuple[str, Position]]:
    for rule in mapped.rules:
        if rule.where is not None:
            yield rule.where, rule.position_of("where")
        yield from ((each.sql, each.position) for each in rule.explode)
        if rule.chunk is not None:
            yield rule.chunk.sql, rule.chunk.position
        for value in _iter_values(rule):
            yield from ((sql, value.position) for sql in _list_sql_parts(value))


def _iter_values(rule: MappingRule) -> Iterator[Value]:
    yield from rule.values.values()
    if rule.id is not None:
        yield rule.id
    for end in rule.ends or ():
        yield from end.members.values()
        if end.value is not None:
            yield end.value


def _list_sql_parts(value: Value) -> Iterable[str]:
    match value:
        case Expression(sql) | EmbeddedText(sql):
            return (sql,)
        case Template(parts):
            return parts[1::2]
        case Constant():
            return ()
        case _:
            assert_never(value)
