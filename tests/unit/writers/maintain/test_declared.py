"""Which indexes a schema asks for."""

from __future__ import annotations

import pytest

from omnigraph.execution.text import analyze
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.indexes import BTREE, INVERTED, VECTOR
from omnigraph.storage.tables import IndexSpec, Pin, Tables
from omnigraph.writers.maintain.declared import declared_indexes, kind_of
from unit.execution.model_views import add_nodes, model_graph, view_of

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
            "text": INVERTED,
            "vec": VECTOR,
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


@pytest.mark.parametrize("name", ["file", "words"])
def test_blobs_and_lists_have_no_kind(name: str) -> None:
    graph = model_graph("node Item { name: String @key  file: Blob?  words: [String]? }")
    assert kind_of(graph.catalog.nodes["Item"].properties[name].type) is None


def test_plain_words_are_cut_as_searches_cut_them() -> None:
    texts = ["The Running cats", "Cat RUNS", "a dog's life", "x" * 50, ""]
    graph = model_graph("node Item { name: String @key  text: String? @index }")
    add_nodes(graph, "Item", [{"name": str(n), "text": text} for n, text in enumerate(texts)])
    view = view_of(graph, parts=1)
    key = next(iter(view.types))
    spec = next(one.spec for one in declared_indexes(view)[key] if one.property == "text")
    pin = _built(view.tables, view, key, spec)
    dataset = view.tables._handles.get(pin)
    for word in ("running", "cats", "cat", "dog", "life"):
        query = {"query": word, "columns": [spec.column]}
        scanner = dataset.scanner(columns=["__id", "_score"], full_text_query=query)
        found = set(scanner.to_table()["__id"].to_pylist())
        wanted = set(analyze(word))
        assert found == {str(n) for n, text in enumerate(texts) if wanted & set(analyze(text))}


def _built(tables: Tables, view: View, key: TypeKey, spec: IndexSpec) -> Pin:
    pin = view.snapshot.pins[str(key)]
    indexed = tables.build_indexes(pin, [spec])
    assert indexed is not None
    done = tables.replay(indexed, pin)
    assert done is not None
    return done


def declared(view: View) -> dict[str, dict[str, str]]:
    return {
        str(key): {index.property: index.spec.kind for index in indexes}
        for key, indexes in declared_indexes(view).items()
    }
