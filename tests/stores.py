"""An S3 server on the loopback interface, for tests of everything that stores."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server: options to reach it, and fresh buckets."""

    endpoint: str

    @property
    def options(self) -> Mapping[str, str]:
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    def new_bucket(self) -> str:
        """The name of a bucket that nobody else uses."""
        name = f"bucket-{uuid.uuid4().hex}"
        urlopen(Request(f"{self.endpoint}/{name}", method="PUT")).close()  # noqa: S310 (loopback)
        return name


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve S3 on a port that the operating system chooses."""
    server = make_server(
        "127.0.0.1", 0, OneAtATime(), threaded=True, request_handler=QuietRequestHandler
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class OneAtATime:
    """The S3 application, one request at a time.

    Left to its threads it looks for an object and creates it in two moves: of two conditional puts
    both may succeed, which S3 itself rules out.
    """

    def __init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            return [*self._application(environ, start_response)]


class QuietRequestHandler(MotoRequestHandler):
    """A handler that keeps no log: a failing test would print thousands of lines."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""
