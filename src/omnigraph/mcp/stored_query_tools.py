"""A tool for each stored query: its parameters are the arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import orjson

from omnigraph.errors import PolicyDeniedError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.mcp.agent_tool import AgentTool, Arguments, JsonObject, ToolAnswer
from omnigraph.mcp.graph_tools import BRANCH, CURSOR, KEY, SNAPSHOT, read_page
from omnigraph.mcp.tool_scope import CHANGE, READ_BRANCH, ToolScope
from omnigraph.operations import graph_writes, stored_queries
from omnigraph.operations.stored_queries import StoredCall, StoredText
from omnigraph.wire.wire_requests import InvokeStoredQueryRequest

# What calls of reads and of mutations take beside the parameters of the query.
_READ_CONTROLS: Final = {"branch": BRANCH, "snapshot": SNAPSHOT, "cursor": CURSOR}
_WRITE_CONTROLS: Final = {"branch": BRANCH, "key": KEY}


@dataclass(frozen=True, slots=True)
class StoredQueryTool:
    """A stored query as a tool of its caller."""

    name: str
    stored: StoredText
    scope: ToolScope

    @property
    def is_read(self) -> bool:
        """Whether it writes nothing."""
        return not self.stored.entry.is_mutation

    @property
    def is_callable(self) -> bool:
        """Whether the caller may invoke it, and do what it does."""
        try:
            own = self.scope.graph.invoking(self.stored.entry.name)
        except PolicyDeniedError:
            return False
        return replace(self.scope, graph=own).may_do(READ_BRANCH if self.is_read else CHANGE)

    @property
    def controls(self) -> Mapping[str, str]:
        """The arguments beside the parameters; one that a parameter is called has a `_` before."""
        names = {each.name for each in self.stored.entry.parameters}
        controls = _READ_CONTROLS if self.is_read else _WRITE_CONTROLS
        return {name: f"_{name}" if name in names else name for name in controls}

    def bind(self) -> AgentTool:
        """The tool."""
        entry = self.stored.entry
        texts = [each for each in (entry.description, entry.instruction) if each]
        kind = "query" if self.is_read else "mutation"
        return AgentTool(
            self.name,
            "\n\n".join(texts) or f"The stored {kind} {entry.name}.",
            self._build_schema(),
            self._run,
            self.is_read,
            not self.is_read,
            self.scope.exposure.answer_bytes_max,
        )

    def _build_schema(self) -> JsonObject:
        schema: JsonObject = dict(self.stored.entry.to_json_schema()["inputSchema"])
        known = _READ_CONTROLS | _WRITE_CONTROLS
        added = {shown: known[name] for name, shown in self.controls.items()}
        return schema | {"properties": schema["properties"] | added}

    def _run(self, arguments: Arguments, cancel: Cancellation) -> ToolAnswer:
        params = dict(arguments)
        given = {name: params.pop(shown, None) for name, shown in self.controls.items()}
        asked = InvokeStoredQueryRequest(
            params=params,
            branch=given["branch"],
            snapshot=given.get("snapshot"),
            key=given.get("key"),
            timeout=None,
            memory=None,
        )
        catalogue, name = self.scope.catalogue, self.stored.entry.name
        call = stored_queries.begin_call(self.scope.graph, catalogue, name, asked)
        if call.is_mutation:
            return self._mutate(call, asked)
        bounds = replace(self.scope.bounds, cancel=cancel)
        scope = replace(self.scope, graph=call.graph, bounds=bounds)
        rest = {name: value for name, value in arguments.items() if name != self.controls["cursor"]}
        read = stored_queries.build_read(call, asked)
        return read_page(scope, self.name, rest, read, given["cursor"])

    def _mutate(self, call: StoredCall, asked: InvokeStoredQueryRequest) -> ToolAnswer:
        mutation = stored_queries.build_mutation(call, asked)
        with self.scope.admit(len(mutation.query) + len(orjson.dumps(asked.params))):
            return graph_writes.run_mutation(call.graph, mutation, self.scope.bounds)


def iter_stored_tools(scope: ToolScope, taken: frozenset[str]) -> Iterator[StoredQueryTool]:
    """The stored queries that are exposed, by name; `taken` are names of other tools."""
    exposure = scope.exposure
    for name in sorted(scope.catalogue.queries):
        stored = scope.catalogue.queries[name]
        shown = exposure.renamed.get(name, name)
        is_hidden = name in exposure.hidden or (exposure.is_read_only and stored.entry.is_mutation)
        if not is_hidden:
            yield StoredQueryTool(f"stored_{shown}" if shown in taken else shown, stored, scope)
