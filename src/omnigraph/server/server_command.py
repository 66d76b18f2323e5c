"""The command `omnigraph-server`: serve the graphs of a cluster."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from typing import Final

from omnigraph.server.server_settings import BIND_DEFAULT, is_set

_FAILED: Final = 1
# What shells report of a program that Ctrl-C ended.
_INTERRUPTED: Final = 130
UNAUTHENTICATED: Final = "OMNIGRAPH_UNAUTHENTICATED"
REQUIRE_ALL: Final = "OMNIGRAPH_REQUIRE_ALL_GRAPHS"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a cluster as the command line says; a refused start ends with 1."""
    try:
        _serve(build_parser().parse_args(arguments))
    except KeyboardInterrupt:
        # While it starts; a server that runs finishes what is under way.
        sys.exit(_INTERRUPTED)


def _serve(given: argparse.Namespace) -> None:
    from omnigraph.errors import ClusterError, OmnigraphError  # noqa: PLC0415 — see `main`
    from omnigraph.errors.query_errors import require_extra  # noqa: PLC0415 — as above

    try:
        with require_extra("server"):
            from omnigraph.server.server_run import serve_cluster  # noqa: PLC0415 — as above
        serve_cluster(
            given.cluster,
            bind=given.bind,
            is_open=given.unauthenticated or is_set(os.environ, UNAUTHENTICATED),
            is_strict=given.require_all_graphs or is_set(os.environ, REQUIRE_ALL),
            reload_s=given.reload_interval,
            workers=given.workers,
            has_web=not given.no_web,
        )
    except OmnigraphError as error:
        code = error.reason if isinstance(error, ClusterError) else error.code
        hint = f"\nhint: {error.hint}" if error.hint else ""
        print(f"error[{code}]: {error.message}{hint}", file=sys.stderr)  # noqa: T201 — a command
        sys.exit(_FAILED)


def build_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        "omnigraph-server", description="Serve the graphs of a cluster over HTTP."
    )
    parser.add_argument(
        "--cluster",
        metavar="DIR|URI",
        required=True,
        help="the storage root, such as s3://bucket/root, or a folder with cluster.yaml",
    )
    parser.add_argument(
        "--bind", metavar="HOST:PORT", default=BIND_DEFAULT, help="where to listen; port 0 is any"
    )
    parser.add_argument(
        "--unauthenticated", action="store_true", help="start without tokens: open to every client"
    )
    parser.add_argument(
        "--require-all-graphs", action="store_true", help="refuse to start if a graph is sick"
    )
    parser.add_argument("--no-web", action="store_true", help="serve no web interface")
    parser.add_argument(
        "--workers",
        metavar="N",
        type=_parse_count,
        default=1,
        help="processes that share the address",
    )
    parser.add_argument(
        "--reload-interval",
        metavar="SECONDS",
        type=_parse_seconds,
        default=2.0,
        help="how often the cluster and the tokens are looked up; 0 is never, but for SIGHUP",
    )
    return parser


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def _parse_seconds(text: str) -> float:
    """Seconds; with fewer than none of them the server would do nothing but look."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return found


if __name__ == "__main__":
    main()
