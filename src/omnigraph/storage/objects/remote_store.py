"""Objects in process memory and in S3, through obstore.

A conditional put is sent exactly once. A client that repeats it after a lost answer meets its own
object and reports "exists" for a write of its own; here that is a `StorageUnknownError`.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

import obstore
from obstore import Bytes
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import MemoryStore, ObjectStore, S3Store

from omnigraph.errors import StorageError, StorageRefusedError, StorageUnknownError
from omnigraph.storage.objects.layout import Entry, require_folder, require_path
from omnigraph.storage.objects.s3_options import CLIENT_OPTIONS, resolve_s3_options

REQUEST_TIMEOUT = "30s"
CONNECT_TIMEOUT = "5s"

# Reads and replacing puts may be repeated: they mean the same every time.
RETRIES_MAX = 8
RETRY_TIMEOUT = timedelta(seconds=60)

# S3 answers 409 to one of two puts it meets at the same moment, and asks for another try.
CONFLICT_TRIES_MAX = 16
CONFLICT_PAUSE_S = 0.02

# The bound of one DeleteObjects request.
DELETE_BATCH_MAX = 1000
_STATUS = re.compile(r"status code: (\d{3})")

# Errors of the request itself, which the store refused before it did anything.
_CLIENT_FAULTS = range(400, 500)

# No credentials, no permission, no bucket (an absent object is not an error by then).
_REFUSALS = {401, 403, 404}
_CONFLICT = 409
_CLOUD_MACHINE = "/latest/api/token"
_memory: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()

# "Error performing GET http://… in 3.38ms": equal failures need equal messages.
_DURATION = re.compile(r" in \d+(\.\d+)?(ns|µs|ms|s)\b")


class RemoteObjects:
    """An object store that is used through a client of obstore."""

    def __init__(self, uri: str, store: ObjectStore, *, once: ObjectStore) -> None:
        self.uri = uri
        self._store = store
        # The same store, through a client that never repeats a request.
        self._once = once

    @property
    def store(self) -> ObjectStore:
        """The client, for reading."""
        return self._store

    def get(self, path: str) -> bytes | None:
        """The whole object, or None when it is absent."""
        return self._read(path, lambda: obstore.get(self._store, path).bytes())

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object that has them, or None when it is absent."""
        return self._read(
            path, lambda: obstore.get_range(self._store, path, start=start, length=length)
        )

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object; True if and only if this call created it."""
        for _ in range(CONFLICT_TRIES_MAX):
            with self._translate_errors("put_new", require_path(path), is_put=True):
                try:
                    obstore.put(self._once, path, data, mode="create", use_multipart=False)
                except AlreadyExistsError as error:
                    if _parse_status(error) != _CONFLICT:
                        return False
                else:
                    return True
            time.sleep(random.uniform(0, CONFLICT_PAUSE_S))  # noqa: S311 (a pause, no secret)
        raise StorageError("put_new", f"{self.uri}/{path}", "the store is busy with this path")

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object whole."""
        with self._translate_errors("put", require_path(path), is_put=True):
            obstore.put(self._store, path, data, use_multipart=False)

    def replace(self, path: str, data: bytes) -> None:
        """Replace an object whole."""
        self.put(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """Every object at any depth below a folder, in byte order, above the path `after`."""
        folder = require_folder(prefix)
        last = require_path(after) if after else ""
        with self._translate_errors("list", folder):
            for page in obstore.list(self._store, folder or None, offset=after):
                for found in page:
                    if found["path"] <= last:
                        raise StorageRefusedError(
                            "list", f"{self.uri}/{folder}", "the store does not list in order"
                        )
                    last = found["path"]
                    yield Entry(last, found["size"], found["last_modified"].timestamp())

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; absent ones are fine."""
        rest = map(require_path, paths)
        while batch := [*islice(rest, DELETE_BATCH_MAX)]:
            with self._translate_errors("delete", batch[0]):
                obstore.delete(self._store, batch)

    def _read(self, path: str, read: Callable[[], Bytes]) -> bytes | None:
        with self._translate_errors("get", require_path(path)):
            try:
                return bytes(read())
            except FileNotFoundError as error:
                if _is_missing_bucket(error):
                    raise
                return None

    @contextmanager
    def _translate_errors(
        self, operation: str, path: str, *, is_put: bool = False
    ) -> Iterator[None]:
        """Turn an error of the client into one of ours."""
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            kind = _classify_error(error, is_put=is_put)
            where = f"{self.uri}/{path}"
            raise kind(operation, where, reason_of(error), hint=_find_hint(error)) from error


def open_memory(name: str) -> RemoteObjects:
    """The store of that name in this process: all that open the name share it."""
    if not name:
        raise StorageRefusedError(
            "open", "memory://", "the address has no name", hint="write memory://NAME"
        )
    with _memory_lock:
        store = _memory.setdefault(name, MemoryStore())
    return RemoteObjects(f"memory://{name}", store, once=store)


def open_s3(uri: str, options: Mapping[str, str]) -> RemoteObjects:
    """The store at `s3://bucket/prefix`; options win over the AWS_* environment."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    if not bucket:
        raise StorageRefusedError(
            "open", uri, "the address has no bucket", hint="write s3://bucket/prefix"
        )
    settled = resolve_s3_options(options)
    # obstore checks keys and values itself, and types them as literals.
    config: Any = {key: value for key, value in settled.items() if key not in CLIENT_OPTIONS}
    client: Any = {"timeout": REQUEST_TIMEOUT, "connect_timeout": CONNECT_TIMEOUT}
    client |= {key: value for key, value in settled.items() if key in CLIENT_OPTIONS}
    prefix = prefix.strip("/")
    root = f"s3://{bucket}/{prefix}".rstrip("/")
    try:
        store, once = (
            S3Store(
                bucket,
                prefix=prefix or None,
                config=config,
                client_options=client,
                retry_config={"max_retries": retries, "retry_timeout": RETRY_TIMEOUT},
            )
            for retries in (RETRIES_MAX, 0)
        )
    except (BaseError, ValueError, TypeError) as error:
        raise StorageRefusedError("open", root, reason_of(error)) from error
    return RemoteObjects(root, store, once=once)


def create_s3_client(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """A client of `s3://bucket/prefix`, for reading what is not a graph."""
    return open_s3(uri, options).store


def _classify_error(error: Exception, *, is_put: bool) -> type[StorageError]:
    """Whether the step is refused, did not happen, or may have happened."""
    status = _parse_status(error)
    if status in _REFUSALS:
        return StorageRefusedError
    is_unsent = "kind: Connect," in str(error)
    if not is_put or is_unsent or status in _CLIENT_FAULTS:
        return StorageError
    return StorageUnknownError


def _find_hint(error: Exception) -> str | None:
    # Without credentials the client asks the machine it would run on in the cloud.
    if _CLOUD_MACHINE in str(error):
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return None


def _is_missing_bucket(error: Exception) -> bool:
    return "<Code>NoSuchBucket</Code>" in str(error)


def _parse_status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def reason_of(error: BaseException) -> str:
    """The first line of the message: the rest describes the internals of the client."""
    return _DURATION.sub("", str(error).partition("\n")[0])
