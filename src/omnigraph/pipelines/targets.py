"""One target of a run: the commit it makes, once, however often it is tried.

The key of a target is on the record of its commit. So the first thing an attempt does is to look
for it, back to the version above which the first attempt began. The message of the commit ends with
the run that made it, so that the ledger can tell which one did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from omnigraph.errors import BranchExists, BranchNotFound, OmnigraphError
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.ledger import SUCCEEDED, TargetRun
from omnigraph.pipelines.loading import LoadTerms
from omnigraph.pipelines.once import Once

if TYPE_CHECKING:
    from omnigraph import Branch, Commit, Graph
    from omnigraph.engine import LoadResult
    from omnigraph.storage.objects import Objects

# The branch of a run is the run's own: all its commits are looked at.
_ALL: Final = 0
_MADE_BY: Final = re.compile(r", run ([0-9A-HJKMNP-TV-Z]{26})$")


class Records(Protocol):
    """What is read, once somebody needs it."""

    def load(self, branch: Branch, terms: LoadTerms) -> LoadResult:
        """Load what a target takes of them, unless a source is not as it was at the start."""

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read, if they were counted."""

    def keep(self) -> None:
        """A target has them now: the others get the same."""

    def forget(self) -> None:
        """Read them anew when they are asked for again, unless a target has them."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a run at a target: its graph, its slot, and where rejected rows go."""

    pipeline: Pipeline
    target: Target
    graph: Graph
    slot: str
    run_id: str
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
        # It has its commit, whatever becomes of the note.
        with suppress(OmnigraphError):
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
            return self._merged(main, branch, self._found(branch, commit, begun))
        return self._merged(main, branch, self._loaded(branch, begun, records))

    def close(self, done: TargetRun) -> None:
        """End the branch of a run that was merged; what fails here, the next run does."""
        if done.run_branch is not None and done.merged is not None:
            with suppress(OmnigraphError):
                # Without that note nobody would find the commit any more.
                if self.once.done() is not None:
                    self.graph.delete_branch(done.run_branch)

    def _found(self, branch: Branch, commit: Commit, begun: TargetRun) -> TargetRun:
        return self._compared(_with_commit(begun, branch, commit))

    def _compared(self, found: TargetRun) -> TargetRun:
        """What is there already, which another run made, or an earlier attempt of this one."""
        return replace(found, is_repeated=found.made_by != self.run_id)

    def _loaded(self, branch: Branch, begun: TargetRun, records: Records) -> TargetRun:
        terms = LoadTerms(self.target, self.key, self._message, self.rejects, self.progress)
        result = records.load(branch, terms)
        if result.is_repeated:
            # Another run of the slot was faster: nothing was read here.
            return self._found(branch, result.commit, begun)
        records.keep()
        return replace(
            begun,
            status=SUCCEEDED,
            commit=result.commit.id,
            rows_read=records.rows(self.target),
            entities=dict(_counts(result)),
            rejected=result.rejected or 0,
            rejects=result.rejects,
            made_by=self.run_id,
        )

    @property
    def _message(self) -> str:
        return f"pipeline {self.pipeline.name}, {self.slot}, run {self.run_id}"

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
        merged = main.merge(branch, message=self._message)
        return replace(loaded, merged=merged.id or main.head.id)

    def _made_before(self, begun: TargetRun) -> TargetRun | None:
        """What an earlier run of the slot did here; its commit may be collected by now."""
        found = self.once.done()
        if found is None:
            return None
        return self._compared(replace(found, key=begun.key, attempts=begun.attempts))


def _with_commit(target: TargetRun, branch: Branch, commit: Commit) -> TargetRun:
    """A target whose commit alone is known; how many rows were rejected is not on its record."""
    return replace(
        target,
        status=SUCCEEDED,
        commit=commit.id,
        entities=branch.entities_written(commit.id),
        rejected=None,
        made_by=_maker(commit),
    )


def _maker(commit: Commit) -> str | None:
    """The run that made a commit, as its message tells."""
    found = _MADE_BY.search(commit.message or "")
    return None if found is None else found[1]


def _counts(result: LoadResult) -> Iterator[tuple[str, int]]:
    yield from ((f"node:{name}", count) for name, count in sorted(result.nodes.items()))
    yield from ((f"edge:{name}", count) for name, count in sorted(result.edges.items()))


def key_of(pipeline: Pipeline, target: Target, slot: str) -> str:
    """The idempotency key of a target of a run."""
    return f"pipeline:{pipeline.name}:{target.name}:{slot}"


def run_branch_of(pipeline: Pipeline, target: Target, slot: str) -> str | None:
    """The name of the branch of a run, if the target has one."""
    own = target.run_branch
    if own is None:
        return None
    return own.name.replace("{pipeline}", pipeline.name).replace("{slot}", slot)


@dataclass(frozen=True, slots=True)
class Untold:
    """A run that did not say what became of its targets, and the pipeline it is of."""

    pipeline: str
    run_id: str

    def reconciled(self, target: TargetRun, graph: Graph, objects: Objects) -> TargetRun:
        """A target as its graph tells: with a commit only if this very run made it."""
        try:
            found = self._found(target, graph, objects)
        except BranchNotFound:
            return target
        except OmnigraphError as failure:
            return replace(target, error=failure.message)
        if found is None or found.made_by != self.run_id:
            return target
        # Whoever found it later may have noted it first.
        return replace(found, is_repeated=False)

    def _found(self, target: TargetRun, graph: Graph, objects: Objects) -> TargetRun | None:
        main = graph.branch(target.branch)
        once = Once(objects, self.pipeline, life=main.life, key=target.key)
        done = once.done()
        if done is not None:
            return done
        branch = main if target.run_branch is None else graph.branch(target.run_branch)
        after = once.after() if target.run_branch is None else _ALL
        made = branch.commit_with_key(target.key, after=after)
        return None if made is None else _with_commit(target, branch, made)
