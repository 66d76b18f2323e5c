"""Writes: mutations, loads, schema changes, and what becomes of branches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.errors import WrongQueryKindError
from omnigraph.operations import graph_writes
from omnigraph.operations.graph_writes import BRANCH_BYTES, LoadTerms
from omnigraph.policy.acts import Act, Action
from omnigraph.server.exchange import (
    Answer,
    Call,
    RequestRefusedError,
    WriteAct,
    answer_json,
)
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.protocol_names import IF_COMMIT_HEADER

if TYPE_CHECKING:
    from omnigraph.wire.wire_requests import BatchLoadQuery, ChangeRequest, IngestRequest

_IF_COMMIT: Final = IF_COMMIT_HEADER.lower().encode()
# The raw id of a commit; nothing of the syntax of entity tags.
_COMMIT_ID: Final = re.compile(r"[0-9A-Za-z]{1,64}", re.ASCII)


def mutate(call: Call) -> Answer:
    """Run a mutation on the newest state."""
    refuse_condition(call)
    return run_mutation(call, call.body, if_commit=None)


def mutate_if_commit(call: Call) -> Answer:
    """Run a mutation if the branch is at a commit."""
    return run_mutation(call, call.body, if_commit=require_condition(call))


def run_mutation(call: Call, asked: ChangeRequest, *, if_commit: str | None) -> Answer:
    """Run a mutation; a text that reads is refused."""
    try:
        document = graph_writes.run_mutation(
            call.open_graph(), asked, call.bounds, if_commit=if_commit
        )
    except WrongQueryKindError as error:
        message = f"{error.message}: reads are sent to POST /query"
        raise RequestRefusedError(400, message) from None
    return answer_json(document)


def refuse_condition(call: Call) -> None:
    """Refuse the header of conditional routes on a route that would ignore it."""
    if call.list_headers(_IF_COMMIT):
        message = f"{IF_COMMIT_HEADER} belongs to the route that ends with /if-graph-commit"
        raise RequestRefusedError(400, message)


def require_condition(call: Call) -> str:
    """The commit of a conditional route: its header, once, with nothing but an id."""
    values = call.list_headers(_IF_COMMIT)
    if len(values) != 1 or _COMMIT_ID.fullmatch(values[0]) is None:
        raise RequestRefusedError(400, f"{IF_COMMIT_HEADER} holds the id of one commit, once")
    return values[0]


def load(call: Call) -> Answer:
    """Load the records of a JSON body."""
    asked: IngestRequest = call.body
    terms = LoadTerms(
        asked.data,
        asked.mode.value,
        MAIN_BRANCH if asked.branch is None else asked.branch,
        asked.base,
        asked.type,
        asked.dialect.value,
        asked.if_commit,
        asked.message,
        asked.key,
        asked.dry_run,
    )
    return answer_json(_run_load(call, terms))


def load_lines(call: Call) -> Answer:
    """Load JSON lines: the body is the records."""
    asked: BatchLoadQuery = call.query
    terms = LoadTerms(
        call.body,
        "merge" if asked.mode is None else asked.mode.value,
        MAIN_BRANCH if asked.branch is None else asked.branch,
        asked.base,
        asked.type,
        "strict",
        asked.if_commit,
        asked.message,
        asked.key,
        asked.dry_run,
    )
    document = _run_load(call, terms)
    document.pop("uri")
    return answer_json(document)


def _run_load(call: Call, terms: LoadTerms) -> dict[str, Any]:  # Any: a JSON document
    unguarded = call.target.open_unguarded(call.actor)
    return graph_writes.run_load(call.open_graph(), unguarded, terms)


def apply_schema(call: Call) -> Answer:
    """Change the schema of a graph that no cluster manages."""
    if call.target.is_managed:
        message = "the schema is managed by the cluster: change it there and apply the cluster"
        raise RequestRefusedError(409, message, code=ErrorCode.CONFLICT)
    return answer_json(graph_writes.apply_schema(call.open_graph(), call.body))


def create_branch(call: Call) -> Answer:
    """Start a branch."""
    return answer_json(graph_writes.create_branch(call.open_graph(), call.body))


def delete_branch(call: Call) -> Answer:
    """End a branch."""
    return answer_json(graph_writes.delete_branch(call.open_graph(), call.path["branch"]))


def merge_branches(call: Call) -> Answer:
    """Merge a branch."""
    return answer_json(graph_writes.merge_branch(call.open_graph(), call.body))


def revert_commit(call: Call) -> Answer:
    """Undo what a commit changed."""
    return answer_json(graph_writes.revert_commit(call.open_graph(), call.body))


def pick_commit(call: Call) -> Answer:
    """Do on a branch what a commit of another one changed."""
    return answer_json(graph_writes.pick_commit(call.open_graph(), call.body))


def plan_merge(call: Call) -> Answer:
    """What a merge would do."""
    return answer_json(graph_writes.plan_merge(call.open_graph(), call.body))


def plan_revert(call: Call) -> Answer:
    """What a revert would do."""
    return answer_json(graph_writes.plan_revert(call.open_graph(), call.body))


def plan_pick(call: Call) -> Answer:
    """What a cherry-pick would do."""
    return answer_json(graph_writes.plan_pick(call.open_graph(), call.body))


def create_tag(call: Call) -> Answer:
    """Name a commit."""
    return answer_json(graph_writes.create_tag(call.open_graph(), call.body))


def delete_tag(call: Call) -> Answer:
    """Free the name of a tag."""
    return answer_json(graph_writes.delete_tag(call.open_graph(), call.path["tag"]))


def change_act_of(call: Call) -> WriteAct:
    """What a mutation or a load in a body asks."""
    branch = MAIN_BRANCH if call.body.branch is None else call.body.branch
    return WriteAct(Act(Action.CHANGE, branch), call.body_bytes)


def change_lines_act_of(call: Call) -> WriteAct:
    """What a load of lines asks."""
    return WriteAct(_change_lines_of(call), call.body_bytes)


def _change_lines_of(call: Call) -> Act:
    return Act(Action.CHANGE, MAIN_BRANCH if call.query.branch is None else call.query.branch)


def require_line_rights(call: Call) -> None:
    """Ask for everything that a load of lines may do, before its body is read."""
    graph = call.open_graph()
    graph.authorize(_change_lines_of(call))
    if call.query.base is not None and not _has_branch(call):
        target = MAIN_BRANCH if call.query.branch is None else call.query.branch
        graph.authorize(Act(Action.BRANCH_CREATE, call.query.base, target))


def _has_branch(call: Call) -> bool:
    unguarded = call.target.open_unguarded(call.actor)
    return (call.query.branch or MAIN_BRANCH) in unguarded.branches()


def create_branch_act_of(call: Call) -> WriteAct:
    """What the start of a branch asks."""
    source = MAIN_BRANCH if call.body.source is None else call.body.source
    return WriteAct(Act(Action.BRANCH_CREATE, source, call.body.name), BRANCH_BYTES)


def delete_branch_act_of(call: Call) -> WriteAct:
    """What the end of a branch asks."""
    return WriteAct(Act(Action.BRANCH_DELETE, target_branch=call.path["branch"]), BRANCH_BYTES)


def create_tag_act_of(call: Call) -> WriteAct:
    """What a tag asks: the graph knows the branch of its commit, and asks the policy itself."""
    del call
    return WriteAct(None, BRANCH_BYTES)


def delete_tag_act_of(call: Call) -> WriteAct:
    """What the end of a tag asks."""
    return WriteAct(Act(Action.BRANCH_DELETE, target_branch=call.path["tag"]), BRANCH_BYTES)


def merge_act_of(call: Call) -> WriteAct:
    """What a merge asks."""
    target = MAIN_BRANCH if call.body.target is None else call.body.target
    return WriteAct(Act(Action.BRANCH_MERGE, call.body.source, target), BRANCH_BYTES)


def schema_act_of(call: Call) -> WriteAct:
    """What a schema change asks."""
    branch = MAIN_BRANCH if call.body.branch is None else call.body.branch
    return WriteAct(Act(Action.SCHEMA_APPLY, target_branch=branch), call.body_bytes)
