"""Views of one schema share what is derived from it, for as long as it lives."""

from __future__ import annotations

import gc
import weakref
from typing import cast

from omnigraph.rows.view import View
from omnigraph.schema import load_catalog
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import Snapshot
from omnigraph.versioning.schema_store import StoredSchema


def test_what_is_derived_from_a_schema_is_made_once_and_goes_with_it() -> None:
    accepted = accept_schema(load_catalog("node B { x: I32? }  node A { y: I32? }")).schema
    stored = StoredSchema("sha256:one", "", accepted)
    views = [View(cast(Snapshot, None), stored, cast(Tables, None)) for _ in range(2)]
    key = TypeKey(TypeKind.NODE, "A")
    assert views[0].get_shape(key) is views[1].get_shape(key)
    assert views[0].types is views[1].types
    assert [each.name for each in views[0].types] == ["A", "B"]
    # Another schema may have the same digest only in tests; it never shares what is derived.
    other = View(cast(Snapshot, None), StoredSchema("sha256:one", "", accepted), views[0].tables)
    assert other.get_shape(key) == views[0].get_shape(key)
    assert other.get_shape(key) is not views[0].get_shape(key)
    gone = weakref.ref(stored)
    del stored, views
    gc.collect()
    assert gone() is None
