"""Runs a server from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.server.bearer_tokens import read_tokens
from omnigraph.server.cluster_follower import ClusterFollower
from omnigraph.server.cluster_serving import Quarantine, boot_cluster
from omnigraph.server.http_app import HttpApp
from omnigraph.server.http_process import HttpServer, announce, build_server, listen
from omnigraph.server.lanes import Lanes
from omnigraph.server.server_boot import boot_graph
from omnigraph.server.server_log import configure_log
from omnigraph.server.server_settings import ServerSettings, build_settings
from omnigraph.server.server_state import AuthMode, Serving
from omnigraph.server.server_workers import (
    SOCKET_VARIABLE,
    WorkerGroup,
    follow_parent,
    inherit_socket,
)

_log = logging.getLogger(__name__)


def serve_graph(  # noqa: PLR0913 — one keyword for each decision of the caller
    uri: str,
    *,
    bind: str,
    graph_id: str | None = None,
    policy: str | None = None,
    is_open: bool = False,
    workers: int = 1,
    has_web: bool = True,
) -> None:
    """Serve one graph until a signal; without tokens, only to this machine unless it is asked."""
    configure_log()
    settings = build_settings(bind, os.environ, has_web=has_web)
    if is_parent(workers):
        run_workers(settings, workers)
        return
    tokens = read_tokens(os.environ)
    is_private = settings.is_loopback and not tokens and policy is None
    state = boot_graph(
        uri,
        graph_id=graph_id,
        policy=policy,
        tokens=tokens,
        is_open=is_open or is_private,
    )
    run_server(Serving(state), replace(settings, is_private=is_private and not is_open))


def serve_cluster(  # noqa: PLR0913 — one keyword for each decision of the caller
    root: str,
    *,
    bind: str,
    is_open: bool = False,
    is_strict: bool = False,
    reload_s: float = 2.0,
    workers: int = 1,
    has_web: bool = True,
) -> None:
    """Serve the graphs of a cluster until a signal, and follow what is applied to it."""
    configure_log()
    settings = build_settings(bind, os.environ, has_web=has_web)
    settings = replace(settings, reload_s=reload_s)
    if is_parent(workers):
        run_workers(settings, workers)
        return
    tokens = read_tokens(os.environ)
    cluster = open_cluster(root)
    state, quarantined = boot_cluster(
        cluster,
        tokens,
        is_open=is_open,
        is_strict=is_strict,
    )
    run_server(Serving(state), settings, root=root, quarantined=quarantined)


def run_server(
    serving: Serving,
    settings: ServerSettings,
    *,
    root: str | None = None,
    quarantined: dict[str, Quarantine] | None = None,
) -> None:
    """Listen, answer, follow, and end after what is under way."""
    if serving.state.mode is AuthMode.DEFAULT_DENY:
        _log.warning("no policy is applied: tokens alone allow to read, and nothing else")
    inherited = inherit_socket(os.environ)
    with inherited or listen(settings) as opened:
        if inherited is None:
            announce(opened)
        else:
            follow_parent()
        run_on_socket(
            opened,
            serving,
            settings,
            root=root,
            quarantined=quarantined,
            on_start=_give_process,
        )


def _give_process(server: HttpServer) -> None:
    server.owns_process = True


def is_parent(workers: int) -> bool:
    """Whether this process only starts the ones that serve."""
    return workers > 1 and SOCKET_VARIABLE not in os.environ


def run_workers(settings: ServerSettings, count: int) -> None:
    """Serve with several processes on one socket."""
    with listen(settings) as opened:
        announce(opened)
        sys.exit(WorkerGroup(opened, count, drain_s=settings.drain_s_max).run())


def run_on_socket(
    opened: socket.socket,
    serving: Serving,
    settings: ServerSettings,
    *,
    root: str | None = None,
    quarantined: dict[str, Quarantine] | None = None,
    on_start: Callable[[HttpServer], None] | None = None,
) -> None:
    """Answer on a socket that listens; `on_start` gets the server, which can be stopped."""
    lanes = Lanes()
    follower = ClusterFollower(root, serving, quarantined or {})
    app = HttpApp(serving, settings, lanes)

    async def run_beside() -> None:
        following = follower.run(lanes, every_s=settings.reload_s)
        # One goes on if the other fails.
        await asyncio.gather(following, app.agents.run(), return_exceptions=True)

    server = build_server(
        app,
        settings,
        serving,
        beside=run_beside,
        wake=follower.wake,
    )
    if on_start is not None:
        on_start(server)
    try:
        server.run(sockets=[opened])
    finally:
        lanes.shutdown()
