"""A definition that is examined from every side, each whatever the others find."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

import omnigraph
from omnigraph.config.references import find_missing_names
from omnigraph.config.yaml_reader import DOCUMENT_START, Findings, Position, sort_problems
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import (
    OmnigraphError,
    PipelineInvalidError,
    PipelineNotFoundError,
    Problem,
    SecretMissingError,
    SourceRefusedError,
)
from omnigraph.pipelines.config.definition import (
    Constant,
    EmbeddedText,
    Endpoint,
    Expression,
    FileSource,
    Interpolation,
    MappingRule,
    Pipeline,
    RecordMapping,
    Target,
    Value,
)
from omnigraph.pipelines.config.definition_reader import find_definition, read_valid_parts
from omnigraph.pipelines.config.expectations import RowCondition
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import bind_slot, find_interval, uses_slots
from omnigraph.pipelines.mapping.mapping_checks import check_mapping
from omnigraph.pipelines.mapping.mapping_sql import is_column_name
from omnigraph.pipelines.run.target_attempt import catalog_of
from omnigraph.pipelines.sources.source_dispatch import (
    find_declared_columns,
    find_header_files,
    read_header_frame,
)
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipelines.sources.file_source import FileListing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL_MASTER: Final = "local[1]"


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What is wrong with a definition, and what could not be examined; `targets` is how many."""

    name: str
    file: str
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()
    targets: int = 0

    def to_json(self) -> JsonObject:
        """The document of a checked pipeline."""
        return {
            "pipeline": self.name,
            "file": self.file,
            "valid": not self.problems,
            "problems": [each.to_json() for each in self.problems],
            "notes": list(self.remarks),
        }


def validate_all(names: Iterable[str], folder: Path) -> list[ValidationReport]:
    """Definitions by name or path, each examined whatever is wrong with the others."""
    found = []
    with LazySparkSession() as spark:
        for name in names:
            try:
                found.append(validate_definition(find_definition(name, folder), spark))
            except PipelineNotFoundError as failure:
                problem = Problem(name, 1, 1, failure.message, failure.hint)
                found.append(ValidationReport(name, name, (problem,)))
    return found


def validate_definition(path: Path, spark: LazySparkSession | None = None) -> ValidationReport:
    """A definition that was examined from every side; `spark` is shared by several of them."""
    findings = Findings(str(path), error=PipelineInvalidError)
    try:
        pipeline = read_valid_parts(path, findings)
    except PipelineInvalidError as failure:
        return ValidationReport(path.name.partition(".")[0], str(path), failure.problems)
    return validate_pipeline(pipeline, findings, spark=spark)


def validate_pipeline(
    pipeline: Pipeline,
    findings: Findings,
    *,
    spark: LazySparkSession | None = None,
    looks_at_files: bool = True,
    names_approvals: bool = True,
) -> ValidationReport:
    """What was found when a definition was read, and everything that can be found after that.

    Without looking at files, no source is asked for anything, not even for its columns. A cluster
    keeps approvals itself, so its definitions get no remark about them.
    """
    if pipeline.schedule is not None and uses_slots(pipeline):
        pipeline = bind_slot(pipeline, find_interval(pipeline.schedule, None, datetime.now(UTC)))
    resolver, notes = make_resolver(pipeline)
    with LazySparkSession() if spark is None else nullcontext(spark) as shared:
        looking = _Validator(pipeline, resolver, findings, shared, notes)
        if looks_at_files:
            looking.find_headers()
        looking.check_all()
        if names_approvals and pipeline.overwrites and pipeline.schedule is not None:
            approval = f"--approve {pipeline.digest}"
            notes.append(f"'mode: overwrite' needs an approval: run the schedule with {approval}")
    return ValidationReport(
        pipeline.name,
        pipeline.file,
        tuple(sort_problems(looking.findings.problems, first=pipeline.file)),
        tuple(dict.fromkeys(looking.remarks)),
        len(pipeline.targets),
    )


