"""A provider on this machine that answers as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embedding.embedding_profile import Profile, Provider, RetryPolicy
from omnigraph.embedding.http_embedder import HttpEmbedder

KEY = "sk-secret"


@dataclass
class Asked:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: Any


Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Loopback:
    """What was asked, and what to answer next; the last answer is repeated."""

    url: str
    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list)


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    """Answer with a document, or with bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def embedding(*values: Any) -> Answer:
    """Answer with a vector, as OpenAI does."""
    return says({"data": [{"embedding": list(values)}], "usage": {}})


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def breaks_off(handler: BaseHTTPRequestHandler) -> None:
    """Promise more bytes than come."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def stalls(seconds: float) -> Answer:
    """Say nothing for a while, and then hang up."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def drips(seconds: float) -> Answer:
    """Send a byte now and then, and never finish."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                break
            time.sleep(0.02)
        handler.close_connection = True

    return answer


@contextmanager
def loopback(*answers: Answer) -> Iterator[Loopback]:
    """A provider for the time of the context."""
    state = Loopback("", list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.asked.append(Asked(self.path, headers, json.loads(body)))
            place = min(len(state.asked), len(state.answers)) - 1
            state.answers[place](self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(
    url: str,
    *,
    provider: Provider = Provider.OPENAI_COMPATIBLE,
    patience: RetryPolicy | None = None,
) -> HttpEmbedder:
    """A client of such a provider that is quick to try again."""
    quick = RetryPolicy(deadline_s=10, timeout_s=5, attempts=4, backoff_s=0.001)
    return HttpEmbedder(Profile(provider, url, "demo/mini", KEY, patience or quick))
