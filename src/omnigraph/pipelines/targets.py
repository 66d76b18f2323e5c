"""One target of a run: the commit it makes, once, however often it is tried.

The key of a target is on the record of its commit. So the first thing an attempt does is to look
for it, back to the version above which the first attempt began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from omnigraph.errors import BranchExists, BranchNotFound, OmnigraphError
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.ledger import SUCCEEDED, TargetRun
from omnigraph.pipelines.once import Once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult
    from omnigraph.schema.catalog import Catalog
    from omnigraph.storage.objects import Objects

# The branch of a run is the run's own: all its commits are looked at.
_ALL: Final = 0


class Records(Protocol):
    """What is read, once somebody needs it."""

    def __call__(self) -> tuple[SparkSession, Mapping[str, DataFrame]]:
        """The session and a frame for each source."""

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read, if they were counted."""

    def require_same(self) -> None:
        """Refuse what was read if a source is not as it was when the run began."""

    def keep(self) -> None:
        """A target has them now: the others get the same."""

    def forget(self) -> None:
        """Read them anew when they are asked for again, unless a target has them."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a target: its graph, its slot, and what to do with rejected rows."""

    pipeline: Pipeline
    target: Target
    graph: Graph
    slot: str
    once: Once
    rejects: str | None = None
    progress: Any = None  # Any: what the load of frames takes

    @property
    def key(self) -> str:
        """The key of the commit: the same for every attempt at one slot."""
        return key_of(self.pipeline, self.target, self.slot)

    @property
    def run_branch(self) -> str | None:
        """The branch of the run, if the target has one."""
        return run_branch_of(self.pipeline, self.target, self.slot)

    def run(self, begun: TargetRun, records: Records) -> TargetRun:
        """Make the commit, or find it."""
        made = self._made_before(begun) or self._made(begun, records)
        # Before its branch is ended: nobody would find the commit any more.
        self.once.finish(made)
        return made

    def _made(self, begun: TargetRun, records: Records) -> TargetRun:
        main = self.graph.branch(self.target.branch)
        if self.run_branch is None:
            made = self.once.look(main)
            if made is not None:
                return self._found(main, made, begun)
            return self._loaded(main, begun, records)
        branch = self._own_branch()
        # Whoever ends the branch of a slot says before that it is done: looked at last.
        known = self._made_before(begun)
        if known is not None:
            return known
        commit = branch.commit_with_key(self.key, after=_ALL)
        if commit is not None:
            return self._merged(main, branch, self._found(branch, commit.id, begun))
        return self._merged(main, branch, self._loaded(branch, begun, records))

    def close(self, done: TargetRun) -> None:
        """End the branch of a run that was merged; what fails here, the next run does."""
        if done.run_branch is not None and done.merged is not None:
            with suppress(OmnigraphError):
                self.graph.delete_branch(done.run_branch)

    def _found(self, branch: Branch, commit: str, begun: TargetRun) -> TargetRun:
        return replace(_with_commit(begun, branch, commit), is_repeated=True)

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
            staged=records.require_same,
        )
        if result.is_repeated:
            # Another run of the slot was faster: nothing was read here.
            return self._found(branch, result.commit.id, begun)
        records.keep()
        return replace(
            begun,
            status=SUCCEEDED,
            commit=result.commit.id,
            rows_read=records.rows(self.target),
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

    def _made_before(self, begun: TargetRun) -> TargetRun | None:
        """What an earlier run of the slot did here; its commit may be collected by now."""
        found = self.once.done()
        if found is None:
            return None
        return replace(found, key=begun.key, attempts=begun.attempts, is_repeated=True)


def _with_commit(target: TargetRun, branch: Branch, commit: str) -> TargetRun:
    """A target whose commit alone is known; how many rows were rejected is not on its record."""
    entities = branch.entities_written(commit)
    return replace(target, status=SUCCEEDED, commit=commit, entities=entities, rejected=None)


def _counts(result: LoadResult) -> Iterator[tuple[str, int]]:
    yield from ((f"node:{name}", count) for name, count in sorted(result.nodes.items()))
    yield from ((f"edge:{name}", count) for name, count in sorted(result.edges.items()))


def key_of(pipeline: Pipeline, target: Target, slot: str) -> str:
    """The idempotency key of a target of a run."""
    return f"pipeline:{pipeline.name}:{target.name}:{slot}"


def catalog_of(branch: Branch) -> Catalog:
    """The schema in force on a branch."""
    return branch.snapshot().view.accepted.catalog


def run_branch_of(pipeline: Pipeline, target: Target, slot: str) -> str | None:
    """The name of the branch of a run, if the target has one."""
    own = target.run_branch
    if own is None:
        return None
    return own.name.replace("{pipeline}", pipeline.name).replace("{slot}", slot)


def reconciled(target: TargetRun, graph: Graph, pipeline: str, objects: Objects) -> TargetRun:
    """A target of a run that did not say how it ended, as its graph tells."""
    try:
        main = graph.branch(target.branch)
        once = Once(objects, pipeline, life=main.life, key=target.key)
        done = once.done()
        if done is not None:
            return done
        branch = main if target.run_branch is None else graph.branch(target.run_branch)
        after = once.after() if target.run_branch is None else _ALL
        made = branch.commit_with_key(target.key, after=after)
        return target if made is None else _with_commit(target, branch, made.id)
    except BranchNotFound:
        return target
    except OmnigraphError as failure:
        return replace(target, error=failure.message)
