"""A destination of dlt: each load package is one run of a pipeline, and one commit a target.

The slot of the run is the id of the package, so a package that dlt completes again, after a process
ended in between, finds its commit.
"""

from __future__ import annotations

import shutil
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from dlt.common.configuration import configspec
from dlt.common.pipeline import current_pipeline

from omnigraph.errors import RunFailedError
from omnigraph.pipelines.config.definition import DltSource, FileSource, Pipeline, Source
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources.dlt_packages import (
    PackageClient,
    PackageConfiguration,
    PackageDestination,
    list_table_files,
)

# Beside the definition.
PACKAGES_FOLDER: Final = "dlt-packages"


@configspec
class GraphConfiguration(PackageConfiguration):
    """The definition that packages are run with, and as whom."""

    definition: str = ""
    actor: str | None = field(default=None)

    def __str__(self) -> str:
        return self.definition


class GraphClient(PackageClient):
    """Stages packages, and runs the pipeline when one is complete."""

    config: GraphConfiguration

    @property
    def folder(self) -> Path:
        """Packages of several pipelines do not meet."""
        return super().folder / _find_pipeline_name()

    def complete_load(self, load_id: str) -> None:
        """Make the commits of a package."""
        package = self.folder / load_id
        pipeline = self._bind_package(read_pipeline(Path(self.config.definition)), package)
        slot = f"dlt-{_find_pipeline_name()}-{load_id.replace('.', '-')}"
        ended = run_pipeline(pipeline, RunOptions(slot=slot, actor=self.config.actor))
        if ended.status != SUCCEEDED:
            hint = "mend it and run the pipeline of dlt again: the package waits"
            raise RunFailedError("\n".join(ended.errors), run_id=ended.id, hint=hint)
        # This one stays: dlt may complete it again, if the process ends before it has noted it.
        # The commits are made, so that what cannot be removed does not matter.
        for older in self.folder.iterdir():
            if older != package:
                shutil.rmtree(older, ignore_errors=True)

    def _bind_package(self, pipeline: Pipeline, package: Path) -> Pipeline:
        bound = {name: self._bind(each, package) for name, each in pipeline.sources.items()}
        return replace(pipeline, sources=bound)

    def _bind(self, source: Source, package: Path) -> Source:
        if not isinstance(source, DltSource) or source.function is not None:
            return source
        folder = list_table_files(package, source.table, self.schema)
        return FileSource((str(folder),), format="parquet")


class GraphDestination(PackageDestination):
    """The graphs of a definition as a destination of dlt.

    Sources of the definition with `kind: dlt` and no function are the tables of each package.
    `folder` is where packages are staged: beside the definition if it is not given.
    """

    spec = GraphConfiguration

    def __init__(
        self,
        definition: str,
        *,
        folder: str | None = None,
        actor: str | None = None,
        **others: Any,  # Any: what dlt passes on
    ) -> None:
        path = Path(definition).resolve()
        staged = str(path.parent / PACKAGES_FOLDER) if folder is None else folder
        super().__init__(staged, definition=str(path), actor=actor, **others)

    @property
    def client_class(self) -> type[PackageClient]:
        """What runs the pipeline."""
        return GraphClient


def _find_pipeline_name() -> str:
    active = current_pipeline()
    assert active is not None, "a client works for a pipeline"
    return active.pipeline_name
