"""Finds the pipeline that a command names: in a file, or in the newest revision of a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from omnigraph.cli.cluster_access import open_cluster
from omnigraph.cli.global_options import Scope
from omnigraph.cli.spark_options import SparkTarget, import_spark_module

if TYPE_CHECKING:
    from omnigraph.clusters.applied_pipelines import AppliedPipeline, RunPlace
    from omnigraph.pipelines.config.definition import Pipeline
    from omnigraph.pipelines.run.pipeline_run import GraphOpener, RunOptions
    from omnigraph.spark.spark_session import SparkOptions

DEFAULT_FOLDER: Final = Path("pipelines")


@dataclass(frozen=True, slots=True)
class RunPlaceOptions:
    """Where definitions of a cluster are run."""

    folder: Annotated[
        Path,
        typer.Option("--folder", metavar="PATH", help="Where relative paths of definitions start."),
    ] = Path()
    env_file: Annotated[
        Path | None,
        typer.Option("--env-file", metavar="PATH", help="A file of NAME=value lines."),
    ] = None

    def resolve(self) -> RunPlace:
        """The place of runs."""
        found: RunPlace = import_pipelines().RunPlace(self.folder, self.env_file)
        return found


@dataclass(frozen=True, slots=True)
class DefinitionPlace:
    """Where definitions are: in a folder, or in a cluster."""

    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="PATH",
            help="The folder of the definitions; of a cluster, where relative paths start.",
            show_default="pipelines; of a cluster, the working directory",
        ),
    ] = None
    env_file: Annotated[
        Path | None,
        typer.Option("--env-file", metavar="PATH", help="Of a cluster: NAME=value lines."),
    ] = None

    @property
    def definitions(self) -> Path:
        """The folder of definitions that are files."""
        if self.env_file is not None:
            raise typer.BadParameter("--env-file needs --cluster: a file names its own env_file")
        return self.folder or DEFAULT_FOLDER

    def resolve(self) -> RunPlace:
        """The place of runs of a cluster."""
        return RunPlaceOptions(self.folder or Path(), self.env_file).resolve()


@dataclass(frozen=True, slots=True)
class LocatedPipeline:
    """A definition, and the cluster it is of."""

    pipeline: Pipeline
    applied: AppliedPipeline | None = None

    def build_options(self, **given: object) -> RunOptions:
        """The options of a run; of a cluster, approvals and policies are those that it has."""
        options: RunOptions = import_module("run.pipeline_run").RunOptions(**given)
        return options if self.applied is None else self.applied.complete(options)

    @property
    def open_graph(self) -> GraphOpener:
        """What opens the graphs of its targets."""
        if self.applied is not None:
            return self.applied.open_graph
        found: GraphOpener = import_module("run.pipeline_run").open_by_address
        return found


def find_pipeline(scope: Scope, name: str, place: DefinitionPlace) -> LocatedPipeline:
    """The pipeline of a name: of the addressed cluster, or a file."""
    if scope.is_addressed:
        applied = import_pipelines().read_applied(open_cluster(scope), name, place.resolve())
        return LocatedPipeline(applied.pipeline, applied)
    reader = import_module("config.definition_reader")
    return LocatedPipeline(reader.read_pipeline(reader.find_definition(name, place.definitions)))


def find_pipelines(
    scope: Scope, names: Sequence[str] | None, place: DefinitionPlace
) -> list[LocatedPipeline]:
    """The pipelines of an addressed cluster that are named, or all of them."""
    known = names or open_cluster(scope).pipelines()
    return [find_pipeline(scope, name, place) for name in known]


def build_spark_options(spark: SparkTarget) -> SparkOptions | None:
    """Where Spark runs, if anything was said about it."""
    if not spark.is_given:
        return None
    made: SparkOptions = import_spark_module("spark_session").SparkOptions(
        spark.master, spark.remote, spark.settings
    )
    return made


def import_module(name: str) -> Any:  # Any: a module that is imported when it is needed
    """A module of pipelines, whose libraries are optional."""
    from omnigraph.errors.query_errors import require_extra

    with require_extra("pipelines"):
        return importlib.import_module(f"omnigraph.pipelines.{name}")


def import_pipelines() -> Any:  # Any: as above
    """What runs the pipelines of clusters."""
    from omnigraph.errors.query_errors import require_extra

    with require_extra("pipelines"):
        return importlib.import_module("omnigraph.clusters.applied_pipelines")
