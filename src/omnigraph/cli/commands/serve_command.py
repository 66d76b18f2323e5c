"""`omnigraph serve`: answer requests for one graph over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.command_registry import register_command
from omnigraph.cli.global_options import Capability


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.LOCAL)(serve)


def serve(  # noqa: PLR0913 — one parameter for each option
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="The address of the graph.")],
    bind: Annotated[
        str, typer.Option("--bind", metavar="HOST:PORT", help="Where to listen; port 0 is any.")
    ] = "127.0.0.1:8080",
    graph_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="The graph in routes.", show_default="from its address"
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="The bundle that decides.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option("--workers", metavar="N", min=1, help="Processes that share the address."),
    ] = 1,
    is_open: Annotated[
        bool,
        typer.Option("--unauthenticated", help="Answer every client, not only of this machine."),
    ] = False,
    has_no_web: Annotated[bool, typer.Option("--no-web", help="Serve no web interface.")] = False,
) -> None:
    """Serve one graph over HTTP, without a cluster, until it is interrupted."""
    from omnigraph.errors.query_errors import require_extra

    with require_extra("server"):
        from omnigraph.server.server_run import serve_graph
    serve_graph(
        graph,
        bind=bind,
        graph_id=graph_id,
        policy=policy,
        is_open=is_open,
        workers=workers,
        has_web=not has_no_web,
    )
