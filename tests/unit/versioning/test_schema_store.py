from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from omnigraph.errors import (
    CorruptObjectError,
    FormatTooNewError,
    StorageUnknownError,
    StoredSchemaError,
)
from omnigraph.schema import accept_schema, load_catalog
from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects
from omnigraph.versioning import schema_store as module
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from unit.versioning.memory_storage import MemoryObjects

SOURCE = """// Who knows whom.
interface Named { name: String @index }
node Person implements Named { mood: enum(glad, sad)?  v: Vector(4)?
  size: F64?  @unique(name)  @range(size, 0.5..) }
edge Knows: Person -> Person @card(0..3) { weight: F64?  @unique(@src, weight) }
"""


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


def accept(source: str = SOURCE) -> AcceptedSchema:
    return accept_schema(load_catalog(source), domain="01ARZ3NDEKTSV4RRFFQ69G5FAV").schema


def put(objects: MemoryObjects, source: str = SOURCE) -> StoredSchema:
    return Schemas(objects).put(source, accept(source))


def stored_as(objects: MemoryObjects, document: Any) -> str:
    """The digest of a document that somebody stored where its hash says."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    objects.data[layout.build_schema_path(digest)] = data
    return digest


def content(stored: StoredSchema) -> tuple[str, str, AcceptedSchema]:
    return stored.digest, stored.source, stored.accepted


def test_a_stored_schema_is_read_back_with_its_text(objects: MemoryObjects) -> None:
    stored = put(objects)
    found = Schemas(objects).get(stored.digest)
    assert content(found) == content(stored) == (stored.digest, SOURCE, accept())
    assert found.catalog == accept().catalog


def test_the_name_of_a_schema_is_the_hash_of_its_bytes(objects: MemoryObjects) -> None:
    stored = put(objects)
    (data,) = objects.data.values()
    assert stored.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert list(objects.data) == [layout.build_schema_path(stored.digest)]


def test_the_same_schema_is_stored_once_and_another_text_is_another_object(
    objects: MemoryObjects,
) -> None:
    assert content(put(objects)) == content(put(objects))
    assert len(objects.data) == 1
    other = Schemas(objects).put(f"{SOURCE}// more", accept())
    assert len(objects.data) == 2
    assert other.accepted == put(objects).accepted


def test_a_schema_is_read_once(objects: MemoryObjects) -> None:
    digest = put(objects).digest
    schemas = Schemas(objects)
    objects.calls.clear()
    assert schemas.get(digest) is schemas.get(digest)
    assert objects.calls == [("get", layout.build_schema_path(digest))]


def test_only_some_schemas_are_kept_in_memory(
    objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED_MAX", 2)
    schemas = Schemas(objects)
    first, second, third = (
        schemas.put(f"node A{number} {{}}", accept(f"node A{number} {{}}")).digest
        for number in range(3)
    )
    objects.calls.clear()
    schemas.get(second)
    schemas.get(third)
    assert objects.calls == []
    schemas.get(first)
    assert [path for _, path in objects.calls] == [layout.build_schema_path(first)]
    schemas.get(third)
    assert len(objects.calls) == 1, "the one that was used last is dropped last"


def test_an_absent_schema_is_named(objects: MemoryObjects) -> None:
    with pytest.raises(CorruptObjectError, match="absent") as caught:
        Schemas(objects).get("sha256:00")
    assert caught.value.path == layout.build_schema_path("sha256:00")


@pytest.mark.parametrize("damage", [b"", b"{}", b"not JSON"])
def test_a_damaged_schema_is_named(objects: MemoryObjects, damage: bytes) -> None:
    digest = put(objects).digest
    objects.data[layout.build_schema_path(digest)] = damage
    with pytest.raises(CorruptObjectError, match="not what its name says") as caught:
        Schemas(objects).get(digest)
    assert caught.value.path == layout.build_schema_path(digest)


def test_one_flipped_letter_is_noticed(objects: MemoryObjects) -> None:
    digest = put(objects).digest
    path = layout.build_schema_path(digest)
    objects.data[path] = objects.data[path].replace(b"weight", b"height")
    with pytest.raises(CorruptObjectError, match="not what its name says"):
        Schemas(objects).get(digest)


@pytest.mark.parametrize(
    "document",
    [b"[]", b"\xff", {"format": 1}, {"format": 1, "source": "x"}, {"format": 1, "source": 7}],
)
def test_an_object_that_is_no_schema_is_named(objects: MemoryObjects, document: Any) -> None:
    digest = stored_as(objects, document)
    with pytest.raises(CorruptObjectError, match=layout.build_schema_path(digest)):
        Schemas(objects).get(digest)


@pytest.mark.parametrize("accepted", [{}, [], None, 7, {"ir_version": 5, "features": []}])
def test_an_accepted_form_that_nobody_wrote_is_refused_with_its_path(
    objects: MemoryObjects, accepted: Any
) -> None:
    digest = stored_as(objects, {"format": 1, "source": "x", "accepted": accepted})
    with pytest.raises(
        (StoredSchemaError, CorruptObjectError), match=layout.build_schema_path(digest)
    ):
        Schemas(objects).get(digest)


def test_a_schema_of_a_newer_program_is_refused(objects: MemoryObjects) -> None:
    path = layout.build_schema_path(put(objects).digest)
    document = json.loads(objects.data[path])
    newer = stored_as(objects, document | {"format": 99})
    with pytest.raises(FormatTooNewError, match="99"):
        Schemas(objects).get(newer)
    digest = stored_as(objects, document | {"accepted": document["accepted"] | {"ir_version": 6}})
    with pytest.raises(StoredSchemaError, match="version 6") as caught:
        Schemas(objects).get(digest)
    assert caught.value.hint


def test_a_damaged_object_is_not_named_by_another_record(objects: MemoryObjects) -> None:
    digest = put(objects).digest
    objects.data[layout.build_schema_path(digest)] = b"{}"
    with pytest.raises(CorruptObjectError):
        put(objects)


@pytest.mark.parametrize(
    ("kind", "is_stored"), [(FaultKind.UNKNOWN_AFTER, True), (FaultKind.UNKNOWN_BEFORE, False)]
)
def test_a_lost_acknowledgement_is_resolved_by_reading(
    objects: MemoryObjects, kind: FaultKind, is_stored: bool
) -> None:
    schemas = Schemas(FaultyObjects(objects, Fault(1, kind, "put_new").create_steps()))
    if is_stored:
        assert content(schemas.put(SOURCE, accept())) == content(put(objects))
    else:
        with pytest.raises(StorageUnknownError):
            schemas.put(SOURCE, accept())
        assert content(schemas.put(SOURCE, accept())) == content(put(objects))
