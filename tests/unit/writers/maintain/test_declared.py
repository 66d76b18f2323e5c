"""Which indexes a schema asks for."""

from __future__ import annotations

import pytest

from omnigraph.rows.view import View
from omnigraph.writers.maintain.index_status import can_be_indexed, list_declared_indexes
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


def test_ids_ends_and_single_properties_are_indexed() -> None:
    assert declared(view_of(model_graph(SCHEMA))) == {
        "node:Item": ["@id", "at", "code", "day", "flag", "kind", "share", "text"],
        "node:Place": ["@id"],
        "edge:Link": ["@id", "@src", "@dst"],
        "edge:Near": ["@id", "@src", "@dst", "since"],
    }


def test_unique_members_are_indexed_for_writes_and_only_texts_wait_for_a_command() -> None:
    schema = """
    node User { name: String @key  email: String @unique  team: String  seat: I32
                bio: String? @index  age: I32? @index  @unique(team, seat) }
    """
    [found] = list_declared_indexes(view_of(model_graph(schema))).values()
    assert [one.property for one in found if one.serves_writes] == ["@id", "email", "seat", "team"]
    assert [one.property for one in found if not one.by_default] == ["bio"]


def test_names_of_indexes_are_unique_in_a_table_and_free_of_property_names() -> None:
    for indexes in list_declared_indexes(view_of(model_graph(SCHEMA))).values():
        names = [index.spec.name for index in indexes]
        assert len(set(names)) == len(names)
        assert not {"code", "text", "since"} & {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("name", ["file", "words", "vec"])
def test_blobs_lists_and_vectors_are_not_indexed(name: str) -> None:
    graph = model_graph(
        "node Item { name: String @key  file: Blob?  words: [String]?  vec: Vector(2)? }"
    )
    assert not can_be_indexed(graph.catalog.nodes["Item"].properties[name].type)


def declared(view: View) -> dict[str, list[str]]:
    return {
        str(key): [index.property for index in indexes]
        for key, indexes in list_declared_indexes(view).items()
    }
