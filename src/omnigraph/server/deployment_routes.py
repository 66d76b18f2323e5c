"""Plans and applies of the served cluster over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.error_codes import ErrorCode
from omnigraph.lang.quoting import sanitize_text
from omnigraph.server.exchange import Answer, Call, RequestRefusedError, WriteAct, answer_json

if TYPE_CHECKING:
    from omnigraph.operations.deployments import Deployments


def plan(call: Call) -> Answer:
    """What an apply of a configuration would change."""
    return answer_json(_find_deployments(call).plan(call.body.files))


def deploy(call: Call) -> Answer:
    """Bring a configuration into force."""
    return answer_json(_find_deployments(call).apply(call.body.files, call.body.plan_id))


def list_deployments(call: Call) -> Answer:
    """The deployments, newest first."""
    return answer_json(_find_deployments(call).list_all())


def get_deployment(call: Call) -> Answer:
    """One deployment."""
    name = call.path["deployment_id"]
    found = _find_deployments(call).find(name)
    if found is None:
        message = f"there is no deployment '{sanitize_text(name)}'"
        raise RequestRefusedError(404, message, code=ErrorCode.NOT_FOUND)
    return answer_json(found)


def require_rights(call: Call) -> None:
    """Ask the policy before a body is read."""
    _find_deployments(call).authorize()


def act_of(call: Call) -> WriteAct:
    """What it asks was asked; it counts for its bytes."""
    return WriteAct(None, call.body_bytes)


def _find_deployments(call: Call) -> Deployments:
    # What applies configurations is a large part, which most requests do without.
    from omnigraph.operations.deployments import Deployments  # noqa: PLC0415

    site = call.state.site
    if site is None:
        message = "this server serves one graph, and no cluster"
        raise RequestRefusedError(404, message, code=ErrorCode.NOT_FOUND)
    return Deployments(site, call.actor)