def make_resolver(pipeline: Pipeline) -> tuple[Resolver, list[str]]:
    """The definition in the environment of the process, and what of that could not be read."""
    try:
        return Resolver.from_environment(pipeline), []
    except SourceRefusedError as failure:
        # Secrets are for runs: where the file is missing, definitions are checked all the same.
        return Resolver(pipeline, os.environ), [failure.message]


@dataclass(frozen=True, slots=True)
class _Validator:
    """A definition that is examined, and what was seen so far."""

    pipeline: Pipeline
    resolver: Resolver
    findings: Findings
    spark: LazySparkSession
    remarks: list[str]
    headers: dict[str, FileListing] = field(default_factory=dict)

    def check_all(self) -> None:
        """Run every check, whatever the others find."""
        reported = {(each.file, each.line, each.column) for each in self.findings.problems}
        spark = self._find_session()
        columns = {} if spark is None else dict(self._iter_known_columns(spark))
        for target in self.pipeline.targets:
            own = Findings(target.mapping.file, paths=target.mapping.paths)
            own.problems += [each for each in self.findings.problems if each.file == own.file]
            if spark is not None:
                check_syntax(target.mapping, own, spark)
            catalog = self._find_catalog(target)
            if catalog is not None:
                # What follows from a fault that was reported already is left out.
                own.problems += [
                    each
                    for each in check_mapping(target.mapping, catalog, mode=target.mode).problems
                    if (each.file, each.line, each.column) not in reported
                ]
                if columns:
                    check_columns(self._with_sources(target.mapping), catalog, columns, own)
            self.findings.problems += own.problems

    def _with_sources(self, mapped: RecordMapping) -> RecordMapping:
        """A mapping whose rules name the source that there is, if there is one only."""
        if len(self.pipeline.sources) != 1:
            return mapped
        (only,) = self.pipeline.sources
        rules = (replace(rule, source=rule.source or only) for rule in mapped.rules)
        return replace(mapped, rules=tuple(rules))

    def _find_session(self) -> SparkSession | None:
        """Spark, if there is anything that only Spark can check."""
        is_needed = any(has_expressions(target.mapping) for target in self.pipeline.targets)
        sources = self.pipeline.sources.values()
        if not (is_needed or self.headers or any(map(find_declared_columns, sources))):
            return None
        found = self.spark.get_session()
        if found is None:
            self.remarks.append(f"expressions are not checked: {self.spark.problem}")
        return found

    def find_headers(self) -> None:
        """Find the files that hold the columns of their sources."""
        for name in self.pipeline.sources:
            try:
                found = find_header_files(self.resolver.resolve_source(name))
            except SecretMissingError:
                continue
            except OmnigraphError as failure:
                reason = self.resolver.hide_secrets(failure.message)
                self.remarks.append(f"columns of source '{name}' are not known: {reason}")
                continue
            if found is not None:
                self.headers[name] = found

    def _iter_known_columns(self, spark: SparkSession) -> Iterator[tuple[str, DataFrame]]:
        """A frame without rows for each source whose columns are known."""
        for name, source in self.pipeline.sources.items():
            declared = find_declared_columns(source)
            if declared is not None:
                frame = self._build_declared_frame(name, declared, spark)
                if frame is not None:
                    yield name, frame
            elif name in self.headers and isinstance(source, FileSource):
                with_secrets = self.resolver.resolve_source(name)
                assert isinstance(with_secrets, FileSource), "a secret changes no kind"
                try:
                    with import_spark_module("spark_failures").translate_source_errors(name):
                        frame = read_header_frame(with_secrets, self.headers[name], spark)
                except OmnigraphError as failure:
                    self.remarks.append(self.resolver.hide_secrets(failure.message))
                else:
                    yield name, frame

    def _build_declared_frame(
        self, name: str, columns: str, spark: SparkSession
    ) -> DataFrame | None:
        parsing = import_spark_module("sql_analysis")
        try:
            frame: DataFrame = parsing.build_empty_frame(columns, spark)
        except import_spark_module("sql_analysis").UnresolvedError as failure:
            place = self.pipeline.column_positions.get(name, DOCUMENT_START)
            reason = str(failure).rstrip(".")
            self.findings.add_problem(
                place, f"these are not columns: {reason}", hint="write name type, …"
            )
            return None
        return frame

    def _find_catalog(self, target: Target) -> Catalog | None:
        if target.graph not in self.pipeline.graphs:
            return None
        place = self.pipeline.graphs[target.graph]
        try:
            catalog = find_catalog(target, self.resolver)
        except OmnigraphError as failure:
            message = self.resolver.hide_secrets(f"graph '{target.graph}': {failure.message}")
            self.findings.add_problem(place.position, message, hint=failure.hint)
            return None
        if catalog is None:
            missing = ", ".join(find_missing_names([place.uri], self.resolver.environment))
            self.remarks.append(f"graph '{target.graph}' is not checked: {missing} is not set")
        return catalog


