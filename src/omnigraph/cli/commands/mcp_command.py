"""`omnigraph mcp`: a graph as tools for agents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.command_registry import ACTOR, STORAGE_FLAGS, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.shared_options import POSITIONAL_URI

if TYPE_CHECKING:
    from omnigraph.mcp.exposure import Exposure

_ROWS = 200
_BYTES = 65_536
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Which tools there are, and what they answer with."""

    queries: Annotated[
        list[Path] | None,
        typer.Option(
            "--queries", metavar="PATH", help="A .gq file or a folder of them: a tool per query."
        ),
    ] = None
    can_write: Annotated[
        bool, typer.Option("--write", help="Offer the tools that write, as the policy allows.")
    ] = False
    has_adhoc: Annotated[
        bool | None,
        typer.Option(
            "--adhoc/--no-adhoc",
            help="Let agents write queries of their own.",
            show_default="on, in a cluster off",
        ),
    ] = None
    has_review_tools: Annotated[
        bool,
        typer.Option("--review-tools", help="Let agents approve and merge proposals too."),
    ] = False
    hidden: Annotated[
        list[str] | None,
        typer.Option("--hide", metavar="QUERY", help="A stored query that is not offered."),
    ] = None
    rows_max: Annotated[
        int, typer.Option("--rows", metavar="N", min=1, help="How many rows one answer has.")
    ] = _ROWS
    bytes_max: Annotated[
        int, typer.Option("--answer-bytes", metavar="N", min=8_192, help="How long one answer is.")
    ] = _BYTES
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.0, help="How long a query takes.")
    ] = _SECONDS

    def build_exposure(self, *, has_adhoc: bool) -> Exposure:
        """What is offered, with a default for queries of callers."""
        from omnigraph.mcp.exposure import Exposure

        return Exposure(
            has_adhoc=has_adhoc if self.has_adhoc is None else self.has_adhoc,
            is_read_only=not self.can_write,
            has_review_tools=self.has_review_tools,
            hidden=frozenset(self.hidden or ()),
            rows_max=self.rows_max,
            answer_bytes_max=self.bytes_max,
        )


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.DIRECT, takes=STORAGE_FLAGS | ACTOR, names=("mcp",))(serve)


def serve(scope: Scope, options: ToolOptions, uri: POSITIONAL_URI = None) -> None:
    """Serve a graph to an agent, by the Model Context Protocol over standard input and output."""
    from omnigraph.errors.query_errors import require_extra

    with require_extra("mcp"):
        from omnigraph.mcp.stdio_process import serve_stdio
        from omnigraph.mcp.tool_sources import open_source

    address = scope.resolve_address(uri)
    if scope.cluster_graph is not None and options.queries:
        fail("a cluster has stored queries of its own", hint="leave out --queries")
    exposure = options.build_exposure(has_adhoc=scope.cluster_graph is None)
    with open_source(
        address,
        actor=scope.actor,
        cluster_graph=scope.cluster_graph,
        queries=tuple(options.queries or ()),
        exposure=exposure,
        timeout_s=options.timeout_s,
    ) as source:
        serve_stdio(source.read)
