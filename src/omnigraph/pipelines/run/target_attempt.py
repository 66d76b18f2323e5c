"""One target of a run: the commit it makes, once, however often it is tried.

An attempt looks first for the load of its slot that the target has. Where there is none in force,
it makes one, with a key that says which load it follows: the key is on the record of the commit, so
that of several attempts one makes it. The message of the commit ends with the run that made it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from omnigraph.engine.branch_log import BranchLog
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import (
    BranchExistsError,
    BranchNotFoundError,
    OmnigraphError,
    SnapshotGoneError,
    TooFewRowsError,
    TooManyDeletedError,
    TooManyRejectedError,
    UncompiledValueError,
)
from omnigraph.pipelines.config.definition import Pipeline, Target
from omnigraph.pipelines.ledger.idempotency import (
    IdempotencyKey,
    LastLoad,
    Load,
    LoadHistory,
    TargetKeys,
)
from omnigraph.pipelines.ledger.rule_outcomes import RuleOutcome
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, UNCHANGED, TargetRun
from omnigraph.pipelines.run.direct_rules import DirectRules, plan_direct_rules
from omnigraph.pipelines.run.run_slot import Slot

if TYPE_CHECKING:
    from omnigraph import Branch, Commit, Graph
    from omnigraph.engine import LoadResult
    from omnigraph.storage.objects.object_store import Objects

if TYPE_CHECKING:
    from omnigraph import Branch
    from omnigraph.bulk.bulk_sources import LoadCounts
    from omnigraph.engine import LoadResult
    from omnigraph.pipelines.config.expectations import RejectLimit
    from omnigraph.pipelines.sources.provenance import SlotSources
    from omnigraph.schema.catalog import Catalog


# The branch of a run is the run's own: all its commits are examined.
_ALL_VERSIONS: Final = 0
_MADE_BY: Final = re.compile(r", run ([0-9A-HJKMNP-TV-Z]{26})$")


class RecordSource(Protocol):
    """What is read, once it is needed."""

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load what a target takes of them, unless a source is not as it was at the start."""

    def count_rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read, if they were counted."""

    def retain(self) -> None:
        """A target has them now: the others get the same."""

    def discard(self) -> None:
        """Read them anew when they are asked for again, unless a target has them."""


@dataclass(frozen=True, slots=True)
class TargetAttempt:
    """An attempt of a run at a target: its graph, its slot, and where rejected rows go.

    `store` is that of the graph, for what runs note there.
    """

    pipeline: Pipeline
    target: Target
    graph: Graph
    slot: Slot
    run_id: str
    store: Objects
    rejects: str | None = None
    progress: Any = None  # Any: what the load of frames takes
    # Raises if the run was given up.
    require_alive: Callable[[], None] = lambda: None

    @property
    def run_branch(self) -> str | None:
        """The branch of the run, if the target has one."""
        return run_branch_of(self.pipeline, self.target, self.slot.name)

    def begin_run(self, begun: TargetRun) -> TargetRun:
        """The target with the load of the slot that it has, or else with the key of a new one."""
        last = self._find_last_load()
        found = self._find_load_in_force(last, begun)
        return found or replace(begun, key=self._keys.format_next_key(self.slot.name, last.load))

    def run(self, begun: TargetRun, records: RecordSource) -> TargetRun:
        """Make the commit with the key, or find it."""
        made = self._make_commit(begun, records)
        if made.commit is None:
            return made
        # It has its commit, whatever becomes of the notes.
        with suppress(OmnigraphError):
            self._open_key(made.key).record_outcome(made)
            self._loads.find_last_load()
        return made

    def _find_last_load(self) -> LastLoad:
        """The newest load: of any slot if this one is what files hold, else of this slot."""
        if self.slot.is_content:
            return self._loads.find_last_load()
        once = self._open_key(self._keys.format_first_key(self.slot.name))
        try:
            return self._loads.find_last_of_slot(self.slot.name, after=once.find_unused_version())
        except SnapshotGoneError:
            done = once.find_outcome()
            if done is None or done.commit is None:
                raise
            # A piece of work is done once: what became of its commit since is not known any more.
            load = Load(done.key, done.commit, done.merged or done.commit)
            return LastLoad(load, version=0, head=done.commit)

    def _find_load_in_force(self, last: LastLoad, begun: TargetRun) -> TargetRun | None:
        """The load of this slot, if the target has it and it was not undone."""
        load = last.load
        if load is None or not last.is_in_force:
            return None
        if self._keys.slot_of(load.key) != self.slot.name:
            return None
        once = self._open_key(load.key)
        found = once.find_outcome()
        if found is None:
            main, begun = self.graph.branch(self.target.branch), replace(begun, key=load.key)
            found = _with_commit(begun, main, load.commit, _parse_run_id(load.message))
            found = replace(found, merged=_merge_of(load))
            with suppress(OmnigraphError):
                once.record_outcome(found)
        merged = _merge_of(load) or found.merged
        # It is on the branch of the target, whatever it waited for when it was noted.
        found = replace(found, merged=merged, awaits_review=False)
        return self._mark_repeated(replace(found, attempts=begun.attempts))

    def _make_commit(self, begun: TargetRun, records: RecordSource) -> TargetRun:
        main = self.graph.branch(self.target.branch)
        once = self._open_key(begun.key)
        if self.run_branch is None:
            made = once.find_commit(main)
            if made is not None:
                return self._adopt_commit(main, made, begun)
            return self._load_records(main, begun, records)
        if once.find_unused_version() is None:
            once.record_unused(main.head.version)
        branch = self._open_run_branch()
        # Another run may have merged and ended the branch, so that this one made it anew: then the
        # target has the load by now.
        known = self._find_load_in_force(self._find_last_load(), begun)
        if known is not None:
            return replace(known, run_branch=branch.name)
        commit = BranchLog(branch).find_by_key(begun.key, after=_ALL_VERSIONS)
        if commit is not None:
            return self._merge_run_branch(main, branch, self._adopt_commit(branch, commit, begun))
        return self._merge_run_branch(main, branch, self._load_records(branch, begun, records))

    def close_run_branch(self, done: TargetRun) -> None:
        """End the branch of a run that was merged; what fails here, the next run does."""
        if done.run_branch is not None and done.merged is not None:
            with suppress(OmnigraphError):
                # The note outlives the commit, which is collected some time after its branch.
                if self._open_key(done.key).find_outcome() is not None:
                    self.graph.delete_branch(done.run_branch)

    def _adopt_commit(self, branch: Branch, commit: Commit, begun: TargetRun) -> TargetRun:
        return self._mark_repeated(
            _with_commit(begun, branch, commit.id, _parse_run_id(commit.message))
        )

    def _mark_repeated(self, found: TargetRun) -> TargetRun:
        """What is there already, which another run made, or an earlier attempt of this one."""
        return replace(found, is_repeated=found.made_by != self.run_id)

    def _load_records(self, branch: Branch, begun: TargetRun, records: RecordSource) -> TargetRun:
        rules: list[RuleOutcome] = []
        terms = LoadRequest(
            self.target,
            begun.key,
            self._message,
            self.rejects,
            self.progress,
            rules,
            require_alive=self.require_alive,
        )
        result = records.load(branch, terms)
        if result.is_repeated:
            # Another run of the slot was faster: nothing was read here.
            return self._adopt_commit(branch, result.commit, begun)
        records.retain()
        begun = replace(begun, rules=tuple(rules))
        if result.is_unchanged:
            rows_read = records.count_rows(self.target)
            return replace(
                begun,
                status=UNCHANGED,
                rows_read=rows_read,
                rejected=result.rejected,
                rejects=result.rejects,
            )
        return replace(
            begun,
            status=SUCCEEDED,
            commit=result.commit.id,
            rows_read=records.count_rows(self.target),
            entities=dict(_iter_counts(result)),
            deleted=dict(result.deleted),
            rejected=result.rejected or 0,
            rejects=result.rejects,
            made_by=self.run_id,
        )

    @property
    def _message(self) -> str:
        return f"pipeline {self.pipeline.name}, {self.slot.name}, run {self.run_id}"

    def _open_run_branch(self) -> Branch:
        assert self.run_branch is not None, "asked only where there is one"
        with suppress(BranchExistsError):
            return self.graph.create_branch(self.run_branch, source=self.target.branch)
        return self.graph.branch(self.run_branch)

    def _merge_run_branch(self, main: Branch, branch: Branch, loaded: TargetRun) -> TargetRun:
        if loaded.status == UNCHANGED:
            self.graph.delete_branch(branch.name)
            return replace(loaded, run_branch=None)
        loaded = replace(loaded, run_branch=branch.name)
        assert self.target.run_branch is not None, "asked only where there is one"
        if not self.target.run_branch.is_automatic:
            number = self._open_proposal(branch, loaded.key)
            return replace(loaded, awaits_review=True, proposal=number)
        self.require_alive()
        merged = main.merge(branch, message=self._message)
        return replace(loaded, merged=merged.id or main.head.id)

    def _open_proposal(self, branch: Branch, key: str) -> int:
        """Ask to merge the branch of the run; the key finds the proposal of an earlier attempt."""
        title = f"pipeline {self.pipeline.name}, {self.slot.name}"
        body = f"The load of run {self.run_id}, by definition {self.pipeline.digest}."
        proposal = self.graph.open_proposal(
            branch.name, title=title, target=self.target.branch, body=body, key=key
        )
        return proposal.number

    @property
    def _keys(self) -> TargetKeys:
        return TargetKeys(self.pipeline.name, self.target.name)

    @property
    def _loads(self) -> LoadHistory:
        return LoadHistory(self.store, self.graph.branch(self.target.branch), self._keys)

    def _open_key(self, key: str) -> IdempotencyKey:
        life = self.graph.branch(self.target.branch).life
        return IdempotencyKey(self.store, self.pipeline.name, life=life, key=key)


def _with_commit(target: TargetRun, branch: Branch, commit: str, made_by: str | None) -> TargetRun:
    """A target whose commit alone is known; how many rows were rejected is not on its record."""
    return replace(
        target,
        status=SUCCEEDED,
        commit=commit,
        entities=BranchLog(branch).count_written(commit),
        deleted=BranchLog(branch).count_deleted(commit),
        rejected=None,
        made_by=made_by,
    )


def _merge_of(load: Load) -> str | None:
    return None if load.brought_by == load.commit else load.brought_by


def _parse_run_id(message: str | None) -> str | None:
    """The run that made a commit, as its message says."""
    found = _MADE_BY.search(message or "")
    return None if found is None else found[1]


def _iter_counts(result: LoadResult) -> Iterator[tuple[str, int]]:
    yield from ((f"node:{name}", count) for name, count in sorted(result.nodes.items()))
    yield from ((f"edge:{name}", count) for name, count in sorted(result.edges.items()))


def key_of(pipeline: Pipeline, target: Target, slot: str) -> str:
    """The idempotency key of a slot that no load of the target precedes."""
    return TargetKeys(pipeline.name, target.name).format_first_key(slot)


def run_branch_of(pipeline: Pipeline, target: Target, slot: str) -> str | None:
    """The name of the branch of a run, if the target has one."""
    own = target.run_branch
    if own is None:
        return None
    return own.name.replace("{pipeline}", pipeline.name).replace("{slot}", slot)


@dataclass(frozen=True, slots=True)
class UnreportedRun:
    """A run that did not say what became of its targets, and the pipeline it is of."""

    pipeline: str
    run_id: str

    def reconcile_target(self, target: TargetRun, graph: Graph, objects: Objects) -> TargetRun:
        """A target as its graph shows it: with a commit only if this very run made it."""
        try:
            found = self._find_outcome(target, graph, objects)
        except BranchNotFoundError:
            return target
        except OmnigraphError as failure:
            return replace(target, error=failure.message)
        if found is None or found.made_by != self.run_id:
            return target
        # Another run that found it later may have noted it first.
        return replace(found, is_repeated=False)

    def _find_outcome(self, target: TargetRun, graph: Graph, objects: Objects) -> TargetRun | None:
        main = graph.branch(target.branch)
        once = IdempotencyKey(objects, self.pipeline, life=main.life, key=target.key)
        done = once.find_outcome()
        if done is not None:
            return done
        branch = main if target.run_branch is None else graph.branch(target.run_branch)
        after = once.find_unused_version() if target.run_branch is None else _ALL_VERSIONS
        made = BranchLog(branch).find_by_key(target.key, after=after)
        if made is None:
            return None
        return _with_commit(target, branch, made.id, _parse_run_id(made.message))


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """How a target is loaded: its key and message, and where records go that are left out."""

    target: Target
    key: str
    message: str
    rejects: str | None = None
    progress: Any = None  # Any: what the load of frames takes
    # What was counted of rules is added here.
    rules: list[RuleOutcome] = field(default_factory=list)
    # How many records were read of sources of which Spark does not count them.
    records: dict[str, int] = field(default_factory=dict)
    # Raises if the run was given up: asked before it publishes.
    require_alive: Callable[[], None] = lambda: None


def load_records(
    branch: Branch,
    sources: SlotSources,
    terms: LoadRequest,
    *,
    staged: Callable[[], None],
) -> LoadResult:
    """Load the records of a target; `staged` is asked when all of them were read."""
    direct = plan_direct_rules(terms.target.mapping, catalog_of(branch), sources.states)
    try:
        return _load_rules(branch, sources, terms, direct, staged=staged)
    except UncompiledValueError:
        return _load_rules(branch, sources, terms, DirectRules(), staged=staged)


def _load_rules(
    branch: Branch,
    sources: SlotSources,
    terms: LoadRequest,
    direct: DirectRules,
    *,
    staged: Callable[[], None],
) -> LoadResult:
    """Load what some rules read from files, and what the others are frames of."""
    # Spark may not be needed, nor be there.
    from omnigraph.pipelines.mapping.mapping_frames import build_frames  # noqa: PLC0415
    from omnigraph.pipelines.mapping.rule_observer import RuleObserver  # noqa: PLC0415
    from omnigraph.pipelines.sources.provenance import RecordLocator  # noqa: PLC0415

    def accept(counts: LoadCounts) -> None:
        terms.require_alive()
        terms.rules[:] = observer.check_expectations(counts.rejected_by_type)
        terms.records.update(counts.records_by_source)
        require_reject_limit(target, counts)

    observer, catalog = RuleObserver(), catalog_of(branch)
    target = terms.target
    rules = enumerate(target.mapping.rules)
    others = tuple(rule for number, rule in rules if number not in direct.rules)
    result: LoadResult = import_spark_module("frame_load").load_frames(
        branch,
        build_frames(
            replace(target.mapping, rules=others),
            catalog,
            sources.frames,
            mode=target.mode,
            observer=observer,
            reported=direct.reported,
        ),
        ranges=direct.ranges,
        spark=sources.session,
        mode=target.mode,
        key=terms.key,
        message=terms.message,
        on_error=target.on_error,
        rejects=terms.rejects,
        progress=terms.progress,
        staged=staged,
        locate=RecordLocator(sources),
        accept=accept,
        only_changed=target.mode == "merge",
        whole_types=frozenset(dict(iter_delete_limits(target, catalog))),
        accept_missing=partial(require_delete_limit, target, catalog),
    )
    return result


def iter_delete_limits(target: Target, catalog: Catalog) -> Iterator[tuple[str, RejectLimit]]:
    """How many missing entities of which types the rules of a target delete at most."""
    for rule in target.mapping.rules:
        if rule.missing_max is not None:
            edge = catalog.find_edge(rule.type_name) if rule.is_edge else None
            name = f"node:{rule.type_name}" if edge is None else f"edge:{edge.name}"
            yield name, rule.missing_max


def require_delete_limit(
    target: Target, catalog: Catalog, type_name: str, missing: int, committed: int
) -> None:
    """Refuse to delete more of the entities of a type than a rule allows, because they lack."""
    for name, limit in iter_delete_limits(target, catalog):
        if name == type_name and not limit.allows_missing(missing, committed):
            raise TooManyDeletedError(type_name, missing, committed, allowed=f"at most {limit}")


def require_reject_limit(target: Target, counts: LoadCounts) -> None:
    """Refuse a load that leaves out more rows than a target tolerates, or that has too few."""
    rows = counts.written + counts.rejected
    if not target.max_rejected.allows_rejected(counts.rejected, rows):
        allowed = f"at most {target.max_rejected}"
        raise TooManyRejectedError(counts.rejected, rows, allowed=allowed, rejects=counts.rejects)
    if counts.written < target.min_rows:
        raise TooFewRowsError(counts.written, minimum=target.min_rows)


def catalog_of(branch: Branch) -> Catalog:
    """The schema in force on a branch."""
    return branch.snapshot().view.accepted.catalog
