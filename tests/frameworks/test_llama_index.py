"""Property graph stores of LlamaIndex: its own one and ours, side by side, and whole indexes."""

from __future__ import annotations

import itertools

import pytest
from llama_index.core import Document, PropertyGraphIndex, StorageContext
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    PropertyGraphStore,
    Relation,
)
from llama_index.core.indices.property_graph import (
    CypherTemplateRetriever,
    ImplicitPathExtractor,
    SimpleLLMPathExtractor,
    VectorContextRetriever,
)
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from pydantic import BaseModel, Field

import omnigraph
from omnigraph.adapters import build_property_graph_schema
from omnigraph.adapters.llama_index import OmnigraphPropertyGraphStore
from omnigraph.errors import InvalidArgumentError

_NUMBERS = itertools.count()


def new_store() -> OmnigraphPropertyGraphStore:
    graph = omnigraph.create(
        f"memory://llama-{next(_NUMBERS)}", schema=build_property_graph_schema(4)
    )
    return OmnigraphPropertyGraphStore(graph.branch())


@pytest.fixture(params=["of LlamaIndex", "of Omnigraph"])
def store(request: pytest.FixtureRequest) -> PropertyGraphStore:
    return SimplePropertyGraphStore() if request.param == "of LlamaIndex" else new_store()


def fill(store: PropertyGraphStore) -> None:
    store.upsert_nodes(
        [
            EntityNode(name="Logan", label="PERSON", properties={"age": 28}),
            EntityNode(name="LlamaIndex", label="FIRM"),
            ChunkNode(text="Logan works there.", id_="c1", properties={"page": 1}),
        ]
    )
    store.upsert_relations(
        [
            Relation(label="WORKS_AT", source_id="Logan", target_id="LlamaIndex"),
            Relation(label="MENTIONS", source_id="c1", target_id="Logan", properties={"n": 1}),
        ]
    )


def shown(triplets: list[tuple[object, Relation, object]]) -> list[str]:
    return sorted(f"{a.id} {r.label} {b.id}" for a, r, b in triplets)  # type: ignore[attr-defined]  # union of nodes


def test_nodes_are_found_by_id_and_by_property(store: PropertyGraphStore) -> None:
    fill(store)
    assert store.get(ids=["Logan"]) == [
        EntityNode(name="Logan", label="PERSON", properties={"age": 28})
    ]
    assert [each.id for each in store.get(properties={"age": 28})] == ["Logan"]
    assert store.get(ids=["nothing"]) == []
    assert sorted(each.id for each in store.get()) == ["LlamaIndex", "Logan", "c1"]
    assert isinstance(store.get(ids=["c1"])[0], ChunkNode)


def test_triplets_are_found_by_ends_labels_and_properties(store: PropertyGraphStore) -> None:
    fill(store)
    assert shown(store.get_triplets(entity_names=["LlamaIndex"])) == ["Logan WORKS_AT LlamaIndex"]
    assert shown(store.get_triplets(relation_names=["MENTIONS"])) == ["c1 MENTIONS Logan"]
    assert shown(store.get_triplets(properties={"n": 1})) == ["c1 MENTIONS Logan"]
    assert shown(store.get_triplets(ids=["Logan"])) == [
        "Logan WORKS_AT LlamaIndex",
        "c1 MENTIONS Logan",
    ]
    assert store.get_triplets() == []


def test_the_surroundings_of_nodes_grow_with_the_depth(store: PropertyGraphStore) -> None:
    fill(store)
    store.upsert_relations([Relation(label="IN", source_id="LlamaIndex", target_id="SF")])
    logan = store.get(ids=["Logan"])
    near = store.get_rel_map(logan, depth=1)
    far = store.get_rel_map(logan, depth=2, ignore_rels=["MENTIONS"])
    assert shown(near) == ["Logan WORKS_AT LlamaIndex", "c1 MENTIONS Logan"]
    assert set(shown(far)) == {"LlamaIndex IN SF", "Logan WORKS_AT LlamaIndex"}
    assert len(store.get_rel_map(logan, depth=2, limit=1)) == 1


def test_an_end_that_does_not_exist_becomes_an_entity(store: PropertyGraphStore) -> None:
    store.upsert_relations([Relation(label="KNOWS", source_id="a", target_id="b")])
    assert store.get(ids=["b"]) == [EntityNode(name="b")]


def test_a_node_that_is_written_again_is_replaced(store: PropertyGraphStore) -> None:
    fill(store)
    store.upsert_nodes([EntityNode(name="Logan", label="PERSON", properties={"age": 29})])
    assert [each.properties for each in store.get(ids=["Logan"])] == [{"age": 29}]
    assert shown(store.get_triplets(relation_names=["WORKS_AT"])) == ["Logan WORKS_AT LlamaIndex"]


def test_a_deleted_node_takes_its_relations_along(store: PropertyGraphStore) -> None:
    fill(store)
    store.delete(ids=["Logan"])
    assert store.get(ids=["Logan"]) == []
    assert store.get_triplets(relation_names=["WORKS_AT", "MENTIONS"]) == []


