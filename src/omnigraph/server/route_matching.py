"""Routes by the raw path: `%2F` stays inside its segment, which is decoded after the split.

A segment `{name}` stands for any one that is not empty, `{name*}` for all that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from omnigraph.error_codes import ErrorCode
from omnigraph.server.exchange import RequestRefusedError

if TYPE_CHECKING:
    from omnigraph.server.route_table import Route

# No route is deeper; a longer path is not examined further.
_SEGMENTS_MAX: Final = 8


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    wildcard: _Node | None = None
    rest: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class Router:
    """Finds the route of a method and a path, and what the path names."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.segments:
                if segment.endswith("*}"):
                    node.rest = node.rest or _Node()
                    node = node.rest
                elif segment.startswith("{"):
                    node.wildcard = node.wildcard or _Node()
                    node = node.wildcard
                else:
                    node = node.children.setdefault(segment, _Node())
            assert route.method not in node.routes, f"two routes for {route.path}"
            node.routes[route.method] = route

    def match(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route of a request; raises the refusal of 404 or 405."""
        segments = _split(raw_path)
        found = list(_iter_nodes(self._root, segments, 0))
        for node in found:
            if (route := _find_route(node, method)) is not None:
                return route, _name_segments(route.segments, segments)
        if not found:
            raise RequestRefusedError(404, "there is no such route", code=ErrorCode.NOT_FOUND)
        allowed = ", ".join(sorted({name for node in found for name in node.routes}))
        raise RequestRefusedError(
            405,
            f"this route takes {allowed}",
            code=ErrorCode.METHOD_NOT_ALLOWED,
            headers=((b"allow", allowed.encode()),),
        )


def _name_segments(patterns: tuple[str, ...], segments: list[str]) -> dict[str, str]:
    """What the names of a route stand for in a path."""
    names: dict[str, str] = {}
    for at, pattern in enumerate(patterns):
        if pattern.endswith("*}"):
            names[pattern[1:-2]] = "/".join(segments[at:])
        elif pattern.startswith("{"):
            names[pattern[1:-1]] = segments[at]
    return names


def _find_route(node: _Node, method: str) -> Route | None:
    """The route of a method; probes ask with HEAD whether a server is alive or ready."""
    found = node.routes.get(method)
    if found is None and method == "HEAD":
        readable = node.routes.get("GET")
        return readable if readable is not None and readable.spec.is_open else None
    return found


def _split(raw_path: bytes) -> list[str]:
    parts = raw_path.split(b"/", _SEGMENTS_MAX + 1)[1:]
    try:
        return [_unquote(part) for part in parts]
    except UnicodeDecodeError as error:
        raise RequestRefusedError(400, "the path is not UTF-8") from error


def _unquote(part: bytes) -> str:
    return (unquote_to_bytes(part) if b"%" in part else part).decode("utf-8")


def _iter_nodes(node: _Node, segments: list[str], depth: int) -> Iterator[_Node]:
    """The nodes of a path that have routes; a name that is written out comes first."""
    if depth == len(segments):
        if node.routes:
            yield node
        return
    if (child := node.children.get(segments[depth])) is not None:
        yield from _iter_nodes(child, segments, depth + 1)
    if node.wildcard is not None and segments[depth]:
        yield from _iter_nodes(node.wildcard, segments, depth + 1)
    if node.rest is not None:
        yield node.rest
