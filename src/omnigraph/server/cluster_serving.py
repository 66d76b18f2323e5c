"""The graphs of a cluster as they are served: each opened once, with the policy of its revision.

A graph that cannot be served does not keep the others from it: it is quarantined, and tried again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph.clusters.applied_cluster import Cluster
from omnigraph.clusters.query_registry import compile_named
from omnigraph.embedding.provider_embedder import build_embedder
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import (
    ClusterError,
    ConfigInvalidError,
    InvalidArgumentError,
    OmnigraphError,
    PolicyFailedError,
)
from omnigraph.operations.stored_queries import QueryCatalogue, StoredText
from omnigraph.server.server_boot import classify_auth, is_local
from omnigraph.server.server_state import (
    AuthMode,
    ClusterPosition,
    DefaultDeny,
    ServedGraph,
    ServerState,
    UnusableGate,
    is_graph_id,
)

if TYPE_CHECKING:
    from omnigraph.engine.gate import Gate
    from omnigraph.server.bearer_tokens import BearerTokens

_log = logging.getLogger(__name__)
# What is wrong with the cluster as a whole, and not with one graph of it.
FATAL: Final = (ClusterError, ConfigInvalidError, PolicyFailedError)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a graph is not served, or not in its newest revision, and when it is tried again."""

    reason: str
    retry_at: float
    delay_s: float


_DELAY_S_MIN: Final = 2.0
_DELAY_S_MAX: Final = 300.0


def boot_cluster(
    cluster: Cluster, tokens: BearerTokens, *, is_open: bool, is_strict: bool
) -> tuple[ServerState, dict[str, Quarantine]]:
    """The state of a server for a cluster; what nothing could be served with is an error."""
    mode = classify_auth(tokens, has_policy=cluster.has_policy(), is_open=is_open)
    if not cluster.graphs():
        raise ClusterError("cluster_empty", "no graph is applied", hint="apply one, then start")
    state, quarantined = build_state(cluster, tokens, mode, before=None, waiting={})
    if quarantined and is_strict:
        name, found = next(iter(quarantined.items()))
        raise ClusterError("cluster_graph_quarantined", f"graph '{name}': {found.reason}")
    if not state.graphs:
        reasons = "; ".join(f"'{name}': {each.reason}" for name, each in quarantined.items())
        raise ClusterError("cluster_no_healthy_graphs", f"no graph can be served: {reasons}")
    return state, quarantined


def build_state(
    cluster: Cluster,
    tokens: BearerTokens,
    mode: AuthMode,
    *,
    before: ServerState | None,
    waiting: Mapping[str, Quarantine],
) -> tuple[ServerState, dict[str, Quarantine]]:
    """The state of a revision, beside the one that is served; open graphs stay open."""
    graphs: dict[str, ServedGraph] = {}
    quarantined: dict[str, Quarantine] = {}
    unavailable: set[str] = set()
    for name, uri in cluster.graphs().items():
        known = None if before is None else before.graphs.get(name)
        own = known if known is not None and known.uri == uri else None
        try:
            graphs[name] = _serve_graph(cluster, name, uri, mode, own)
        except Exception as error:  # noqa: BLE001,RUF100 — one graph must not stop the others
            reason = error.message if isinstance(error, OmnigraphError) else type(error).__name__
            if before is None and isinstance(error, FATAL):
                raise
            if before is not None and name in before.unavailable:
                unavailable.add(name)
            elif own is None:
                quarantined[name] = _quarantine(reason, waiting.get(name))
                _report("graph quarantined", name, reason)
            elif own.policy_digest == cluster.policy_digest(name):
                graphs[name] = own
                quarantined[name] = _quarantine(reason, waiting.get(name))
                _report("graph not activated", name, reason)
            else:
                # Serving it under the old policy could grant what the new one revokes.
                unavailable.add(name)
                _report("graph unavailable", name, reason)
    server_gate = _read_server_gate(cluster, before)
    is_stale = not graphs.keys().isdisjoint(quarantined) or isinstance(server_gate, UnusableGate)
    state = ServerState(
        graphs,
        tokens,
        mode,
        server_gate,
        cluster.server_policy_digest(),
        {name: each.reason for name, each in quarantined.items() if name not in graphs},
        frozenset(unavailable),
        ClusterPosition(cluster.revision, cluster.cas),
        cluster.site,
        stale_since=_find_stale_since(before, is_stale=is_stale),
    )
    return state, quarantined


def _read_server_gate(cluster: Cluster, before: ServerState | None) -> Gate | None:
    """The gate of the server; one that cannot be verified closes what it decides, and no graph."""
    try:
        return cluster.server_policy()
    except OmnigraphError as error:
        if before is None:
            raise
        if before.server_policy_digest == cluster.server_policy_digest():
            return before.server_gate
        _log.warning("server policy unavailable", extra={"fields": {"reason": error.message}})
        return UnusableGate()


def _find_stale_since(before: ServerState | None, *, is_stale: bool) -> float | None:
    """Since when a graph is served as it was in an older revision."""
    if not is_stale:
        return None
    known = None if before is None else before.stale_since
    return time.monotonic() if known is None else known


def _serve_graph(
    cluster: Cluster, name: str, uri: str, mode: AuthMode, own: ServedGraph | None
) -> ServedGraph:
    """One graph in a revision; an open one is not opened again unless its provider changed."""
    if not is_graph_id(name):
        raise InvalidArgumentError("graph", f"'{name}' is not an id that routes can have")
    gate: Gate | None = cluster.policy(name)
    if gate is None and mode is not AuthMode.OPEN:
        gate = DefaultDeny()
    texts = cluster.stored_texts(name)
    profile = cluster.embedding_profile(name)
    embed = cluster.embed_mode(name)
    if own is not None and (own.embedding_profile, own.embed) == (profile, embed):
        served = own
    else:
        environment = (
            None if profile is None else Environment(embed=build_embedder(profile, os.environ))
        )
        graph = open_on(cluster.storage_of(name), environment=environment, embed=embed)
        served = ServedGraph(
            name,
            uri,
            graph.branch().session,
            gate,
            QueryCatalogue(),
            is_managed=True,
            is_local=is_local(uri),
            embedding_profile=profile,
            embed=embed,
        )
    catalog = served.open_unguarded(None).branch().snapshot().view.catalog
    queries = {
        query: StoredText(compile_named(query, text, catalog), text)
        for query, text in texts.items()
    }
    return replace(
        served,
        gate=gate,
        queries=QueryCatalogue(queries),
        dashboards=cluster.dashboards(name),
        policy_digest=cluster.policy_digest(name),
    )


def _quarantine(reason: str, before: Quarantine | None) -> Quarantine:
    delay_s = _DELAY_S_MIN if before is None else min(before.delay_s * 2, _DELAY_S_MAX)
    return Quarantine(reason, time.monotonic() + delay_s, delay_s)


def _report(event: str, name: str, reason: str) -> None:
    _log.warning(event, extra={"fields": {"graph": name, "reason": reason}})
