"""Commits, and what they changed: page by page, or as a baseline with a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.errors import CommitNotFoundError, InvalidArgumentError, PolicyDeniedError
from omnigraph.operations.graph_reads import ReadBounds, choose_smaller, name_kind, require_read
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.json_rows import encode_document

if TYPE_CHECKING:
    from omnigraph.engine import Baseline, Branch, Diff, Graph
    from omnigraph.wire.wire_requests import (
        ChangeBaselineRequest,
        ChangesQuery,
        DiffRequest,
        EntityBlameRequest,
        EntityHistoryRequest,
        FeedQuery,
    )

JsonObject = dict[str, Any]  # Any: a JSON document


def list_commits(graph: Graph, branch: str | None, limit: int | None = None) -> JsonObject:
    """The commits of a branch, newest first: CommitListOutput."""
    name = MAIN_BRANCH if branch is None else branch
    require_read(graph, name)
    return {"commits": [each.to_json() for each in graph.branch(name).commits(limit=limit)]}


def read_commit(graph: Graph, commit: str) -> JsonObject:
    """One commit: CommitOutput."""
    return graph.commit(commit).to_json()


def read_commit_changes(graph: Graph, commit: str, asked: ChangesQuery) -> JsonObject:
    """A page of what a commit changed: CommitChangesOutput.

    A commit that may not be read is as unknown as one that does not exist.
    """
    try:
        page = graph.commit_changes(
            commit,
            limit=asked.limit,
            page_token=asked.page_token,
            kinds=asked.kind,
            types=asked.type,
            ops=asked.op,
        )
    except (CommitNotFoundError, PolicyDeniedError):
        raise CommitNotFoundError(f"commit '{commit}' not found") from None
    return page.to_json()


def poll_changes(graph: Graph, asked: FeedQuery) -> JsonObject:
    """A page of what was committed after a position: ChangeFeedOutput."""
    name = trim_branch(asked.branch)
    require_read(graph, name)
    page = graph.branch(name).changes(
        cursor=asked.cursor,
        start=asked.start,
        page_token=asked.page_token,
        limit=asked.limit,
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
    )
    return page.to_json()


def begin_diff(graph: Graph, asked: DiffRequest, bounds: ReadBounds) -> Iterator[bytes]:
    """What changed between two states: a line of commits and counts, then a line per entity.

    The states are compared within the bounds; to take the changes may last longer.
    """
    if asked.review:
        require_read(graph, asked.old)
        compare = graph.branch(asked.old).diff
    else:
        compare = partial(graph.diff, asked.old)
    found = compare(
        asked.new,
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
        timeout=choose_smaller(asked.timeout, bounds.timeout_s),
        cancel=bounds.cancel,
    )
    return iter_diff(found, is_whole=not asked.summary)


def iter_diff(found: Diff, *, is_whole: bool) -> Iterator[bytes]:
    """A diff as lines: to take them may last longer than to compare the states."""
    found = replace(found, check_interrupts=lambda: None)
    yield orjson.dumps(found.header()) + b"\n"
    if is_whole:
        yield from found.to_json_lines()


def iter_history(graph: Graph, asked: EntityHistoryRequest, bounds: ReadBounds) -> Iterator[bytes]:
    """What commits made of an entity: a line for each, newest first.

    To take them may last as long as the caller wants.
    """
    versions = _open_branch(graph, asked).history(
        asked.type,
        asked.id,
        kind=name_kind(asked.kind),
        timeout=asked.timeout,
        cancel=bounds.cancel,
    )
    return (encode_document(each.to_json()) + b"\n" for each in islice(versions, asked.limit))


def read_blame(graph: Graph, asked: EntityBlameRequest, bounds: ReadBounds) -> JsonObject:
    """The commit that gave each property of an entity its value: BlameOutput."""
    found = _open_branch(graph, asked).blame(
        asked.type,
        asked.id,
        kind=name_kind(asked.kind),
        timeout=choose_smaller(asked.timeout, bounds.timeout_s),
        cancel=bounds.cancel,
    )
    commits = {name: None if each is None else each.to_json() for name, each in found.items()}
    return {"type": asked.type, "id": asked.id, "properties": commits}


def _open_branch(graph: Graph, asked: EntityBlameRequest) -> Branch:
    name = MAIN_BRANCH if asked.branch is None else asked.branch
    require_read(graph, name)
    return graph.branch(name)


def begin_baseline(graph: Graph, asked: ChangeBaselineRequest) -> Iterator[bytes]:
    """Every entity as of now, and then a line with the cursor to follow the branch from there."""
    name = trim_branch(asked.branch)
    graph.authorize(Act(Action.EXPORT, name))
    taken = graph.branch(name).baseline(kinds=asked.kind, types=asked.type, ops=asked.op)
    return _iter_baseline(taken)


def _iter_baseline(taken: Baseline) -> Iterator[bytes]:
    yield from taken.chunks()
    yield orjson.dumps({"baseline": taken.to_json()}) + b"\n"


def trim_branch(name: str | None) -> str:
    """The branch of a feed, without blanks around it."""
    if name is None:
        return MAIN_BRANCH
    if not name.strip():
        raise InvalidArgumentError("branch", "it is blank", hint="leave it out for main")
    return name.strip()
