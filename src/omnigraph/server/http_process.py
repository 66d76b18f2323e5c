"""The process of a server: its socket, its signals, and an end that finishes what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from asyncio.events import TimerHandle
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import uvicorn
import uvloop  # noqa: F401 — uvicorn loads it by its name, when it has begun to serve
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph.errors import InvalidArgumentError
from omnigraph.server.http_app import HttpApp
from omnigraph.server.server_settings import ServerSettings
from omnigraph.server.server_state import Serving

_log = logging.getLogger(__name__)
LISTEN: Final = "OMNIGRAPH_LISTEN_ADDR="
_HEADER_BYTES_MAX: Final = 64 * 1024
_BACKLOG: Final = 2_048
# Of an answer that waits for its client, within `stall_s_max`: slower than any line.
_TAKEN_BYTES_MIN: Final = 64 * 1024
# The exit code of a server that cut work off at its deadline.
EXIT_CUT_OFF: Final = 1
# After the deadline for requests, for their connections to be closed.
_CUT_OFF_S: Final = 1.0
_TOO_LARGE: Final = (
    b"\r\n".join(
        (
            b"HTTP/1.1 431 Request Header Fields Too Large",
            b"content-length: 0",
            b"connection: close",
        )
    )
    + b"\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection whose client must send its headers, and take its answers, in time."""

    header_s_max = 10.0
    stall_s_max = 60.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._header_bytes = 0
        self._stall: TimerHandle | None = None
        self._timer: TimerHandle | None = self.loop.call_later(self.header_s_max, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._stop_timer()
        self._stop_stall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what it is sent."""
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        """Go on with a client that took it."""
        self._stop_stall()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """Wait for the headers of the next request."""
        super().on_message_begin()
        self._header_bytes = 0
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_s_max, self._give_up)

    def on_url(self, url: bytes) -> None:
        """Count what a request says of itself."""
        self._count_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count what a request says of itself."""
        self._count_bytes(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin with a request whose headers are there; a larger one was refused."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def _count_bytes(self, count: int) -> None:
        self._header_bytes += count
        if self._header_bytes > _HEADER_BYTES_MAX and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _give_up(self) -> None:
        """Close the connection; what was asked for before is answered first."""
        self._timer = None
        if self.transport.is_closing():
            return
        # Any: the library declares that there always is one
        asked: Any = self.cycle
        if asked is None or asked.response_complete:
            self.transport.close()
        else:
            asked.keep_alive = False

    def _watch_stall(self) -> None:
        """Look again after a while; of a whole answer, all that is not taken is in memory."""
        waiting = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self.stall_s_max, self._end_stall, waiting)

    def _end_stall(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() >= _TAKEN_BYTES_MIN:
            self._watch_stall()
        else:
            # To close it would wait for the client to take the rest.
            self.transport.abort()

    def _stop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HttpServer(uvicorn.Server):
    """A server that ends with 0 when it is asked to end, after what was under way."""

    def __init__(
        self,
        config: uvicorn.Config,
        serving: Serving,
        beside: Callable[[], Coroutine[None, None, None]],
        wake: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._serving = serving
        self._beside = beside
        self._wake = wake
        self._loop: asyncio.AbstractEventLoop | None = None
        # Whether its end is that of the process, whatever threads are still doing.
        self.owns_process = False

    def wake_soon(self) -> None:
        """Look for changes now, as SIGHUP asks for; for another thread."""
        assert self._loop is not None, "the server runs"
        self._loop.call_soon_threadsafe(self._wake)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests, and do beside them what goes on without them."""
        self._loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(self._beside())
        try:
            await super().serve(sockets)
        finally:
            task.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals that end the process, which are not raised again, and SIGHUP."""
        handlers = {
            signal.SIGINT: self.stop,
            signal.SIGTERM: self.stop,
            signal.SIGHUP: self._wake,
        }
        loop = asyncio.get_running_loop()
        caught = handlers if threading.current_thread() is threading.main_thread() else {}
        for number, handle in caught.items():
            loop.add_signal_handler(number, handle)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """End after the requests that are under way; a second call does not wait for them."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._serving.is_draining = True
        if self.owns_process:
            drain_s = 0 if self.force_exit else self.config.timeout_graceful_shutdown or 0
            self._end_process_after(drain_s + _CUT_OFF_S)

    def _end_process_after(self, seconds: float) -> None:
        """One deadline for all that takes part in the end: requests, threads and libraries.

        What it cuts off was never acknowledged; what of it is there shows at the next opening.
        """
        timer = threading.Timer(seconds, _end_process)
        timer.daemon = True
        timer.start()


def _end_process() -> None:
    _log.error("the server ended with work under way")
    # A normal exit would wait for the threads that are at work.
    os._exit(EXIT_CUT_OFF)


def listen(settings: ServerSettings) -> socket.socket:
    """The socket of a server, listening."""
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        raise InvalidArgumentError("bind", f"{place}: {error.strerror or error}") from None
    opened.listen(_BACKLOG)
    opened.setblocking(False)
    return opened


def announce(opened: socket.socket) -> None:
    """Print where the server listens: one line, for programs that started it with port 0."""
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"{LISTEN}{shown}:{port}", flush=True)  # noqa: T201 — the contract of the process


def build_server(
    app: HttpApp,
    settings: ServerSettings,
    serving: Serving,
    *,
    beside: Callable[[], Coroutine[None, None, None]],
    wake: Callable[[], None],
) -> HttpServer:
    """The HTTP server of an application, with every bound of the settings."""
    bounds = {"header_s_max": settings.header_s_max, "stall_s_max": settings.stall_s_max}
    # Any: uvicorn takes a class of its own kind
    protocol: Any = type("Connection", (BoundedProtocol,), bounds)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        limit_concurrency=settings.connections_max,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=settings.drain_s_max,
    )
    return HttpServer(config, serving, beside, wake)
