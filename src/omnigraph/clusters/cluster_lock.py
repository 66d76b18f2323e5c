"""The lock of a cluster: courtesy between people. No answer depends on it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Final

from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import LOCK
from omnigraph.clusters.stored_documents import (
    JsonObject,
    parse_object,
    require_fields,
    require_number,
    require_text,
)
from omnigraph.errors import StorageError, StorageUnknownError
from omnigraph.ids import generate_ulid
from omnigraph.storage import Objects

VERSION: Final = 1
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class LockRecord:
    """Who holds the lock."""

    version: int
    lock_id: str
    operation: str
    created_at: str
    pid: int

    @property
    def age_seconds(self) -> int:
        """How long it has been held."""
        created = datetime.fromisoformat(self.created_at)
        return max(0, int((datetime.now(UTC) - created).total_seconds()))


class ClusterLock:
    """The lock below one root."""

    def __init__(self, objects: Objects, pause: Callable[[float], None] = time.sleep) -> None:
        self._objects = objects
        self._pause = pause

    def read(self) -> LockRecord | None:
        """The record of the lock if it is held."""
        data = self._objects.get(LOCK)
        if data is None:
            return None
        try:
            document = parse_object(data)
            version = require_number(document.get("version"), "version")
            if version != VERSION:
                raise ClusterStopped("unsupported_state_lock_version", LOCK, f"version {version}")
            return _decode_record(document)
        except ValueError as error:
            raise ClusterStopped("invalid_state_lock", LOCK, f"not a lock: {error}") from error

    @contextmanager
    def hold(self, operation: str, *, timeout_s: float) -> Iterator[LockRecord]:
        """Hold the lock during some work; waits for it, and refuses after the timeout."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = LockRecord(VERSION, generate_ulid(), operation, now, os.getpid())
        self._acquire(record, time.monotonic() + timeout_s)
        try:
            yield record
        finally:
            # A lock that stays is shown by `status`; it must not hide what became of the work.
            with suppress(StorageError, ClusterStopped):
                self.release(record.lock_id)

    def release(self, lock_id: str) -> None:
        """Remove the lock of that very id."""
        found = self.read()
        if found is None:
            raise ClusterStopped("state_lock_missing", LOCK, "the cluster is not locked")
        if found.lock_id != lock_id:
            raise ClusterStopped(
                "state_lock_id_mismatch", LOCK, f"the lock is {found.lock_id}, not {lock_id}"
            )
        self._objects.delete([LOCK])

    def _acquire(self, record: LockRecord, give_up_at: float) -> None:
        data = json.dumps(asdict(record), indent=2).encode() + b"\n"
        while not self._put(data):
            found = self.read()
            if found is None:
                continue
            if time.monotonic() >= give_up_at:
                raise ClusterStopped(
                    "state_lock_held",
                    LOCK,
                    f"'{found.operation}' holds lock {found.lock_id} since {found.created_at};"
                    " wait with --lock-timeout, or if it is gone run"
                    f" omnigraph cluster force-unlock {found.lock_id}",
                )
            self._pause(_POLL_S)

    def _put(self, data: bytes) -> bool:
        try:
            return self._objects.put_new(LOCK, data)
        except StorageUnknownError:
            return self._objects.get(LOCK) == data


def _decode_record(document: JsonObject) -> LockRecord:
    require_fields(document, [each.name for each in fields(LockRecord)], "the lock")
    created_at = require_text(document["created_at"], "created_at")
    if datetime.fromisoformat(created_at).tzinfo is None:
        raise ValueError("created_at has no time zone")
    return LockRecord(
        VERSION,
        require_text(document["lock_id"], "lock_id"),
        require_text(document["operation"], "operation"),
        created_at,
        require_number(document["pid"], "pid"),
    )
