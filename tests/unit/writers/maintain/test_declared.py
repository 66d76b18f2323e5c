"""Which indexes a schema asks for."""

from __future__ import annotations

import pytest

from omnigraph.execution.view import View
from omnigraph.storage.indexes import BTREE
from omnigraph.writers.maintain.declared import declared_indexes, kind_of
from unit.execution.model_views import model_graph, view_of

SCHEMA = """
node Item {
  code: I64 @key
  text: String? @index
  kind: enum(big, small)? @index
  flag: Bool? @index
  share: F32? @index
  day: Date? @index
  at: DateTime? @index
  vec: Vector(2)? @index
  plain: String?
  @index(flag, day)
}
node Place { country: String  number: I32  @key(country, number) }
edge Near: Place -> Place { since: Date?  @index(since)  @index(@src)  @key(@src, @dst) }
edge Link: Item -> Item
"""


def test_ids_ends_and_single_properties_are_indexed_by_the_kind_of_their_type() -> None:
    found = declared(view_of(model_graph(SCHEMA)))
    assert found == {
        "node:Item": {
            "@id": BTREE,
            "at": BTREE,
            "code": BTREE,
            "day": BTREE,
            "flag": BTREE,
            "kind": BTREE,
            "share": BTREE,
            "text": BTREE,
        },
        "node:Place": {"@id": BTREE},
        "edge:Link": {"@id": BTREE, "@src": BTREE, "@dst": BTREE},
        "edge:Near": {"@id": BTREE, "@src": BTREE, "@dst": BTREE, "since": BTREE},
    }


def test_names_of_indexes_are_unique_in_a_table_and_free_of_property_names() -> None:
    for indexes in declared_indexes(view_of(model_graph(SCHEMA))).values():
        names = [index.spec.name for index in indexes]
        assert len(set(names)) == len(names)
        assert not {"code", "text", "since"} & {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("name", ["file", "words", "vec"])
def test_blobs_lists_and_vectors_have_no_kind(name: str) -> None:
    graph = model_graph(
        "node Item { name: String @key  file: Blob?  words: [String]?  vec: Vector(2)? }"
    )
    assert kind_of(graph.catalog.nodes["Item"].properties[name].type) is None


def declared(view: View) -> dict[str, dict[str, str]]:
    return {
        str(key): {index.property: index.spec.kind for index in indexes}
        for key, indexes in declared_indexes(view).items()
    }
