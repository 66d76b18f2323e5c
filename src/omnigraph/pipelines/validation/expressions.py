"""Expressions before anything runs: Spark's parser reads all of them, and where the columns of a
source are known, Spark resolves them, with the code that a run resolves them with.

Spark is started for that, on this machine, unless the process has a session already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

from omnigraph.engine.distributed import spark_module
from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.fields import Findings
from omnigraph.pipelines.mapping import (
    Constant,
    Embedded,
    End,
    Expression,
    Mapped,
    Phrase,
    Rule,
    Value,
)
from omnigraph.pipelines.places import Place
from omnigraph.pipelines.sql import is_plain
from omnigraph.schema.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HERE: Final = "local[1]"


@dataclass(slots=True)
class Spark:
    """A session that is started when it is first asked for; `problem` says why there is none.

    As a context, it ends a session that the process did not have before: that of a run is another.
    """

    start: Callable[[], SparkSession] = field(default_factory=lambda: _session)
    problem: str | None = None
    _started: Any = None  # Any: a session
    _is_own: bool = False

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own and self._started is not None:
            self._started.stop()

    def session(self) -> SparkSession | None:
        """The session, or None where Spark cannot start."""
        if self._started is None and self.problem is None:
            try:
                self._is_own = spark_module("session").active_session() is None
                self._started = self.start()
            except OmnigraphError as failure:
                self.problem = failure.message
        found: SparkSession | None = self._started
        return found


def _session() -> SparkSession:
    """The session of the process, the server that the environment names, or one on this machine."""
    module = spark_module("session")
    active: SparkSession | None = module.active_session()
    if active is not None:
        own: SparkSession = module.strict(active)
        return own
    is_remote = bool(os.environ.get(module.REMOTE_VARIABLE))
    made: SparkSession = module.session(None if is_remote else module.SparkOptions(master=_HERE))
    return made


def has_expressions(mapped: Mapped) -> bool:
    """Whether a mapping has more than names of columns, so that a parser has to read it."""
    return any(not is_plain(sql) for sql, _ in _texts_of(mapped))


def check_syntax(mapped: Mapped, findings: Findings, spark: SparkSession) -> None:
    """Report every expression that Spark cannot read, whatever the columns are."""
    misread = spark_module("parsing").misread
    for sql, place in dict.fromkeys(_texts_of(mapped)):
        if sql.strip() and not is_plain(sql):
            problem = misread(sql, spark)
            if problem is not None:
                findings.add(place, f"'{sql}' is no expression: {problem.rstrip('.')}")


def check_columns(
    mapped: Mapped, catalog: Catalog, sources: Mapping[str, DataFrame], findings: Findings
) -> None:
    """Report what cannot work over the columns of sources; `sources` are those that are known.

    What findings already tell of is left out, and so is a rule that names none of the sources.
    """
    # Spark is here by now.
    from omnigraph.pipelines.frames import found_frames  # noqa: PLC0415

    bad = {Place(each.line, each.column) for each in findings.problems if each.file == mapped.file}
    rules = tuple(
        sound
        for rule in mapped.rules
        if rule.source in sources and (sound := _sound(rule, catalog, bad)) is not None
    )
    found_frames(replace(mapped, rules=rules), catalog, sources, findings)


def _sound(rule: Rule, catalog: Catalog, bad: set[Place]) -> Rule | None:
    """A rule without what is known to be wrong with it; None if nothing is left to look at."""
    type_ = catalog.edge(rule.type_name) if rule.is_edge else catalog.nodes.get(rule.type_name)
    steps = {each.place for each in rule.explode} | (
        set() if rule.chunk is None else {rule.chunk.place}
    )
    if type_ is None or bad & steps:
        return None
    return replace(
        rule,
        values={
            name: value
            for name, value in rule.values.items()
            if name in type_.properties and not bad & {value.place, rule.place_of(f"set.{name}")}
        },
        where=None if rule.place_of("where") in bad else rule.where,
        id=None if rule.id is None or rule.id.place in bad else rule.id,
        ends=_sound_ends(rule.ends, bad),
    )


def _sound_ends(ends: tuple[End, End] | None, bad: set[Place]) -> tuple[End, End] | None:
    return None if ends is None else (_sound_end(ends[0], bad), _sound_end(ends[1], bad))


def _sound_end(end: End, bad: set[Place]) -> End:
    values = [*end.members.values(), *([] if end.value is None else [end.value])]
    if values and not bad & {end.place, *(value.place for value in values)}:
        return end
    return End(Constant("", end.place), {}, end.place)


def _texts_of(mapped: Mapped) -> Iterator[tuple[str, Place]]:
    for rule in mapped.rules:
        if rule.where is not None:
            yield rule.where, rule.place_of("where")
        yield from ((each.sql, each.place) for each in rule.explode)
        if rule.chunk is not None:
            yield rule.chunk.sql, rule.chunk.place
        for value in _values_of(rule):
            yield from ((sql, value.place) for sql in _parts(value))


def _values_of(rule: Rule) -> Iterator[Value]:
    yield from rule.values.values()
    if rule.id is not None:
        yield rule.id
    for end in rule.ends or ():
        yield from end.members.values()
        if end.value is not None:
            yield end.value


def _parts(value: Value) -> Iterable[str]:
    match value:
        case Expression(sql) | Embedded(sql):
            return (sql,)
        case Phrase(parts):
            return parts[1::2]
        case Constant():
            return ()
        case _:
            assert_never(value)
