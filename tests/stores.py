"""An S3 server on the loopback interface, for tests of everything that stores."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import FakeKey, S3Backend, s3_backends
from werkzeug.serving import make_server

REGION = "us-east-1"
# Enough to look at what a few commits asked for.
SEEN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that the server answered; `condition` is its If-None-Match header.

    `received` and `sent` count the bytes of its body and of that of the answer.
    """

    method: str
    path: str
    condition: str | None
    status: int
    query: str = ""
    received: int = 0
    sent: int = 0


class S3Server:
    """A running server: options to reach it, fresh buckets, and what it was asked."""

    def __init__(self, endpoint: str, application: OneAtATime) -> None:
        self.endpoint = endpoint
        self._application = application

    @property
    def options(self) -> Mapping[str, str]:
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": REGION,
            "allow_http": "true",
        }

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead every process to this server."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_FORCE_PATH_STYLE": "true",
        }

    @property
    def seen(self) -> list[Seen]:
        """The latest requests, in the order of their answers."""
        return [*self._application.seen]

    def clear(self) -> None:
        """Forget the requests up to now."""
        self._application.seen.clear()

    def new_bucket(self) -> str:
        """The name of a bucket that nobody else uses."""
        name = f"bucket-{uuid.uuid4().hex}"
        with self._application.lock:
            _backend().create_bucket(name, REGION)
        return name

    def copy_of(self, bucket: str) -> str:
        """A new bucket that holds what this one holds."""
        name = self.new_bucket()
        with self._application.lock:
            buckets = _backend().buckets
            for path, key in buckets[bucket].keys.items():
                buckets[name].keys[path] = FakeKey(path, key.value, DEFAULT_ACCOUNT_ID, REGION)
        return name

    def forget(self, bucket: str) -> None:
        """Remove a bucket and everything in it."""
        with self._application.lock:
            found = _backend().buckets.pop(bucket)
            for path in [*found.keys]:
                found.keys.pop(path)
            for upload in [*found.multiparts.values()]:
                upload.dispose()
            s3_backends.bucket_accounts.pop(bucket, None)
            # Every key there ever was is kept here, for the end of the server.
            tracked: list[FakeKey] = vars(FakeKey)["instances_tracked"]
            tracked[:] = [key for key in tracked if not key.disposed]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve S3 on a port that the operating system chooses."""
    application = OneAtATime()
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=QuietRequestHandler
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.port}", application)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        _backend().reset()


class OneAtATime:
    """The S3 application, one request at a time.

    Left to its threads it looks for an object and creates it in two moves: of two conditional puts
    both may succeed, which S3 itself rules out.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: deque[Seen] = deque(maxlen=SEEN_MAX)
        # For S3 alone: the server of all services spends most of its time on choosing one.
        self._application = create_backend_app("s3")

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        statuses: list[int] = []

        def start(status: str, headers: Any, *rest: Any) -> Any:
            statuses.append(int(status[:3]))
            return start_response(status, headers, *rest)

        condition = environ.get("HTTP_IF_NONE_MATCH")
        request = environ["REQUEST_METHOD"], environ["PATH_INFO"], condition
        received = int(environ.get("CONTENT_LENGTH") or 0)
        with self.lock:
            body = [*self._application(environ, start)]
            sent = sum(map(len, body))
            query = environ.get("QUERY_STRING", "")
            self.seen.append(Seen(*request, statuses[-1], query, received, sent))
            return body


class QuietRequestHandler(MotoRequestHandler):
    """A handler that keeps no log: a failing test would print thousands of lines."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


def _backend() -> S3Backend:
    """What the servers of this process hold."""
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