def test_text_nodes_come_back_as_they_were(store: PropertyGraphStore) -> None:
    node = TextNode(
        text="a text",
        id_="t1",
        metadata={"page": 7},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc1")},
    )
    store.upsert_llama_nodes([node])
    found = store.get_llama_nodes(["t1"])
    assert [(each.node_id, each.get_content(), each.metadata) for each in found] == [
        ("t1", "a text", {"page": 7})
    ]
    assert found[0].ref_doc_id == "doc1"
    store.delete_llama_nodes(ref_doc_ids=["doc1"])
    assert store.get_llama_nodes(["t1"]) == []


def test_a_name_is_not_always_an_id() -> None:
    store = new_store()
    store.upsert_nodes([EntityNode(name='the "Ark"'), EntityNode(name="Noah")])
    store.upsert_relations(
        [Relation(label="BUILT", source_id="Noah", target_id=EntityNode(name='the "Ark"').id)]
    )
    assert shown(store.get_triplets(entity_names=['the "Ark"'])) == ["Noah BUILT the  Ark "]
    store.delete(entity_names=['the "Ark"'])
    assert [each.id for each in store.get()] == ["Noah"]


def test_the_nearest_nodes_are_found_under_a_filter() -> None:
    store = new_store()
    store.upsert_nodes(
        [
            EntityNode(name="x", embedding=[1, 0, 0, 0], properties={"kind": "a"}),
            EntityNode(name="y", embedding=[0.9, 0.1, 0, 0], properties={"kind": "b"}),
            EntityNode(name="z", embedding=[0, 1, 0, 0], properties={"kind": "b"}),
        ]
    )
    query = VectorStoreQuery(query_embedding=[1, 0, 0, 0], similarity_top_k=2)
    nodes, scores = store.vector_query(query)
    assert [node.id for node in nodes] == ["x", "y"]
    assert scores == sorted(scores, reverse=True)
    query.filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="b")])
    assert [node.id for node in store.vector_query(query)[0]] == ["y", "z"]
    query.filters = MetadataFilters(
        filters=[MetadataFilter(key="kind", value="b", operator=FilterOperator.NE)]
    )
    with pytest.raises(InvalidArgumentError, match="only equalities"):
        store.vector_query(query)


def test_a_vector_stays_when_a_node_is_written_without_one() -> None:
    store = new_store()
    store.upsert_nodes([EntityNode(name="x", embedding=[1, 0, 0, 0])])
    store.upsert_nodes([EntityNode(name="x", label="thing")])
    query = VectorStoreQuery(query_embedding=[1, 0, 0, 0], similarity_top_k=1)
    assert [node.label for node in store.vector_query(query)[0]] == ["thing"]


def test_the_schema_names_what_occurs() -> None:
    store = new_store()
    fill(store)
    assert store.get_schema()["node_labels"] == ["FIRM", "PERSON", "text_chunk"]
    assert "(PERSON)-[WORKS_AT]->(FIRM)" in store.get_schema_str()


def build_index(store: PropertyGraphStore) -> PropertyGraphIndex:
    return PropertyGraphIndex.from_documents(
        [Document(text="one two three " * 40, doc_id="d1"), Document(text="four", doc_id="d2")],
        llm=MockLLM(),
        embed_model=MockEmbedding(4),
        kg_extractors=[
            ImplicitPathExtractor(),
            SimpleLLMPathExtractor(
                llm=MockLLM(), num_workers=1, parse_fn=lambda _: [("Ann", "KNOWS", "Bob")]
            ),
        ],
        property_graph_store=store,
        embed_kg_nodes=True,
        show_progress=False,
    )


def test_an_index_is_built_queried_and_opened_again() -> None:
    store = new_store()
    index = build_index(store)
    found = index.as_retriever(
        sub_retrievers=[
            VectorContextRetriever(
                store, embed_model=MockEmbedding(4), similarity_top_k=5, include_text=True
            )
        ]
    ).retrieve("one")
    assert all("Ann -> KNOWS -> Bob" in each.get_content() for each in found)
    # The text that an entity was found in last.
    assert all(each.get_content().endswith("four") for each in found)
    again = PropertyGraphIndex.from_existing(
        property_graph_store=store, llm=MockLLM(), embed_model=MockEmbedding(4)
    )
    assert again.property_graph_store.get_llama_nodes([each.node_id for each in found]) != []
    index.delete_ref_doc("d2")
    assert all("four" not in node.text for node in store.get() if isinstance(node, ChunkNode))


def test_an_index_refuses_nothing_that_its_own_store_accepts(store: PropertyGraphStore) -> None:
    index = build_index(store)
    assert index.property_graph_store is store
    assert StorageContext.from_defaults(property_graph_store=store).property_graph_store is store


class Person(BaseModel):
    """The parameters of a template."""

    who: str = Field(description="the name of a person")


def test_a_template_is_a_query_with_parameters() -> None:
    store = new_store()
    fill(store)
    assert store.structured_query(
        "query firms($who: String) { match { $a: Entity { name: $who }  $a $r:relation $f  "
        '$r.label = "WORKS_AT" } return { $f.name as firm } }',
        {"who": "Logan"},
    ) == [{"firm": "LlamaIndex"}]
    CypherTemplateRetriever(store, output_cls=Person, cypher_query="query q() {}", llm=MockLLM())
