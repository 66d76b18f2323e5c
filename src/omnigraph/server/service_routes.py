"""Routes about the server itself: whether it lives, is ready, and what it serves."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any

from omnigraph import __version__
from omnigraph.errors import PolicyDeniedError
from omnigraph.operations.service_health import describe_health
from omnigraph.policy.acts import Act, Action
from omnigraph.server.exchange import Answer, Call, answer_json
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.openapi import build_openapi
from omnigraph.wire.protocol_names import REFERENCE_VERSION
from omnigraph.wire.wire_routes import ROUTES

if TYPE_CHECKING:
    from omnigraph.server.server_state import ServedGraph, ServerState


def get_health(call: Call) -> Answer:
    """That the server is alive."""
    del call
    return answer_json(describe_health())


def get_ready(call: Call) -> Answer:
    """Whether the server answers requests, and from which revision; counts, and no names."""
    state = call.state
    is_ready = not call.is_draining
    document = {
        "ready": is_ready,
        "status": "serving" if is_ready else "draining",
        "auth_mode": str(state.mode),
        "served_graph_count": len(state.graphs),
        "quarantined_graph_count": len(state.quarantined),
        "unavailable_graph_count": len(state.unavailable),
        "stale_seconds": 0
        if state.stale_since is None
        else round(time.monotonic() - state.stale_since),
    }
    if state.position is not None:
        document |= {
            "state_revision": state.position.number,
            "state_cas": state.position.digest,
            "newest_revision": state.newest_revision or state.position.number,
        }
    return answer_json(document, 200 if is_ready else 503)


def list_graphs(call: Call) -> Answer:
    """The graphs that are served, for actors who may list them."""
    call.state.authorize_list(call.actor)
    return answer_json(describe_graphs(call.state))


def describe_graphs(state: ServerState) -> dict[str, Any]:  # Any: a JSON document
    """The graphs of a state."""
    graphs = [
        {"graph_id": each.graph_id, "uri": each.uri}
        for each in sorted(state.graphs.values(), key=lambda each: each.graph_id)
    ]
    quarantined = sorted(state.quarantined)
    return {"graphs": graphs, **({"quarantined": quarantined} if quarantined else {})}


def get_session(call: Call) -> Answer:
    """Who asks, and which graphs that actor may read: no other name is shown."""
    state = call.state
    served = [each for name, each in state.graphs.items() if name not in state.unavailable]
    document = {
        "actor_id": call.actor,
        "auth_mode": str(state.mode),
        "version": __version__,
        "graphs": sorted(each.graph_id for each in served if _may_read(each, call.actor)),
    }
    return answer_json(document)


def _may_read(served: ServedGraph, actor: str | None) -> bool:
    try:
        served.open_for(actor).authorize(Act(Action.READ, MAIN_BRANCH))
    except PolicyDeniedError:
        return False
    return True


def get_openapi(call: Call) -> Answer:
    """The contract, as it holds here."""
    return _build_contract(has_auth=call.state.needs_token)


@cache
def _build_contract(*, has_auth: bool) -> Answer:
    """Once: it takes as long as dozens of reads, and clients without a token may ask for it."""
    return answer_json(build_openapi(ROUTES, version=REFERENCE_VERSION, has_auth=has_auth))
