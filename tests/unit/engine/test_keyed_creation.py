"""Creating a graph with a key, and a schema change under a condition."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import omnigraph
import places
from omnigraph.errors import GraphExistsError, SchemaMovedError

SCHEMA = "node Person { name: String @key }\n"
WIDER = "node Person { name: String @key\n  age: I32? }\n"


def test_a_creation_repeated_with_its_key_opens_the_graph(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "g")
    with omnigraph.create(uri, schema=SCHEMA, key="once") as graph:
        first = graph.branch().head.id
    with omnigraph.create(uri, schema=SCHEMA, key="once") as graph:
        assert graph.branch().head.id == first
    for key in (None, "another"):
        with pytest.raises(GraphExistsError):
            omnigraph.create(uri, schema=SCHEMA, key=key)


def test_a_schema_change_expects_the_schema_that_it_was_planned_from(tmp_path: Path) -> None:
    digest = hashlib.sha256(SCHEMA.encode()).hexdigest()
    with omnigraph.create(places.fresh_uri(tmp_path / "g"), schema=SCHEMA) as graph:
        with pytest.raises(SchemaMovedError) as caught:
            graph.branch().apply_schema(WIDER, if_schema="0" * 64)
        assert caught.value.actual == digest
        assert graph.branch().schema == SCHEMA
        graph.branch().apply_schema(WIDER, if_schema=digest)
        assert graph.branch().schema == WIDER