def find_catalog(target: Target, resolver: Resolver) -> Catalog | None:
    """The schema of a target: that of a file if the definition names one, else of the graph.

    None if the address of the graph is a secret that is not set.
    """
    place = resolver.pipeline.graphs[target.graph]
    if place.schema is not None:
        try:
            return load_catalog(place.schema.read_text(encoding="utf-8"))
        except OSError as failure:
            message = f"{place.schema} cannot be read: {failure.strerror}"
            raise SourceRefusedError(message) from failure
        except UnicodeDecodeError as failure:
            message = f"{place.schema} is not UTF-8: byte {failure.start + 1} cannot be read"
            raise SourceRefusedError(message, hint="save it as UTF-8") from failure
    if not resolver.can_resolve_graph(target.graph):
        return None
    with omnigraph.open(resolver.resolve_graph(target.graph)) as graph:
        return catalog_of(graph.branch(target.branch))


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
                self._is_own = import_spark_module("spark_session").find_active_session() is None
                self._started = self.start()
            except OmnigraphError as failure:
                self.problem = failure.message
        found: SparkSession | None = self._started
        return found


def _open_session() -> SparkSession:
    """The session of the process, the server that the environment names, or one on this machine."""
    module = import_spark_module("spark_session")
    active: SparkSession | None = module.find_active_session()
    if active is not None:
        own: SparkSession = module.get_strict_session(active)
        return own
    is_remote = bool(os.environ.get(module.REMOTE_VARIABLE))
    made: SparkSession = module.get_session(
        None if is_remote else module.SparkOptions(master=_LOCAL_MASTER)
    )
    return made


def has_expressions(mapped: RecordMapping) -> bool:
    """Whether a mapping has more than names of columns, so that a parser has to read it."""
    return any(not is_column_name(sql) for sql, _ in _iter_expressions(mapped))


def check_syntax(mapped: RecordMapping, findings: Findings, spark: SparkSession) -> None:
    """Report every expression that Spark cannot read, whatever the columns are."""
    misread = import_spark_module("sql_analysis").find_syntax_error
    for sql, place in dict.fromkeys(_iter_expressions(mapped)):
        if sql.strip() and not is_column_name(sql):
            problem = misread(sql, spark)
            if problem is not None:
                findings.add_problem(place, f"'{sql}' is not an expression: {problem.rstrip('.')}")


def check_columns(
    mapped: RecordMapping, catalog: Catalog, sources: Mapping[str, DataFrame], findings: Findings
) -> None:
    """Report what cannot work over the columns of sources; `sources` are those that are known.

    What findings already report is left out, and so is a rule that names none of the sources.
    """
    # Spark is here by now.
    from omnigraph.pipelines.mapping.mapping_frames import resolve_frames  # noqa: PLC0415

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
        yield from (
            (each.check.sql, each.position)
            for each in rule.expectations
            if isinstance(each.check, RowCondition)
        )
        if rule.chunk is not None:
            yield rule.chunk.sql, rule.chunk.position
        if rule.operations is not None:
            yield rule.operations.sql, rule.operations.position
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
        case Interpolation(parts):
            return parts[1::2]
        case Constant():
            return ()
        case _:
            assert_never(value)
