"""The accepted schemas of a graph: immutable objects, by the hash of their content.

A record names the schema in force by that hash, so every commit can be read by its own schema, and
a schema change is a commit like any other.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import CorruptObjectError, StorageUnknownError, StoredSchemaError
from omnigraph.lru_cache import LruCache
from omnigraph.schema.accepted_decoder import decode_accepted
from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import decode_fields, encode_plain_fields

# A schema is read once and then needed by every operation; old ones serve time travel.
CACHED_MAX: Final = 64


# Compared by identity, so that what others derive from one can be kept as long as it lives.
@dataclass(frozen=True, eq=False)
class StoredSchema:
    """A schema as a graph keeps it: what was written, and what it was accepted as."""

    digest: str
    source: str
    accepted: AcceptedSchema

    @property
    def catalog(self) -> Catalog:
        """The checked types, for queries and writers."""
        return self.accepted.catalog


class Schemas:
    """The schema objects of one graph; safe to share between threads."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: LruCache[str, StoredSchema] = LruCache(CACHED_MAX)

    def put(self, source: str, accepted: AcceptedSchema) -> StoredSchema:
        """Store a schema before the record that names it; storing it again is allowed."""
        data = encode_plain_fields({"source": source, "accepted": accepted.to_json()})
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        path = layout.build_schema_path(digest)
        try:
            is_new = self._objects.put_new(path, data)
        except StorageUnknownError:
            # No record may name an object that might not be there.
            if self._objects.get(path) != data:
                raise
            is_new = True
        # One that was already there is read: no further record may name it if it is damaged.
        if not is_new:
            return self.get(digest)
        return self._known.put(digest, StoredSchema(digest, source, accepted))

    def get(self, digest: str) -> StoredSchema:
        """The schema that a record names."""
        if (known := self._known.get(digest)) is not None:
            return known
        path = layout.build_schema_path(digest)
        data = self._objects.get(path)
        if data is None:
            raise CorruptObjectError(path, "a record names this schema, and it is absent")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise CorruptObjectError(
                path, "its content is not what its name says", hint="restore it from a copy"
            )
        return self._known.put(digest, _decode_schema(path, digest, data))


def _decode_schema(path: str, digest: str, data: bytes) -> StoredSchema:
    source = decode_fields(path, data).get_text("source")
    try:
        accepted = decode_accepted(json.loads(data)["accepted"])
    except (KeyError, TypeError) as error:
        raise CorruptObjectError(path, f"is not a schema: {error!r}") from error
    except StoredSchemaError as error:
        raise StoredSchemaError(f"{path}: {error.message}", hint=error.hint) from error
    return StoredSchema(digest, source, accepted)
