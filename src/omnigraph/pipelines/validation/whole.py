"""A definition that is looked at from every side, each whatever the others find."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import omnigraph
from omnigraph.engine.distributed import spark_module
from omnigraph.errors import (
    OmnigraphError,
    PipelineInvalid,
    PipelineNotFound,
    Problem,
    SecretMissing,
    SourceRefused,
)
from omnigraph.pipelines.check import check_mapping
from omnigraph.pipelines.definition import FileSource, Pipeline, Target
from omnigraph.pipelines.fields import START, Findings, in_order
from omnigraph.pipelines.loading import catalog_of
from omnigraph.pipelines.mapping import Mapped
from omnigraph.pipelines.reading import find_definition, read_what_is_there
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.secrets import missing_in
from omnigraph.pipelines.sources.known import declared_columns, files_with_header, header_frame
from omnigraph.pipelines.validation.expressions import (
    Spark,
    check_columns,
    check_syntax,
    has_expressions,
)
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipelines.sources.files import Listed


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with a definition, and what could not be looked at; `targets` is how many."""

    name: str
    file: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    targets: int = 0

    def to_json(self) -> JsonObject:
        """The document of a checked pipeline."""
        return {
            "pipeline": self.name,
            "file": self.file,
            "valid": not self.problems,
            "problems": [each.to_json() for each in self.problems],
            "notes": list(self.notes),
        }


def all_validated(names: Iterable[str], folder: Path) -> list[Checked]:
    """Definitions by name or path, each looked at whatever is wrong with the others."""
    found = []
    with Spark() as spark:
        for name in names:
            try:
                found.append(validated(find_definition(name, folder), spark))
            except PipelineNotFound as failure:
                problem = Problem(name, 1, 1, failure.message, failure.hint)
                found.append(Checked(name, name, (problem,)))
    return found


def validated(path: Path, spark: Spark | None = None) -> Checked:
    """A definition that was looked at from every side; `spark` is shared by several of them."""
    findings = Findings(str(path))
    try:
        pipeline = read_what_is_there(path, findings)
    except PipelineInvalid as failure:
        return Checked(path.name.partition(".")[0], str(path), failure.problems)
    return checked(pipeline, findings, spark=spark)


def checked(
    pipeline: Pipeline,
    findings: Findings,
    *,
    spark: Spark | None = None,
    looks_at_files: bool = True,
) -> Checked:
    """What was found when a definition was read, and everything that can be found behind that.

    Without looking at files, no source is asked for anything, not even for its columns.
    """
    resolver, notes = resolver_of(pipeline)
    with Spark() if spark is None else nullcontext(spark) as shared:
        looking = _Looking(pipeline, resolver, findings, shared, notes)
        if looks_at_files:
            looking.at_headers()
        looking.at_everything()
    return Checked(
        pipeline.name,
        pipeline.file,
        tuple(in_order(looking.findings.problems, first=pipeline.file)),
        tuple(dict.fromkeys(looking.notes)),
        len(pipeline.targets),
    )


def resolver_of(pipeline: Pipeline) -> tuple[Resolver, list[str]]:
    """The definition in the environment of the process, and what of that could not be read."""
    try:
        return Resolver.of(pipeline), []
    except SourceRefused as failure:
        # Secrets are for runs: where nobody has the file, definitions are checked all the same.
        return Resolver(pipeline, os.environ), [failure.message]


