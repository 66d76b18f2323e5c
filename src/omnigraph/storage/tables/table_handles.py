"""Open table versions: one Lance session, a bounded cache, and addresses for every store."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation

from omnigraph.errors import CorruptObjectError
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.objects.s3_options import resolve_s3_options
from omnigraph.storage.tables.file_digests import Verifier
from omnigraph.storage.tables.lance_errors import translate_lance_errors
from omnigraph.storage.tables.pins import Pin, format_version
from omnigraph.storage.tables.table_manifests import build_manifest_path, manifest_of

# A handle holds a parsed manifest of a few kilobytes; 256 cover the hot types of some branches.
HANDLES_MAX = 256
# What Lance keeps of manifests, files and transactions: 200 million values need 15 MB.
# A commit adds 5 kB that may never be read again, and Lance's own limit of 1 GiB would let a
# process that only writes grow all day.
METADATA_BYTES_MAX: Final = 16 * 1024**2
# On an object store a miss costs a request, as much as many reads of a disk.
REMOTE_METADATA_BYTES_MAX: Final = 128 * 1024**2
# Pages of indexes; those of versions that are gone stay until others push them out. Lance's own
# limit of 6 GiB is more than many machines have.
INDEX_BYTES_MAX: Final = 2 * 1024**3
# Blob columns need 2.2; a fixed version keeps old and new fragments of one table alike.
STORAGE_VERSION: Final = "2.2"


class Handles:
    """The datasets of one graph, opened by pin."""

    def __init__(self, root_uri: str, *, options: Mapping[str, str] | None) -> None:
        self.root = open_objects(root_uri, options=options).uri
        # Lance reads the rest of the environment itself.
        is_s3 = self.root.startswith("s3://")
        self._options = (resolve_s3_options(options or {}) if is_s3 else {}) or None
        self.verifier = Verifier(self.root)
        self._open: LruCache[tuple[str, str], LanceDataset] = LruCache(HANDLES_MAX)
        self._memory = _memory_of(self.root) if self.root.startswith("memory://") else None
        self._session = self._memory.session if self._memory else _create_session(is_remote=is_s3)

    def create(self, path: str, schema: pa.Schema) -> LanceDataset:
        """Create an empty dataset, its linear version 1; fails when the path is taken."""
        with translate_lance_errors("create", path):
            dataset = lance.write_dataset(
                schema.empty_table(),
                self._uri_of(path),
                mode="create",
                enable_stable_row_ids=True,
                data_storage_version=STORAGE_VERSION,
                storage_options=self._options,
                session=self._session,
            )
        if self._memory:
            self._memory.anchors.append(dataset)
        return self._keep(path, dataset)

    def get(self, pin: Pin) -> LanceDataset:
        """The pinned version: one read of one object when it is not open yet."""
        found = self.get_known(pin.path, pin.version)
        return self._keep(pin.path, self.get_own(pin)) if found is None else found

    def get_known(self, path: str, version: str) -> LanceDataset | None:
        """A version that is open, or None."""
        return self._open.get((path, version))

    def get_own(self, pin: Pin) -> LanceDataset:
        """The pinned version, opened for one thread.

        While Lance builds an index, it refuses every other use of the same object.
        """
        self.verifier.require_manifest(pin)
        with translate_lance_errors("open", pin.path):
            return lance.dataset(
                self._uri_of(pin.path),
                version=int(pin.version, 16),
                storage_options=self._options,
                session=self._session,
            )

    def open_latest(self, path: str) -> LanceDataset:
        """The newest version of the linear history of a table, which is not part of any graph."""
        with translate_lance_errors("open", path):
            return lance.dataset(
                self._uri_of(path), storage_options=self._options, session=_create_session()
            )

    def commit(self, pin: Pin, operation: LanceOperation.BaseOperation) -> Pin:
        """Commit detached: the result is a private child of `pin` that only its pin can reach."""
        base = self.get(pin)
        with translate_lance_errors("commit", pin.path):
            # Lance checks next to nothing here (fragment ids are unique, rewritten fragments
            # exist): what the operation says must have been computed on this very version.
            dataset = LanceDataset.commit(base, operation, read_version=base.version, detached=True)
        tip = self.pin_of(pin.path, dataset, high_water=pin.high_water)
        self._keep(pin.path, dataset)
        self.verifier.trust(pin, tip)
        return tip

    def pin_of(self, path: str, dataset: LanceDataset, *, high_water: int) -> Pin:
        """The pin of an open version, given the highest fragment id that its ancestors used."""
        with translate_lance_errors("pin", path):
            ids = dataset.fragment_ids()
            return Pin(
                path=path,
                version=format_version(dataset.version),
                rows=dataset.count_rows(),
                fragments=len(ids),
                high_water=max([high_water, *ids]),
                digest=self.verifier.compute_manifest_digest(f"{path}/{manifest_of(dataset)}"),
            )

    def compute_manifest_digest(self, pin: Pin) -> str | None:
        """The digest that a pin without one should have; None where manifests have none.

        The version has to be what the pin says; one whose manifest is gone has no digest either.
        """
        path = build_manifest_path(pin)
        if not (self.verifier.is_active and os.path.exists(self._uri_of(path))):
            return None
        found = self.pin_of(pin.path, self.get(pin), high_water=pin.high_water)
        if (found.rows, found.fragments) != (pin.rows, pin.fragments):
            raise CorruptObjectError(path, "it has other rows than its record says")
        return found.digest

    def _keep(self, path: str, dataset: LanceDataset) -> LanceDataset:
        return self._open.put((path, format_version(dataset.version)), dataset)

    def _uri_of(self, path: str) -> str:
        return f"{self.root}/{path}"


def _create_session(
    *, is_remote: bool = False
) -> Any:  # public at run time, missing from the types
    metadata = REMOTE_METADATA_BYTES_MAX if is_remote else METADATA_BYTES_MAX
    return vars(lance)["Session"](
        index_cache_size_bytes=INDEX_BYTES_MAX, metadata_cache_size_bytes=metadata
    )


class _Memory:
    """The tables of one `memory://` name; Lance forgets them with the last open handle."""

    def __init__(self) -> None:
        self.session = _create_session()
        self.anchors: list[LanceDataset] = []


_memories: dict[str, _Memory] = {}
_memories_lock = threading.Lock()


def _memory_of(root: str) -> _Memory:
    with _memories_lock:
        return _memories.setdefault(root, _Memory())
