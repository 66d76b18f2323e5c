"""Writes: mutations, loads, schema changes, and what becomes of branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.engine import Text
from omnigraph.errors import BranchExistsError, BranchNotFoundError, InvalidArgumentError
from omnigraph.operations.graph_reads import ReadBounds, choose_smaller
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph.engine import Branch, Graph, MergeResult
    from omnigraph.wire.wire_requests import (
        BranchCreateRequest,
        BranchMergePlanRequest,
        BranchMergeRequest,
        ChangeRequest,
        CommitPickPlanRequest,
        CommitPickRequest,
        SchemaApplyRequest,
        TagCreateRequest,
    )

JsonObject = dict[str, Any]  # Any: a JSON document
# What an operation on a branch counts for among the bytes that an actor has under way.
BRANCH_BYTES: Final = 256


def run_mutation(
    graph: Graph, asked: ChangeRequest, bounds: ReadBounds, *, if_commit: str | None = None
) -> JsonObject:
    """Run a mutation within the bounds of a read, also when its client goes: ChangeOutput."""
    branch = _open_to_change(graph, asked.branch)
    result = branch.mutate(
        asked.query,
        name=asked.name,
        params=asked.params,
        if_commit=if_commit,
        message=asked.message,
        key=asked.key,
        retries=asked.retries,
        dry_run=asked.dry_run,
        timeout=choose_smaller(asked.timeout, bounds.timeout_s),
        memory=choose_smaller(asked.memory, bounds.memory_bytes),
    )
    return result.to_json()


def _open_to_change(graph: Graph, name: str | None) -> Branch:
    branch = MAIN_BRANCH if name is None else name
    graph.authorize(Act(Action.CHANGE, branch))
    return graph.branch(branch)


@dataclass(frozen=True, slots=True)
class LoadTerms:
    """A load: its records, the branch, and what that starts from if it does not exist."""

    data: str | bytes
    mode: str
    branch: str = MAIN_BRANCH
    base: str | None = None
    type_name: str | None = None
    dialect: str = "strict"
    if_commit: str | None = None
    message: str | None = None
    key: str | None = None
    is_dry: bool = False


def run_load(graph: Graph, unguarded: Graph, terms: LoadTerms) -> JsonObject:
    """Load records: IngestOutput.

    A branch that has to be created is created after the records were checked on its base, so that
    wrong ones leave nothing; `unguarded` is the graph for that check, which shows no entity.
    """
    graph.authorize(Act(Action.CHANGE, terms.branch))
    if terms.is_dry and terms.base is not None:
        raise InvalidArgumentError("dry_run", "it creates no branch", hint="leave 'from' out")
    branch, is_created = _open_or_create(graph, unguarded, terms)
    document = _load(branch, terms, is_dry=terms.is_dry)
    return document | {"base_branch": terms.base, "branch_created": is_created}


def _open_or_create(graph: Graph, unguarded: Graph, terms: LoadTerms) -> tuple[Branch, bool]:
    try:
        return graph.branch(terms.branch), False
    except BranchNotFoundError:
        if terms.base is None:
            raise
        graph.authorize(Act(Action.BRANCH_CREATE, terms.base, terms.branch))
    _load(unguarded.branch(terms.base), terms, is_dry=True)
    try:
        return graph.create_branch(terms.branch, source=terms.base), True
    except BranchExistsError:
        # Another request created it meanwhile.
        return graph.branch(terms.branch), False


def _load(branch: Branch, terms: LoadTerms, *, is_dry: bool) -> JsonObject:
    result = branch.load(
        Text(terms.data, "data"),
        mode=terms.mode,  # type: ignore[arg-type]  # checked by the engine
        type=terms.type_name,
        dialect=terms.dialect,  # type: ignore[arg-type]  # checked by the engine
        if_commit=terms.if_commit,
        message=None if is_dry else terms.message,
        key=None if is_dry else terms.key,
        engine="local",
        dry_run=is_dry,
    )
    return result.to_json()


def apply_schema(graph: Graph, asked: SchemaApplyRequest) -> JsonObject:
    """Bring a schema into force: SchemaApplyOutput."""
    branch = MAIN_BRANCH if asked.branch is None else asked.branch
    graph.authorize(Act(Action.SCHEMA_APPLY, target_branch=branch))
    result = graph.branch(branch).apply_schema(
        asked.schema_source,
        message=asked.message,
        key=asked.key,
        if_schema=asked.if_schema,
        allow_data_loss=asked.allow_data_loss,
        convert=asked.convert,
        dry_run=asked.dry_run,
    )
    return result.to_json()


def list_branches(graph: Graph) -> JsonObject:
    """The names of all branches: BranchListOutput."""
    return {"branches": sorted(graph.branches())}


def create_branch(graph: Graph, asked: BranchCreateRequest) -> JsonObject:
    """Start a branch: BranchCreateOutput."""
    source = MAIN_BRANCH if asked.source is None else asked.source
    graph.create_branch(asked.name, source=source)
    return {"uri": graph.uri, "from": source, "name": asked.name, "actor_id": graph.actor}


def delete_branch(graph: Graph, name: str) -> JsonObject:
    """End a branch: BranchDeleteOutput."""
    graph.delete_branch(name)
    return {"uri": graph.uri, "name": name, "actor_id": graph.actor}


def revert_commit(graph: Graph, asked: CommitPickRequest) -> JsonObject:
    """Undo what a commit changed: CommitPickOutput."""
    return _pick(_open_to_change(graph, asked.branch).revert, asked)


def pick_commit(graph: Graph, asked: CommitPickRequest) -> JsonObject:
    """Change on a branch what a commit changed elsewhere: CommitPickOutput."""
    return _pick(_open_to_change(graph, asked.branch).cherry_pick, asked)


def _pick(pick: Callable[..., MergeResult], asked: CommitPickRequest) -> JsonObject:
    result = pick(
        asked.commit,
        prefer=asked.prefer,
        by=asked.by,
        message=asked.message,
        if_commit=asked.if_commit,
        key=asked.key,
    )
    return result.to_json()


def plan_revert(graph: Graph, asked: CommitPickPlanRequest) -> JsonObject:
    """What a revert would do: MergePlanOutput."""
    branch = _open_to_change(graph, asked.branch)
    return branch.plan_revert(asked.commit, prefer=asked.prefer, by=asked.by).to_json()


def plan_pick(graph: Graph, asked: CommitPickPlanRequest) -> JsonObject:
    """What a cherry-pick would do: MergePlanOutput."""
    branch = _open_to_change(graph, asked.branch)
    return branch.plan_cherry_pick(asked.commit, prefer=asked.prefer, by=asked.by).to_json()


def list_tags(graph: Graph) -> JsonObject:
    """The tags of a graph: TagListOutput."""
    return {"tags": [each.to_json() for each in graph.tags()]}


def create_tag(graph: Graph, asked: TagCreateRequest) -> JsonObject:
    """Name a commit: TagOutput."""
    return graph.tag(asked.name, MAIN_BRANCH if asked.at is None else asked.at).to_json()


def delete_tag(graph: Graph, name: str) -> JsonObject:
    """Free the name of a tag: TagDeleteOutput."""
    graph.delete_tag(name)
    return {"uri": graph.uri, "name": name, "actor_id": graph.actor}


def plan_merge(graph: Graph, asked: BranchMergePlanRequest) -> JsonObject:
    """What a merge would do: MergePlanOutput."""
    branch = _open_to_merge(graph, asked.source, asked.target)
    found = branch.plan_merge(asked.source, prefer=asked.prefer, by=asked.by, resolve=asked.resolve)
    return found.to_json()


def merge_branch(graph: Graph, asked: BranchMergeRequest) -> JsonObject:
    """Merge a branch: BranchMergeOutput."""
    result = _open_to_merge(graph, asked.source, asked.target).merge(
        asked.source,
        prefer=asked.prefer,
        by=asked.by,
        resolve=asked.resolve,
        delete_branch=asked.delete_branch,
        message=asked.message,
        if_commit=asked.if_commit,
        key=asked.key,
    )
    return result.to_json()


def _open_to_merge(graph: Graph, source: str, target: str | None) -> Branch:
    name = MAIN_BRANCH if target is None else target
    graph.authorize(Act(Action.BRANCH_MERGE, source, name))
    return graph.branch(name)
