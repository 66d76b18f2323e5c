"""The ledger of a cluster: immutable revisions, of which one put commits each.

The end is found from a hint and by listing after it; the hint is never believed further than that.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_layout import (
    FORMAT,
    HINT,
    STATE,
    STATE_COPY,
    build_revision_path,
    parse_graph_uri,
    parse_revision_path,
)
from omnigraph.clusters.revision import Revision, encode_revision
from omnigraph.clusters.revision_decoder import decode_revision
from omnigraph.clusters.stored_documents import parse_object, require_number, require_text
from omnigraph.errors import StorageError, StorageUnknownError
from omnigraph.ids import generate_ulid
from omnigraph.storage import Objects, open_objects

FORMAT_VERSION: Final = 1
# How often a put whose answer was lost is repeated before the outcome is in doubt.
PUTS_MAX: Final = 8


class ClusterLedger:
    """The revisions below one root."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def read_cluster_id(self) -> str | None:
        """The id of the cluster, or None where there is none."""
        data = self._objects.get(FORMAT)
        if data is None:
            return None
        try:
            document = parse_object(data)
            version = require_number(document.get("format"), "format")
            if version > FORMAT_VERSION:
                raise ClusterStopped(
                    "unsupported_state_version", FORMAT, f"it has format {version}"
                )
            return require_text(document.get("cluster"), "cluster")
        except ValueError as error:
            raise ClusterStopped("invalid_state_json", FORMAT, f"not read: {error}") from error

    def create(self) -> str:
        """The id of the cluster, which is created if there is none."""
        fresh = {"format": FORMAT_VERSION, "cluster": generate_ulid()}
        with suppress(StorageUnknownError):
            self._objects.put_new(FORMAT, json.dumps(fresh).encode() + b"\n")
        found = self.read_cluster_id()
        if found is None:
            raise ClusterStopped("state_write_error", FORMAT, "it was not written")
        return found

    def read_newest(self) -> Revision | None:
        """The newest revision, or None where nothing was ever applied."""
        number = self._find_newest()
        return None if number is None else self.read(number)

    def has_revision(self) -> bool:
        """Whether anything was ever applied."""
        return self._find_newest() is not None

    def read(self, number: int) -> Revision:
        """One revision by its number."""
        path = build_revision_path(number)
        try:
            data = self._objects.get(path)
        except StorageError as error:
            raise ClusterStopped("state_read_error", path, error.message) from error
        if data is None:
            raise ClusterStopped("state_missing", path, f"there is no revision {number}")
        return decode_revision(number, data)

    def list_numbers(self) -> list[int]:
        """The numbers of all revisions, in order."""
        paths = (parse_revision_path(entry.path) for entry in self._objects.list(STATE))
        return sorted(number for number in paths if number is not None)

    def put(self, revision: Revision) -> bool:
        """Commit a revision; False if another one has its number."""
        path, data = build_revision_path(revision.number), encode_revision(revision)
        for _ in range(PUTS_MAX):
            with suppress(StorageUnknownError):
                if self._objects.put_new(path, data):
                    return True
            # "Exists" may be our own put, whose first answer was lost.
            if (stored := self._objects.get(path)) is not None:
                return stored == data
        raise StorageUnknownError("put_new", path, "no answer says whether it was written")

    def write_copies(self, revision: Revision) -> None:
        """Write the hint and the copy for people; both can be made again at any time."""
        self._objects.put(HINT, json.dumps({"revision": revision.number}).encode() + b"\n")
        self._objects.put(STATE_COPY, encode_revision(revision))

    def _find_newest(self) -> int | None:
        hinted = self._read_hint()
        after = None if hinted is None else build_revision_path(hinted)
        entries = self._objects.list(STATE, after=after)
        found = [n for n in (parse_revision_path(entry.path) for entry in entries) if n is not None]
        return max(found, default=hinted)

    def _read_hint(self) -> int | None:
        data = self._objects.get(HINT)
        if data is None:
            return None
        try:
            number = require_number(parse_object(data).get("revision"), "revision")
        except ValueError:
            return None
        is_there = self._objects.get(build_revision_path(number)) is not None
        return number if is_there else None


def find_managing_root(uri: str) -> str | None:
    """The root of the cluster that a graph's address lies in; other addresses are not probed."""
    root = parse_graph_uri(uri if "://" in uri else str(Path(uri).absolute()))
    return root if root is not None and ClusterLedger(open_objects(root)).has_revision() else None
