"""What a server serves when it starts, and what it refuses to start with."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from omnigraph.engine import open_graph
from omnigraph.errors import CredentialsError
from omnigraph.operations.stored_queries import QueryCatalogue
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.server_state import AuthMode, DefaultDeny, ServedGraph, ServerState

if TYPE_CHECKING:
    from omnigraph.engine.gate import Gate

_ID_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9-]+", re.ASCII)
_ID_MAX: Final = 64


def classify_auth(tokens: BearerTokens, *, has_policy: bool, is_open: bool) -> AuthMode:
    """Who may do what; a server that no client could use, or every one, is refused."""
    if tokens:
        return AuthMode.POLICY_ENABLED if has_policy else AuthMode.DEFAULT_DENY
    if has_policy:
        raise CredentialsError(
            "a policy is applied, but there are no tokens: no request could be answered",
            hint="set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
        )
    if not is_open:
        raise CredentialsError(
            "there are neither tokens nor a policy: everything would be open to every client",
            hint="set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or start it with --unauthenticated",
        )
    return AuthMode.OPEN


def boot_graph(
    uri: str, *, graph_id: str | None, policy: str | None, tokens: BearerTokens, is_open: bool
) -> ServerState:
    """The state of a server for one graph that no cluster manages."""
    mode = classify_auth(tokens, has_policy=policy is not None, is_open=is_open)
    graph = open_graph(uri)
    gate: Gate | None = DefaultDeny() if mode is AuthMode.DEFAULT_DENY else None
    name = graph_id or derive_graph_id(graph.uri)
    if policy is not None:
        from omnigraph.policy.decisions import load_policy  # noqa: PLC0415 — cedarpy is optional

        gate = load_policy(policy, graph=name)
        gate.check_schema(graph.branch().snapshot().catalog)
    served = ServedGraph(
        graph_id=name,
        uri=graph.uri,
        session=graph.branch().session,
        gate=gate,
        queries=QueryCatalogue(),
        is_local=is_local(graph.uri),
    )
    return ServerState({name: served}, tokens, mode)


def derive_graph_id(uri: str) -> str:
    """The id of a graph by its address: the last part of it, without its suffix."""
    stem = PurePosixPath(uri.rstrip("/")).stem
    return _ID_CHARACTERS.sub("-", stem).strip("-")[:_ID_MAX] or "graph"


def is_local(uri: str) -> bool:
    """Whether the newest commit of a graph is found without a network."""
    return "://" not in uri or uri.startswith(("file://", "memory://"))
