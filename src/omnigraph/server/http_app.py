"""The path of a request: route, token, graph, body, policy, admission, lane, answer."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.errors import QueryTimeoutError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.ids import generate_ulid
from omnigraph.operations.graph_reads import ReadBounds
from omnigraph.server.admission_control import AdmissionControl
from omnigraph.server.agent_routes import AgentRoutes
from omnigraph.server.answer_sender import AnswerSender, Channel, Send, call_when_gone
from omnigraph.server.bearer_tokens import parse_header
from omnigraph.server.exchange import Answer, Call, RequestRefusedError, StreamedAnswer, WriteAct
from omnigraph.server.lanes import LOOP_S_MAX, Lane, Lanes
from omnigraph.server.request_failures import answer_failure
from omnigraph.server.request_reader import (
    ClientGoneError,
    Receive,
    parse_body,
    read_body,
    read_query,
    require_media,
)
from omnigraph.server.request_tracing import find_tracer, record_span
from omnigraph.server.route_bindings import Binding
from omnigraph.server.route_matching import Router
from omnigraph.server.route_table import Route, build_routes
from omnigraph.server.server_metrics import UNMATCHED, ServerMetrics
from omnigraph.server.server_settings import ServerSettings, is_loopback_host
from omnigraph.server.server_state import Serving, find_graph
from omnigraph.wire.protocol_names import JSON, LINES

Scope = MutableMapping[str, Any]  # Any: values of ASGI

_log = logging.getLogger(__name__)
_REQUEST_ID: Final = b"x-request-id"
_REQUEST_ID_MAX: Final = 128
_REVISION: Final = b"omnigraph-cluster-revision"
_LOAD_RESOURCE: Final = "graph_batch_request_bytes"
_BODY_RESOURCE: Final = "request_body_bytes"


class HttpApp:
    """The application that the HTTP server calls for every request."""

    def __init__(self, serving: Serving, settings: ServerSettings, lanes: Lanes) -> None:
        self._serving = serving
        self._settings = settings
        self._lanes = lanes
        self._sender = AnswerSender(lanes)
        self._admission = AdmissionControl(
            writes_max=settings.actor_writes_max, bytes_max=settings.actor_bytes_max
        )
        self._metrics = ServerMetrics(lambda: serving.state, lambda: self._admission.writes)
        self.agents = AgentRoutes(settings, self._admission)
        routes = build_routes(self._metrics, self.agents, has_web=settings.has_web)
        self._router = Router(routes)
        self._tracer = find_tracer(os.environ)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", "the server takes nothing else"
        started = time.perf_counter()
        call = self._build_call(scope)
        route: Route | None = None
        try:
            route, call.path = self._router.match(call.method, call.raw_path)
            answer = await self._answer(call, route, receive)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 — the boundary: every failure is an answer
            answer = answer_failure(call, error)
        headers = self._build_headers(call, route)
        status = await self._sender.send(call, answer, headers, Channel(receive, send))
        self._observe(call, route, status, time.perf_counter() - started)

    def _build_call(self, scope: Scope) -> Call:
        headers = scope["headers"]
        given = next((value for name, value in headers if name == _REQUEST_ID), b"")
        is_usable = 0 < len(given) <= _REQUEST_ID_MAX and given.isascii()
        return Call(
            scope["method"],
            scope["raw_path"],
            scope["query_string"],
            headers,
            given.decode() if is_usable else generate_ulid(),
            self._serving.state,
            is_draining=self._serving.is_draining,
        )

    async def _answer(self, call: Call, route: Route, receive: Receive) -> Answer | StreamedAnswer:
        _refuse_other_origins(call)
        if self._settings.is_private:
            _refuse_other_hosts(call)
        if call.state.needs_token and not route.spec.is_open:
            call.actor = _authenticate(call)
        if route.spec.has_graph:
            call.served = find_graph(call.state, call.graph_id)
        if route.spec.query is not None:
            call.query = read_query(call, route.spec.query)
        binding = route.binding
        if binding.require_rights is not None:
            _require_media_of(call, route)
            require_rights = binding.require_rights
            await self._lanes.run(Lane.READ, lambda: require_rights(call))
        if not binding.is_load:
            await self._read_body(call, route, receive)
            if binding.resolve is not None:
                binding = binding.resolve(call)
            return await self._run(call, binding, receive)
        # Before its body: what clients send of megabytes counts from their first byte.
        with self._admission.admit(call.actor, self._find_load_bytes(call)):
            await self._read_body(call, route, receive)
            return await self._run_load(call, binding)

    def _find_load_bytes(self, call: Call) -> int:
        """How large a load says it is; one that is too large, or does not say, is the largest."""
        declared = call.find_header(b"content-length") or ""
        bytes_max = self._settings.load_bytes_max
        return min(int(declared), bytes_max) if declared.isdigit() else bytes_max

    async def _read_body(self, call: Call, route: Route, receive: Receive) -> None:
        spec, settings = route.spec, self._settings
        if spec.body is None and spec.body_media == JSON:
            return
        _require_media_of(call, route)
        is_load = route.binding.is_load
        data = await read_body(
            call,
            receive,
            bytes_max=settings.load_bytes_max if is_load else settings.body_bytes_max,
            timeout_s=settings.body_s_max,
            resource=_LOAD_RESOURCE if is_load else _BODY_RESOURCE,
        )
        call.body_bytes = len(data)
        if spec.body is None:
            call.body = data
            return
        model, is_required = spec.body, spec.is_body_required
        parse = partial(parse_body, data, model, is_required=is_required)
        # Megabytes of JSON would keep the loop from its other requests.
        call.body = await self._lanes.run(Lane.WRITE, parse) if is_load else parse()

    async def _run(self, call: Call, binding: Binding, receive: Receive) -> Answer | StreamedAnswer:
        """Do the work of a request where it belongs; a write is admitted first."""
        if binding.ask is not None:
            return await binding.ask(call, receive)
        if binding.prepare_read is not None:
            return await self._run_read(call, binding, receive)
        if binding.is_bounded:
            return await self._run_bounded(call, binding, receive)
        handle = binding.handle
        assert handle is not None, "a route has a handler"
        if binding.write_act is None:
            if binding.lane is Lane.LOOP:
                return handle(call)
            return await self._lanes.run(binding.lane, lambda: handle(call))
        asked = binding.write_act(call)
        _authorize(call, asked)
        # Without a cancellation: a write goes on when its client has gone.
        call.bounds = self._bound_read(None)
        with self._admission.admit(call.actor, asked.nbytes):
            return await self._lanes.run(binding.lane, lambda: handle(call))

    async def _run_load(self, call: Call, binding: Binding) -> Answer | StreamedAnswer:
        """Do the work of a load, which was admitted before its body was read."""
        handle, write_act = binding.handle, binding.write_act
        assert handle is not None
        assert write_act is not None, "a load is a write"
        _authorize(call, write_act(call))
        return await self._lanes.run(binding.lane, lambda: handle(call))

    async def _run_bounded(
        self, call: Call, binding: Binding, receive: Receive
    ) -> Answer | StreamedAnswer:
        """Do the work of a request within the bounds of a read."""
        handle = binding.handle
        assert handle is not None, "a route has a handler"
        cancel = Cancellation()
        call.bounds = self._bound_read(cancel)
        with call_when_gone(receive, cancel.cancel):
            return await self._lanes.run(binding.lane, lambda: handle(call))

    def _bound_read(self, cancel: Cancellation | None) -> ReadBounds:
        return ReadBounds(self._settings.read_s_max, self._settings.read_bytes_max, cancel)

    async def _run_read(self, call: Call, binding: Binding, receive: Receive) -> Answer:
        prepare = binding.prepare_read
        assert prepare is not None, "the read has two steps"
        cancel = Cancellation()
        bounds = self._bound_read(cancel)
        call.bounds = bounds
        if call.target.is_local:
            key, work = prepare(call)
            if self._lanes.is_quick(key):
                call.bounds = replace(bounds, timeout_s=LOOP_S_MAX)
                try:
                    return self._lanes.run_quick(key, work)
                except QueryTimeoutError:
                    call.bounds = bounds
            run = self._lanes.run_measured(key, work)
        else:
            run = self._lanes.run(Lane.READ, partial(_run_prepared, prepare, call))
        with call_when_gone(receive, cancel.cancel):
            return await run

    def _observe(self, call: Call, route: Route | None, status: int, seconds: float) -> None:
        """Count an answer, and log it; nothing of the query, the body or the token is logged."""
        operation = UNMATCHED if route is None else route.spec.operation
        self._metrics.observe(operation, status, seconds)
        if self._tracer is not None:
            path = "unmatched" if route is None else route.path
            record_span(self._tracer, call, path, status, seconds)
        fields = {
            "request_id": call.request_id,
            "operation": operation,
            "graph": None if call.served is None else call.served.graph_id,
            "actor": call.actor,
            "status": status,
            "ms": round(seconds * 1000, 2),
        }
        _log.info("request", extra={"fields": fields})

    def _build_headers(self, call: Call, route: Route | None) -> list[tuple[bytes, bytes]]:
        headers = [(_REQUEST_ID, call.request_id.encode())]
        if call.state.position is not None:
            headers.append((_REVISION, str(call.state.position.number).encode()))
        if route is not None and route.spec.successor is not None:
            link = f'<{route.spec.successor}>; rel="successor-version"'
            headers += [(b"deprecation", b"true"), (b"link", link.encode())]
        return headers


def _run_prepared(
    prepare: Callable[[Call], tuple[Hashable, Callable[[], Answer]]], call: Call
) -> Answer:
    """A read whose state takes a network to find."""
    _, work = prepare(call)
    return work()


def _authenticate(call: Call) -> str:
    """The actor of the token that a request has."""
    value = next((value for name, value in call.headers if name == b"authorization"), None)
    token = None if value is None else parse_header(value)
    if token is None:
        raise RequestRefusedError(401, "missing bearer token", code=ErrorCode.UNAUTHORIZED)
    actor = call.state.tokens.find_actor(token)
    if actor is None:
        raise RequestRefusedError(401, "invalid bearer token", code=ErrorCode.UNAUTHORIZED)
    return actor


def _authorize(call: Call, asked: WriteAct) -> None:
    if asked.act is not None:
        call.open_graph().authorize(asked.act)


def _refuse_other_origins(call: Call) -> None:
    """Refuse the pages of other sites: a browser sends them from within a private network."""
    origin = call.find_header(b"origin")
    if origin is None:
        return
    host = call.find_header(b"host") or ""
    if origin.partition("://")[2].lower() != host.lower():
        message = "requests of other origins are not answered"
        raise RequestRefusedError(403, message, code=ErrorCode.FORBIDDEN)


def _refuse_other_hosts(call: Call) -> None:
    """Refuse names that lead to this machine: the page of a site may have one, and no token."""
    host = call.find_header(b"host")
    if host is None:
        return
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if is_loopback_host(name.strip("[]")):
        return
    message = "only requests to localhost are answered; --unauthenticated answers all"
    raise RequestRefusedError(403, message, code=ErrorCode.FORBIDDEN)


def _require_media_of(call: Call, route: Route) -> None:
    media = LINES if route.spec.body_media == LINES else JSON
    require_media(call, media, is_required=route.spec.is_body_required)
