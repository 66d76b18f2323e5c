"""Connections whose request another thread may end: one request each, kept for the next one."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx

from omnigraph.errors import QueryCancelledError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.http_client import open_client

_OPENED: Final = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})


class RequestCutError(Exception):
    """A request whose connection was cut when it may have been sent already."""


class CancellableConnections:
    """Connections that are free; safe to share between threads."""

    def __init__(self, timeout: httpx.Timeout) -> None:
        self._timeout = timeout
        self._free: list[_Connection] = []

    def send(self, request: httpx.Request, cancellation: Cancellation) -> httpx.Response:
        """The answer to a request, whose connection is cut when it is cancelled.

        The server stops a read whose client has gone, and goes on with a write.
        """
        try:
            connection = self._free.pop()
        except IndexError:
            connection = _Connection(self._timeout)
        try:
            with cancellation.call_when_cancelled(connection.cut):
                response = connection.send(request, cancellation)
        except BaseException as failure:
            connection.close()
            if isinstance(failure, httpx.TransportError) and cancellation.is_cancelled:
                raise RequestCutError from None
            raise
        self._free.append(connection)
        return response

    def close(self) -> None:
        """Give the free connections back."""
        while self._free:
            self._free.pop().close()


class _Connection:
    """A client of one connection, and the socket of that."""

    def __init__(self, timeout: httpx.Timeout) -> None:
        self._client = open_client(timeout.read or 0.0)
        self._client.timeout = timeout
        self._socket: socket.socket | None = None

    def send(self, request: httpx.Request, cancellation: Cancellation) -> httpx.Response:
        """The answer to a request; none is sent once it was cancelled."""

        def trace(event: str, details: Mapping[str, Any]) -> None:  # Any: as the library says
            if event in _OPENED:
                self._socket = details["return_value"].get_extra_info("socket")
                if cancellation.is_cancelled:
                    raise QueryCancelledError

        if cancellation.is_cancelled:
            raise QueryCancelledError
        request.extensions["trace"] = trace
        return self._client.send(request)

    def cut(self) -> None:
        """End what the socket waits for, from another thread."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()
