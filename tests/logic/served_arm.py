"""The engine as an arm that is asked over HTTP, beside the same graph in this process.

One server, in a thread, serves the graphs of all cases. A read is answered in JSON and in Arrow;
both must be what the graph itself answers. Writes and statements go through the client.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from logic.answers import RowsAnswer
from logic.arms import Request
from logic.embedded_arm import EmbeddedArm, EmbeddedSession, is_alike
from logic.generate import Json
from omnigraph.client.http_transport import Call
from omnigraph.client.remote_graph import RemoteGraph, open_remote
from omnigraph.engine.graph import Graph, open_on
from omnigraph.errors import OmnigraphError
from omnigraph.execution.query_budget import Access
from omnigraph.lang.lexer import Mode
from omnigraph.operations.stored_queries import QueryCatalogue
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.server_state import AuthMode, ServedGraph, ServerState
from served import RunningServer, serve


class GraphHost:
    """A server that starts with its first graph, for all graphs of a test process."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._running: RunningServer | None = None

    def add(self, graph: Graph) -> RemoteGraph:
        """Serve a graph; the client for it."""
        if self._running is None:
            empty = ServerState({}, BearerTokens(), AuthMode.OPEN)
            self._running = self._ending.enter_context(serve(empty))
        name = uuid.uuid4().hex
        served = ServedGraph(name, graph.uri, graph.branch().session, None, QueryCatalogue())
        self._change(served, name)
        return open_remote(f"{self._running.url}/graphs/{name}")

    def remove(self, remote: RemoteGraph) -> None:
        """Serve a graph no more."""
        remote.close()
        self._change(None, remote.uri.rpartition("/")[2])

    def close(self) -> None:
        """End the server."""
        self._ending.close()
        self._running = None

    def _change(self, served: ServedGraph | None, name: str) -> None:
        assert self._running is not None
        serving = self._running.serving
        others = {key: each for key, each in serving.state.graphs.items() if key != name}
        graphs = others if served is None else {**others, name: served}
        serving.state = replace(serving.state, graphs=graphs)


HOST = GraphHost()
# Rows, and what is beside them.
Served: TypeAlias = tuple[list[dict[str, Json]], dict[str, Any]]  # Any: a cursor and a total


@dataclass(frozen=True, slots=True)
class ServedArm:
    """Runs a case on a graph in memory, over HTTP."""

    name: str = "served"

    def open(self, schema: str, *, mode: Mode) -> ServedSession:
        """A session on a new graph."""
        return ServedSession(schema, EmbeddedArm("served", "memory"), mode=mode)


class ServedSession(EmbeddedSession):
    """A graph whose every step is a request; `_local` is the graph that the server has."""

    def __init__(self, schema: str, arm: EmbeddedArm, *, mode: Mode) -> None:
        super().__init__(schema, arm, mode=mode)
        self._serve()

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text in this process, and over HTTP in both formats."""
        local = self.answer(self._local, text, request)
        found = self._ask(text, request)
        if isinstance(local, OmnigraphError):
            assert type(found) is type(local), f"served: {found}\nlocal: {local}"
            assert isinstance(found, OmnigraphError)
            raise found
        assert not isinstance(found, OmnigraphError), f"served: {found}\nlocal: {local}"
        for rows, page in found:
            beside = {"cursor": None, "total": None, "has_cursor": "cursor" in page, **page}
            read = replace(local, rows=replace(local.rows, rows=tuple(rows), **beside))
            assert is_alike(local, read), f"served: {rows} {page}\nlocal: {local.rows}"
        return replace(local.rows, rows=tuple(found[0][0]))

    def _ask(self, text: str, request: Request) -> tuple[Served, Served] | OmnigraphError:
        """The rows of a read as the server answers them, and as the client decodes them."""
        branch, params, settings = request.branch, request.params, request.settings
        document = {"query": text, "params": params, "branch": branch, "settings": {**settings}}
        try:
            asked = Call("POST", ("query",), document=document, source=text)
            answer = self._remote.transport.send(asked).read_json()
            decoded = self._remote.branch(branch).query(text, params=params, settings=settings)
        except OmnigraphError as error:
            return error
        page = {name: answer[name] for name in ("cursor", "total") if name in answer}
        return (answer["rows"], page), (decoded.to_json_rows(), decoded.describe_page())

    def restart(self) -> None:
        """Open the same storage again, and serve that."""
        self._end()
        self._graph = open_on(self._place(), environment=self._environment(Access.AUTO))
        self._serve()

    def close(self) -> None:
        """Let the graph go; what is in it must be sound."""
        assert self._local.check().problems == ()
        self._end()

    def _serve(self) -> None:
        self._local, self._remote = self._graph, HOST.add(self._graph)
        self._graph = self._remote

    def _end(self) -> None:
        HOST.remove(self._remote)
        self._local.close()

    def _opened_readers(self) -> list[Graph]:
        return []
