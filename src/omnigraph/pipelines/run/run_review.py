"""Runs whose branches wait for review: which they are, and merging them into their targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from omnigraph import Graph
from omnigraph.engine.branch_log import BranchLog
from omnigraph.errors import BranchNotFoundError, InvalidArgumentError, OmnigraphError
from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.idempotency import IdempotencyKey
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run, TargetRun
from omnigraph.pipelines.run.pipeline_run import GraphOpener, open_by_address
from omnigraph.storage import open_objects


def reconcile_review(target: TargetRun, graph: Graph) -> TargetRun:
    """A target that waited for review as its graph shows it: merged, given up, or still waiting."""
    if not target.awaits_review or target.run_branch is None:
        return target
    merged = _find_merge(graph, target)
    if merged is not None:
        return replace(target, awaits_review=False, merged=merged)
    try:
        _ = graph.branch(target.run_branch).head
    except BranchNotFoundError:
        return replace(target, awaits_review=False)
    if target.proposal is not None and graph.proposal(target.proposal).read().status == "closed":
        return replace(target, awaits_review=False)
    return target


def _find_merge(graph: Graph, target: TargetRun) -> str | None:
    """The newer commit of the target's branch that brought the commit of its run."""
    since = BranchLog(graph.branch(target.branch)).iter_since()
    return next((by.id for commit, by in since if commit.id == target.commit), None)


def merge_run(
    pipeline: Pipeline,
    resolver: Resolver,
    run_id: str,
    *,
    actor: str | None,
    open_graph: GraphOpener = open_by_address,
) -> Run:
    """Merge every branch of a run that waits for review, and say so in the ledger.

    A merge that is killed before the ledger says so is found in the graph by the next one.
    """
    ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
    run = ledger.find_run(run_id)
    if run is None:
        hint = f"omnigraph pipeline runs {pipeline.name} --awaiting-review lists them"
        raise InvalidArgumentError("run", f"no run {run_id} is in the ledger", hint=hint)
    with ExitStack() as stack:
        graphs: dict[str, Graph] = {}
        for target in run.targets:
            if target.awaits_review and target.graph not in graphs:
                uri = resolver.resolve_graph(target.graph)
                opened = open_graph(target.graph, uri, actor)
                graphs[target.graph] = stack.enter_context(opened)
        waiting = [target for target in run.targets if target.graph in graphs]
        merges = _RunMerges(pipeline, resolver, run)
        done = list(merges.merge_all(waiting, graphs))
        if not done:
            raise InvalidArgumentError("run", f"no branch of run {run_id} waits for review")
        log = ledger.open_run_log(run_id)
        for each in done:
            log.record_target(each)
    found = ledger.find_run(run_id)
    assert found is not None, "it was found before"
    return found


@dataclass(frozen=True, slots=True)
class _RunMerges:
    """The merges of one run."""

    pipeline: Pipeline
    resolver: Resolver
    run: Run

    def merge_all(
        self, waiting: list[TargetRun], graphs: Mapping[str, Graph]
    ) -> Iterator[TargetRun]:
        """The targets that were merged, now or by another process since."""
        for target in waiting:
            found = reconcile_review(target, graphs[target.graph])
            if found.awaits_review:
                yield self._merge_target(found, graphs[target.graph])
            elif found.merged is not None:
                yield found

    def _merge_target(self, target: TargetRun, graph: Graph) -> TargetRun:
        assert target.run_branch is not None, "only a branch waits for review"
        main = graph.branch(target.branch)
        message = f"pipeline {self.pipeline.name}, {self.run.slot}, run {self.run.id}"
        if target.proposal is None:
            merged = main.merge(graph.branch(target.run_branch), message=message)
        else:
            # What the policy requires of a proposal is required here, too.
            merged = graph.proposal(target.proposal).merge(message=message)
        objects = open_objects(self.resolver.resolve_graph(target.graph))
        once = IdempotencyKey(objects, self.pipeline.name, life=main.life, key=target.key)
        with suppress(OmnigraphError):
            # The note outlives the commit, which is collected some time after its branch.
            if once.find_outcome() is not None:
                graph.delete_branch(target.run_branch)
        return replace(target, awaits_review=False, merged=merged.id or main.head.id)
