"""The pipelines of an applied cluster, as what runs them takes them.

A definition is that of one revision. Its runs are recorded in the root of the cluster, sign as
`pipeline:NAME` and pass the gate of each graph they write to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from omnigraph.clusters.applied_cluster import Cluster, open_cluster
from omnigraph.config.yaml_reader import DOCUMENT_START
from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.pipelines.config.cluster_definition import decode_definition
from omnigraph.pipelines.config.definition import Pipeline, TargetGraph, compute_next_slot
from omnigraph.pipelines.config.definition_reader import DefinitionContext
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.pipelines.run.scheduler import ScheduledRun, run_due


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where relative paths of definitions start, and the file that variables are taken from."""

    folder: Path = field(default_factory=Path.cwd)
    env_file: Path | None = None


@dataclass(frozen=True, slots=True)
class AppliedPipeline:
    """A definition of a revision, and what its runs need of the cluster."""

    pipeline: Pipeline
    cluster: Cluster
    # Whether its very digest may overwrite data.
    is_approved: bool

    def open_graph(self, graph: str, _uri: str, actor: str | None) -> Graph:
        """The graph of a target, which asks the policy that is applied to it."""
        return self.cluster.graph(graph, actor=actor)

    def complete(self, options: RunOptions) -> RunOptions:
        """The options of a run with what the cluster decides."""
        digest = self.pipeline.digest
        approved = (digest,) if self.is_approved else ()
        return replace(
            options,
            approve=digest if self.is_approved else None,
            approved=approved,
            open_graph=self.open_graph,
            revision=self.cluster.revision,
        )


def require_applied(root: str, names: Iterable[str]) -> None:
    """Refuse names of pipelines that are not applied."""
    cluster = open_cluster(root)
    for name in names:
        cluster.stored_definition(name)


def read_applied(cluster: Cluster, name: str, place: RunPlace) -> AppliedPipeline:
    """The definition of a pipeline, as it is applied."""
    stored = cluster.stored_definition(name)
    graphs = {
        graph_id: TargetGraph(uri, None, DOCUMENT_START)
        for graph_id, uri in cluster.graphs().items()
    }
    label = f"{stored.address} of revision {cluster.revision}"
    context = DefinitionContext(label, place.folder.absolute(), name, graphs, ledger=cluster.root)
    pipeline = decode_definition(stored.payload, context, stored.digest)
    if place.env_file is not None:
        pipeline = replace(pipeline, env_file=place.env_file.absolute())
    return AppliedPipeline(pipeline, cluster, stored.is_approved)


@dataclass(frozen=True, slots=True)
class PipelineWorker:
    """Runs what is due in a cluster; any number of them may, because a slot is written once."""

    root: str
    place: RunPlace
    options: RunOptions
    # Only these pipelines; all if empty.
    only: tuple[str, ...] = ()

    def run_due(self, now: datetime) -> Iterator[ScheduledRun]:
        """Run each pipeline whose newest slot was not run; one failure stops no other.

        Each is read from the newest revision when it is its turn.
        """
        for name in self._list_names():
            try:
                applied = read_applied(open_cluster(self.root), name, self.place)
            except OmnigraphError as failure:
                yield ScheduledRun(name, "", error=failure.message)
                continue
            options = replace(applied.complete(self.options), yields_to_others=True)
            yield from run_due([applied.pipeline], now, options)

    def find_next_due(self, now: datetime) -> datetime | None:
        """When the next pipeline is due; None if none has a schedule."""
        schedules = open_cluster(self.root).pipeline_schedules()
        slots = [
            compute_next_slot(each, now)
            for name, each in schedules.items()
            if not self.only or name in self.only
        ]
        return min(slots, default=None)

    def _list_names(self) -> list[str]:
        """The pipelines of the newest revision that this worker runs."""
        known = open_cluster(self.root).pipelines()
        return [name for name in known if not self.only or name in self.only]