@dataclass(frozen=True, slots=True)
class _Looking:
    """A definition that is looked at, and what was seen so far."""

    pipeline: Pipeline
    resolver: Resolver
    findings: Findings
    spark: Spark
    notes: list[str]
    headers: dict[str, Listed] = field(default_factory=dict)

    def at_everything(self) -> None:
        """Run every check, whatever the others find."""
        told = {(each.file, each.line, each.column) for each in self.findings.problems}
        spark = self._session()
        columns = {} if spark is None else dict(self._columns(spark))
        for target in self.pipeline.targets:
            own = Findings(target.mapped.file, paths=target.mapped.paths)
            own.problems += [each for each in self.findings.problems if each.file == own.file]
            if spark is not None:
                check_syntax(target.mapped, own, spark)
            catalog = self._catalog(target)
            if catalog is not None:
                # What follows from a fault that was told already is no news.
                own.problems += [
                    each
                    for each in check_mapping(target.mapped, catalog, mode=target.mode).problems
                    if (each.file, each.line, each.column) not in told
                ]
                if columns:
                    check_columns(self._with_sources(target.mapped), catalog, columns, own)
            self.findings.problems += own.problems

    def _with_sources(self, mapped: Mapped) -> Mapped:
        """A mapping whose rules name the source that there is, if there is one only."""
        if len(self.pipeline.sources) != 1:
            return mapped
        (only,) = self.pipeline.sources
        rules = (replace(rule, source=rule.source or only) for rule in mapped.rules)
        return replace(mapped, rules=tuple(rules))

    def _session(self) -> SparkSession | None:
        """Spark, if there is anything that only Spark can tell."""
        is_needed = any(has_expressions(target.mapped) for target in self.pipeline.targets)
        sources = self.pipeline.sources.values()
        if not (is_needed or self.headers or any(map(declared_columns, sources))):
            return None
        found = self.spark.session()
        if found is None:
            self.notes.append(f"expressions are not checked: {self.spark.problem}")
        return found

    def at_headers(self) -> None:
        """Find the files that tell the columns of their sources."""
        for name in self.pipeline.sources:
            try:
                found = files_with_header(self.resolver.source(name))
            except SecretMissing:
                continue
            except OmnigraphError as failure:
                told = self.resolver.hidden(failure.message)
                self.notes.append(f"columns of source '{name}' are not known: {told}")
                continue
            if found is not None:
                self.headers[name] = found

    def _columns(self, spark: SparkSession) -> Iterator[tuple[str, DataFrame]]:
        """A frame without rows for each source whose columns are known."""
        for name, source in self.pipeline.sources.items():
            declared = declared_columns(source)
            if declared is not None:
                frame = self._declared(name, declared, spark)
                if frame is not None:
                    yield name, frame
            elif name in self.headers and isinstance(source, FileSource):
                with_secrets = self.resolver.source(name)
                assert isinstance(with_secrets, FileSource), "a secret changes no kind"
                try:
                    with spark_module("failures").refusing_data(name):
                        frame = header_frame(with_secrets, self.headers[name], spark)
                except OmnigraphError as failure:
                    self.notes.append(self.resolver.hidden(failure.message))
                else:
                    yield name, frame

    def _declared(self, name: str, columns: str, spark: SparkSession) -> DataFrame | None:
        parsing = spark_module("parsing")
        try:
            frame: DataFrame = parsing.without_rows(columns, spark)
        except spark_module("analysis").Unresolved as failure:
            place = self.pipeline.columns.get(name, START)
            told = str(failure).rstrip(".")
            self.findings.add(place, f"these are no columns: {told}", hint="write name type, …")
            return None
        return frame

    def _catalog(self, target: Target) -> Catalog | None:
        if target.graph not in self.pipeline.graphs:
            return None
        place = self.pipeline.graphs[target.graph]
        try:
            catalog = catalog_for(target, self.resolver)
        except OmnigraphError as failure:
            message = self.resolver.hidden(f"graph '{target.graph}': {failure.message}")
            self.findings.add(place.place, message, hint=failure.hint)
            return None
        if catalog is None:
            missing = ", ".join(missing_in([place.uri], self.resolver.environment))
            self.notes.append(f"graph '{target.graph}' is not checked: {missing} is not set")
        return catalog


def catalog_for(target: Target, resolver: Resolver) -> Catalog | None:
    """The schema of a target: that of a file if the definition names one, else of the graph.

    None if the address of the graph is a secret that is not set.
    """
    place = resolver.pipeline.graphs[target.graph]
    if place.schema is not None:
        try:
            return load_catalog(place.schema.read_text(encoding="utf-8"))
        except OSError as failure:
            message = f"{place.schema} cannot be read: {failure.strerror}"
            raise SourceRefused(message) from failure
        except UnicodeDecodeError as failure:
            message = f"{place.schema} is not UTF-8: byte {failure.start + 1} cannot be read"
            raise SourceRefused(message, hint="save it as UTF-8") from failure
    if not resolver.can_address(target.graph):
        return None
    with omnigraph.open(resolver.graph(target.graph)) as graph:
        return catalog_of(graph.branch(target.branch))
