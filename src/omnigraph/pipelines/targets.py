"""One target of a run: the commit it makes, once, however often it is tried.

The key of a target is on the record of its commit. So the first thing an attempt does is to look
for it, and nobody has to remember whether an earlier attempt came through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    BranchRefused,
    CommitNotFound,
    OmnigraphError,
    SnapshotGone,
)
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.ledger import SUCCEEDED, Run, TargetRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult
    from omnigraph.schema.catalog import Catalog

# What is read, once somebody needs it.
Records = Callable[[], "tuple[SparkSession, Mapping[str, DataFrame]]"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a target: its graph, its slot, and what to do with rejected rows."""

    pipeline: Pipeline
    target: Target
    graph: Graph
    slot: str
    rejects: str | None = None
    progress: Any = None  # Any: what the load of frames takes

    @property
    def key(self) -> str:
        """The key of the commit: the same for every attempt at one slot."""
        return key_of(self.pipeline, self.target, self.slot)

    @property
    def run_branch(self) -> str | None:
        """The branch of the run, if the target has one."""
        own = self.target.run_branch
        if own is None:
            return None
        return own.name.replace("{pipeline}", self.pipeline.name).replace("{slot}", self.slot)

    def run(
        self, begun: TargetRun, records: Records, earlier: Callable[[], Run | None]
    ) -> TargetRun:
        """Make the commit, or find it; `earlier` is a run of the same slot that succeeded here."""
        main = self.graph.branch(self.target.branch)
        if self.run_branch is None:
            found = self._found(main, begun) or self._made_before(earlier(), begun)
            return found or self._loaded(main, begun, records)
        # Whoever ends the branch of a slot says before that it is done: looked at last.
        branch = None if (known := self._made_before(earlier(), begun)) else self._own_branch()
        known = known or self._made_before(earlier(), begun)
        if known is not None or branch is None:
            return known or begun
        loaded = self._found(branch, begun) or self._loaded(branch, begun, records)
        return self._merged(main, branch, loaded)

    def close(self, done: TargetRun) -> None:
        """End the branch of a run that was merged; the ledger says by now that it was."""
        if done.run_branch is not None and done.merged is not None:
            with suppress(BranchRefused):
                self.graph.delete_branch(done.run_branch)

    def _found(self, branch: Branch, begun: TargetRun) -> TargetRun | None:
        made = branch.commit_with_key(self.key)
        if made is None:
            return None
        return replace(begun, status=SUCCEEDED, commit=made.id, is_repeated=True)

    def _loaded(self, branch: Branch, begun: TargetRun, records: Records) -> TargetRun:
        # Spark may not be needed, nor be there.
        from omnigraph.pipelines.frames import mapped_frames  # noqa: PLC0415
        from omnigraph.spark.load import load_frames  # noqa: PLC0415

        _, sources = records()
        frames = mapped_frames(self.target.mapped, catalog_of(branch), sources)
        result = load_frames(
            branch,
            frames,
            mode=self.target.mode,
            key=self.key,
            message=f"pipeline {self.pipeline.name}, {self.slot}",
            on_error=self.target.on_error,
            rejects=self.rejects,
            progress=self.progress,
        )
        return replace(
            begun,
            status=SUCCEEDED,
            commit=result.commit.id,
            entities=dict(_counts(result)),
            rejected=result.rejected or 0,
        )

    def _own_branch(self) -> Branch:
        assert self.run_branch is not None, "asked only where there is one"
        with suppress(BranchExists):
            return self.graph.create_branch(self.run_branch, source=self.target.branch)
        return self.graph.branch(self.run_branch)

    def _merged(self, main: Branch, branch: Branch, loaded: TargetRun) -> TargetRun:
        loaded = replace(loaded, run_branch=branch.name)
        assert self.target.run_branch is not None, "asked only where there is one"
        if not self.target.run_branch.is_automatic:
            return loaded
        merged = main.merge(branch, message=f"pipeline {self.pipeline.name}, {self.slot}")
        return replace(loaded, merged=merged.id or main.head.id)

    def _made_before(self, earlier: Run | None, begun: TargetRun) -> TargetRun | None:
        """What an earlier run of the slot did here, if its commit is still known."""
        found = None if earlier is None else earlier.target(self.target.name)
        if found is None or found.status != SUCCEEDED or found.commit is None:
            return None
        # The commit of a branch that was reviewed and ended is nowhere to be found any more.
        is_reviewed = found.run_branch is not None and found.merged is None
        if not is_reviewed and not self._is_known(found.merged or found.commit):
            return None
        return replace(
            begun,
            status=SUCCEEDED,
            commit=found.commit,
            run_branch=found.run_branch,
            merged=found.merged,
            is_repeated=True,
        )

    def _is_known(self, commit: str) -> bool:
        try:
            self.graph.snapshot(commit)
        except SnapshotGone:
            # One that was collected had been made.
            return True
        except CommitNotFound:
            return False
        return True


def _counts(result: LoadResult) -> Iterator[tuple[str, int]]:
    yield from ((f"node:{name}", count) for name, count in sorted(result.nodes.items()))
    yield from ((f"edge:{name}", count) for name, count in sorted(result.edges.items()))


def key_of(pipeline: Pipeline, target: Target, slot: str) -> str:
    """The idempotency key of a target of a run."""
    return f"pipeline:{pipeline.name}:{target.name}:{slot}"


def catalog_of(branch: Branch) -> Catalog:
    """The schema in force on a branch."""
    return branch.snapshot().view.accepted.catalog


def reconciled(target: TargetRun, graph: Graph) -> TargetRun:
    """A target of a run that did not say how it ended, as the records tell."""
    try:
        made = graph.branch(target.run_branch or target.branch).commit_with_key(target.key)
    except BranchNotFound:
        return target
    except OmnigraphError as failure:
        return replace(target, error=failure.message)
    if made is None:
        return target
    return replace(target, status=SUCCEEDED, commit=made.id)
