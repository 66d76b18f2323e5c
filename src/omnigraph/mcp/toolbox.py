"""The tools and resources of a graph, or of a server, for one caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Final, Protocol

import orjson

from omnigraph.mcp.agent_tool import AgentTool, JsonObject, build_object_schema
from omnigraph.mcp.graph_tools import READ_TOOLS, ToolSpec
from omnigraph.mcp.proposal_tools import PROPOSAL_TOOLS
from omnigraph.mcp.schema_summary import SUMMARY_CHARACTERS, summarize_schema
from omnigraph.mcp.stored_query_tools import iter_stored_tools
from omnigraph.mcp.tool_scope import READ_BRANCH, READ_GRAPH, ToolScope
from omnigraph.mcp.write_tools import WRITE_TOOLS
from omnigraph.operations import graph_reads, graph_writes
from omnigraph.operations.service_health import describe_health

_SPECS: Final = {each.name: each for each in (*READ_TOOLS, *WRITE_TOOLS, *PROPOSAL_TOOLS)}
_ALIASES: Final = {each.alias: each.name for each in _SPECS.values() if each.alias is not None}
_TAKEN: Final = frozenset({*_SPECS, *_ALIASES, "health", "graphs_list"})
_ADVICE: Final = "omnigraph://best-practices/"
_PLAIN: Final = "text/plain"
_MARKDOWN: Final = "text/markdown"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class AgentResource:
    """A text that a caller may read by its address."""

    uri: str
    name: str
    media_type: str
    read: Callable[[], str]


class Toolbox(Protocol):
    """What one caller may use."""

    def list_tools(self) -> list[AgentTool]:
        """The tools that the caller may call."""

    def find_tool(self, name: str) -> AgentTool | None:
        """The tool of a name, if the caller may call it."""

    def list_resources(self) -> list[AgentResource]:
        """The resources that the caller may read."""


@dataclass(frozen=True, slots=True)
class GraphToolbox:
    """The tools of a graph; with `has_health` also that of the program."""

    scope: ToolScope
    has_health: bool = False

    def list_tools(self) -> list[AgentTool]:
        """The tools that the caller may call: stored queries first, which say what they are for."""
        stored = [each.bind() for each in iter_stored_tools(self.scope, _TAKEN) if each.is_callable]
        own = [each.bind(self.scope) for each in _SPECS.values() if self._is_offered(each)]
        return [*stored, *own, *([_build_health()] if self.has_health else [])]

    def find_tool(self, name: str) -> AgentTool | None:
        """The tool of a name, if the caller may call it."""
        if name == "health" and self.has_health:
            return _build_health()
        spec = _SPECS.get(_ALIASES.get(name, name))
        if spec is not None:
            return spec.bind(self.scope) if self._is_offered(spec) else None
        found = (each for each in iter_stored_tools(self.scope, _TAKEN) if each.name == name)
        return next((each.bind() for each in found if each.is_callable), None)

    def list_resources(self) -> list[AgentResource]:
        """The resources that the caller may read."""
        return list(self._iter_resources())

    def _is_offered(self, spec: ToolSpec) -> bool:
        exposure = self.scope.exposure
        is_exposed = (
            (spec.is_read or not exposure.is_read_only)
            and (exposure.has_adhoc or not spec.is_adhoc)
            and (exposure.has_review_tools or not spec.is_review)
            and not (exposure.is_managed and spec.name == "schema_apply")
        )
        return is_exposed and self.scope.may_do(spec.acts)

    def _iter_resources(self) -> Iterator[AgentResource]:
        graph = self.scope.graph
        if self.scope.may_do(READ_GRAPH):
            read = lambda: str(graph_reads.read_schema(graph)["schema_source"])  # noqa: E731
            yield AgentResource("omnigraph://schema", "schema", _PLAIN, read)
            branches = lambda: _encode(graph_writes.list_branches(graph))  # noqa: E731
            yield AgentResource("omnigraph://branches", "branches", _JSON, branches)
        if self.scope.may_do(READ_BRANCH):
            uri, name = "omnigraph://schema-summary", "schema-summary"
            yield AgentResource(uri, name, _PLAIN, self._read_summary)
        for name in list_advice():
            read = partial(read_advice, name)
            yield AgentResource(f"{_ADVICE}{name}", name, _MARKDOWN, read)

    def _read_summary(self) -> str:
        state = graph_reads.select_state(self.scope.graph, branch=None, snapshot=None)
        found = summarize_schema(state.snapshot, characters_max=SUMMARY_CHARACTERS)
        return str(found["summary"])


@dataclass(frozen=True, slots=True)
class ServerToolbox:
    """The tools of a server: whether it is alive, and its graphs for callers who may list them."""

    # None for a caller who may not.
    list_graphs: Callable[[], JsonObject] | None

    def list_tools(self) -> list[AgentTool]:
        """The tools that the caller may call."""
        return [*self._tools.values()]

    def find_tool(self, name: str) -> AgentTool | None:
        """The tool of a name, if the caller may call it."""
        return self._tools.get(name)

    def list_resources(self) -> list[AgentResource]:
        """The resources that the caller may read."""
        listing = self.list_graphs
        if listing is None:
            return []
        read = lambda: _encode(listing())  # noqa: E731 — a closure over the list
        return [AgentResource("omnigraph://graphs", "graphs", _JSON, read)]

    @property
    def _tools(self) -> Mapping[str, AgentTool]:
        tools = {"health": _build_health()}
        listing = self.list_graphs
        if listing is not None:
            tools["graphs_list"] = _build_plain(
                "graphs_list", "The graphs of this server.", listing
            )
        return tools


def list_advice() -> list[str]:
    """The names of the pages about good practice, which come with the package."""
    folder = resources.files("omnigraph.mcp").joinpath("advice")
    return sorted(
        each.name[: -len(".md")] for each in folder.iterdir() if each.name.endswith(".md")
    )


def read_advice(name: str) -> str:
    """One of those pages."""
    file = resources.files("omnigraph.mcp").joinpath("advice", f"{name}.md")
    return file.read_text(encoding="utf-8")


def _build_health() -> AgentTool:
    return _build_plain("health", "Whether the program is alive, its versions.", describe_health)


def _build_plain(name: str, description: str, answer: Callable[[], JsonObject]) -> AgentTool:
    """A tool without arguments."""
    return AgentTool(name, description, build_object_schema({}), lambda *_: answer())


def _encode(document: JsonObject) -> str:
    return orjson.dumps(document).decode()
