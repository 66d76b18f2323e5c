"""Stored queries: their catalogue, and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.error_codes import ErrorCode
from omnigraph.errors import CompileError
from omnigraph.operations import graph_reads, graph_writes, stored_queries
from omnigraph.policy.acts import Act, Action
from omnigraph.server import query_routes
from omnigraph.server.exchange import Answer, Call, RequestRefusedError, WriteAct, answer_json
from omnigraph.server.lanes import Lane
from omnigraph.server.route_bindings import Binding
from omnigraph.server.write_routes import refuse_condition, require_condition
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.operations.stored_queries import StoredCall


def list_queries(call: Call) -> Answer:
    """The stored queries of a graph that the actor may know of."""
    return answer_json(stored_queries.list_catalogue(call.open_graph(), call.target.queries))


def list_dashboards(call: Call) -> Answer:
    """The dashboards of a graph, with the panels that the actor may see."""
    target = call.target
    found = stored_queries.list_dashboards(call.open_graph(), target.queries, target.dashboards)
    return answer_json(found)


def bind_call(call: Call) -> Binding:
    """How a call of a stored query is served: as a read, or as a write."""
    refuse_condition(call)
    found = _begin(call)
    if found.is_mutation:
        return Binding(partial(_mutate, found, None), Lane.WRITE, partial(_change_act_of, found))
    return Binding(prepare_read=partial(_prepare_read, found))


def bind_conditional_call(call: Call) -> Binding:
    """How a conditional call is served; only a mutation has a condition."""
    found = _begin(call)
    if not found.is_mutation:
        raise RequestRefusedError(
            400, f"stored query '{found.name}' is a read: it has no condition"
        )
    commit = require_condition(call)
    return Binding(partial(_mutate, found, commit), Lane.WRITE, partial(_change_act_of, found))


def _begin(call: Call) -> StoredCall:
    target = call.target
    graph = call.open_graph()
    return stored_queries.begin_call(graph, target.queries, call.path["name"], call.body)


def _prepare_read(found: StoredCall, call: Call) -> tuple[Hashable, Callable[[], Answer]]:
    asked = stored_queries.build_read(found, call.body)
    state = graph_reads.select_state(found.graph, branch=asked.branch, snapshot=asked.snapshot)
    key = query_routes.build_quick_key(call, state, asked)
    return key, lambda: _refuse_misfit(
        found, partial(query_routes.answer_query, call, state, asked)
    )


def _mutate(found: StoredCall, commit: str | None, call: Call) -> Answer:
    asked = stored_queries.build_mutation(found, call.body)
    run = partial(graph_writes.run_mutation, found.graph, asked, call.bounds, if_commit=commit)
    return _refuse_misfit(found, lambda: answer_json(run()))


def _refuse_misfit(found: StoredCall, run: Callable[[], Answer]) -> Answer:
    try:
        return run()
    except CompileError as error:
        message = f"stored query '{found.name}' does not fit the schema any more: {error.message}"
        raise RequestRefusedError(409, message, code=ErrorCode.CONFLICT) from None


def _change_act_of(found: StoredCall, call: Call) -> WriteAct:
    branch = MAIN_BRANCH if call.body.branch is None else call.body.branch
    return WriteAct(Act(Action.CHANGE, branch, query=found.name), call.body_bytes)
