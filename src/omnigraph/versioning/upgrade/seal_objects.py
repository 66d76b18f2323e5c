"""Objects that were written before digests get them: their own, and those of what they refer to.

A digest that is computed now says what is stored now, so each object is decoded first, each change
set read, and each version of a table opened and counted: what is found to be damaged is an error,
and gets no valid digest. Content and fields are kept as they are, unknown ones too. Hints, leases
and the note of the last automatic clean-up are left alone: they are replaced or removed soon.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

from omnigraph.errors import CorruptObjectError
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.digests import digest_of
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.change_sets import load_change_set
from omnigraph.versioning.json_fields import Fields, decode_fields, has_digest, seal_bytes
from omnigraph.versioning.record import Spilled
from omnigraph.versioning.record_codec import decode_change, decode_pins

_READERS: Final = 8
# Read at a time, so that the objects of a long history are not in memory at once.
_BATCH: Final = 1024
# Commits in a row share most of their pins.
_PINS_MAX: Final = 65_536


class SealObjects:
    """Adds the digests of one graph."""

    def __init__(self, objects: Objects, tables: Tables) -> None:
        self._objects = objects
        self._tables = tables
        self._digests: LruCache[tuple[str, str], str | None] = LruCache(_PINS_MAX)

    def run(self, *, is_dry: bool) -> int:
        """Replace every object that lacks a digest; how many there are."""
        changed = 0
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            paths = self._list_paths()
            while batch := [*islice(paths, _BATCH)]:
                for path, sealed in zip(batch, readers.map(self._seal, batch), strict=True):
                    if sealed is None:
                        continue
                    changed += 1
                    if not is_dry:
                        self._objects.replace(path, sealed)
        return changed

    def _list_paths(self) -> Iterator[str]:
        listed = (entry.path for entry in self._objects.list(layout.MANIFEST))
        return (path for path in listed if layout.has_digest_inside(path))

    def _seal(self, path: str) -> bytes | None:
        """The bytes of an object with all digests; None if it has them."""
        data = self._objects.get(path)
        # A clean-up removed it meanwhile, or it is a floor that says all by its name.
        if not data:
            return None
        first = layout.find_first_path(path)
        fields = decode_fields(first, data)
        document = json.loads(data)
        if self._add_pin_digests(fields, document) | self._add_change_digests(fields, document):
            document.pop("digest", None)
            kept = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            return seal_bytes(first, kept.encode())
        return None if has_digest(data) else seal_bytes(first, data)

    def _add_pin_digests(self, fields: Fields, document: dict[str, Any]) -> bool:
        added = False
        for type_key, pin in decode_pins(fields.get_child_or_empty("pins")).items():
            digest = self._compute_pin_digest(pin) if pin.digest is None else None
            if digest is not None:
                document["pins"][type_key]["digest"] = digest
                added = True
        return added

    def _compute_pin_digest(self, pin: Pin) -> str | None:
        key = (pin.path, pin.version)
        if (known := self._digests.get(key)) is not None:
            return known
        return self._digests.put(key, self._tables.compute_manifest_digest(pin))

    def _add_change_digests(self, fields: Fields, document: dict[str, Any]) -> bool:
        added = False
        for type_key, child in fields.get_child_or_empty("changes").iter_children():
            change = decode_change(child)
            if not isinstance(change, Spilled) or change.digest is not None:
                continue
            data = self._objects.get(change.file)
            if data is None:
                raise CorruptObjectError(
                    change.file, "a record names this change set, and it is absent"
                )
            load_change_set(self._objects, change)
            document["changes"][type_key]["digest"] = digest_of(data)
            added = True
        return added
