"""Storages of LightRAG: its own ones and ours, side by side, and documents from end to end."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from lightrag import LightRAG, QueryParam
from lightrag.kg.factory import get_storage_class
from lightrag.kg.shared_storage import finalize_share_data, initialize_share_data
from lightrag.namespace import NameSpace
from lightrag.utils import EmbeddingFunc, Tokenizer

import omnigraph
from omnigraph.adapters import build_property_graph_schema
from omnigraph.adapters.lightrag import register_storages
from omnigraph.errors import InvalidArgumentError

DIMENSIONS = 8
_NUMBERS = itertools.count()
OWN = {"graph": "NetworkXStorage", "vectors": "NanoVectorDBStorage", "values": "JsonKVStorage"}
OURS = {
    "graph": "OmnigraphGraphStorage",
    "vectors": "OmnigraphVectorStorage",
    "values": "OmnigraphKVStorage",
}
EXTRACTED = """entity<|#|>Ann<|#|>person<|#|>Ann leads Acme.
entity<|#|>Acme<|#|>organization<|#|>Acme sails ships.
relation<|#|>Ann<|#|>Acme<|#|>leads<|#|>Ann is the head of Acme.
<|COMPLETE|>"""


async def embed(texts: list[str], **_: Any) -> np.ndarray:
    """A vector that depends on the text alone."""
    seeds = [xxhash.xxh32_intdigest(text.encode()) for text in texts]
    return np.array([np.random.default_rng(seed).normal(size=DIMENSIONS) for seed in seeds])


async def answer(prompt: str, system_prompt: str | None = None, **_: Any) -> str:
    """A model that finds the same in every text."""
    is_extraction = "entity_types" in (system_prompt or "") or "<|#|>" in (system_prompt or prompt)
    return EXTRACTED if is_extraction else "Ann leads Acme."


class Letters:
    """A tokenizer that needs no file."""

    def encode(self, content: str) -> list[int]:
        return [ord(each) for each in content]

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))


def new_address() -> str:
    address = f"memory://lightrag-{next(_NUMBERS)}"
    _GRAPHS.append(omnigraph.create(address, schema=build_property_graph_schema(DIMENSIONS)))
    return address


# A graph in memory lives as long as an open handle of it.
_GRAPHS: list[omnigraph.Graph] = []
Make = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["of LightRAG", "of Omnigraph"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a storage of one kind for a namespace."""
    register_storages()
    initialize_share_data(workers=1)
    names = OWN if request.param == "of LightRAG" else OURS
    settings = {
        "working_dir": str(tmp_path),
        "embedding_batch_num": 10,
        "max_graph_nodes": 1000,
        "vector_db_storage_cls_kwargs": {
            "cosine_better_than_threshold": 0.2,
            "omnigraph_uri": new_address(),
        },
    }

    async def make_storage(kind: str, namespace: str, **fields: Any) -> Any:
        storage = get_storage_class(names[kind])(
            namespace=namespace,
            workspace="w",
            global_config=settings,
            embedding_func=EmbeddingFunc(embedding_dim=DIMENSIONS, func=embed),
            **fields,
        )
        await storage.initialize()
        return storage

    yield make_storage
    finalize_share_data()


async def test_values_are_written_read_filtered_and_deleted(make: Make) -> None:
    store = await make("values", NameSpace.KV_STORE_TEXT_CHUNKS)
    assert await store.is_empty()
    await store.upsert({"a": {"content": "one", "n": [1, {"x": None}]}, "b": {"content": "two"}})
    await store.index_done_callback()
    found = await store.get_by_ids(["b", "missing", "a"])
    assert [each and each["content"] for each in found] == ["two", None, "one"]
    assert found[2]["n"] == [1, {"x": None}]
    assert (await store.get_by_id_strict("a"))["content"] == "one"
    assert await store.filter_keys({"a", "c"}) == {"c"}
    assert not await store.is_empty()
    await store.delete(["a", "missing"])
    assert await store.get_by_id("a") is None
    assert (await store.drop())["status"] == "success"
    assert await store.is_empty()


async def test_namespaces_do_not_share_keys(make: Make) -> None:
    one = await make("values", NameSpace.KV_STORE_FULL_DOCS)
    other = await make("values", NameSpace.KV_STORE_TEXT_CHUNKS)
    await one.upsert({"k": {"content": "one"}})
    assert await other.get_by_id("k") is None


async def test_the_nearest_vectors_above_the_threshold_are_found(make: Make) -> None:
    store = await make(
        "vectors", NameSpace.VECTOR_STORE_ENTITIES, meta_fields={"entity_name", "content"}
    )
    rows = {f"ent-{at}": {"content": f"text {at}", "entity_name": f"n{at}"} for at in range(20)}
    await store.upsert(rows)
    await store.index_done_callback()
    found = await store.query("text 7", top_k=3)
    assert found[0]["id"] == "ent-7"
    assert found[0]["entity_name"] == "n7"
    assert found[0]["distance"] == pytest.approx(1.0, abs=1e-5)
    assert all(each["distance"] >= 0.2 for each in found)
    vectors = await store.get_vectors_by_ids(["ent-7", "missing"])
    assert list(vectors) == ["ent-7"]
    cosine = np.dot(vectors["ent-7"], (await embed(["text 7"]))[0])
    assert cosine / np.linalg.norm(vectors["ent-7"]) == pytest.approx(
        np.linalg.norm((await embed(["text 7"]))[0]), rel=1e-3
    )
    await store.delete(["ent-7"])
    await store.index_done_callback()
    assert await store.get_by_id("ent-7") is None
    assert "ent-7" not in [each["id"] for each in await store.query("text 7", top_k=20)]


async def test_the_vectors_of_an_entity_and_of_its_relations_are_deleted(make: Make) -> None:
    store = await make(
        "vectors", NameSpace.VECTOR_STORE_RELATIONSHIPS, meta_fields={"src_id", "tgt_id", "content"}
    )
    ends = {"r1": ("Ann", "Acme"), "r2": ("Bob", "Ann"), "r3": ("Bob", "Acme")}
    await store.upsert(
        {key: {"content": key, "src_id": a, "tgt_id": b} for key, (a, b) in ends.items()}
    )
    await store.index_done_callback()
    await store.delete_entity_relation("Ann")
    await store.index_done_callback()
    found = await store.get_by_ids(["r1", "r2", "r3"])
    assert [None if each is None else each["id"] for each in found] == [None, None, "r3"]


async def fill(make: Make) -> Any:
    graph = await make("graph", NameSpace.GRAPH_STORE_CHUNK_ENTITY_RELATION)
    await graph.upsert_nodes_batch(
        [(name, {"entity_id": name, "entity_type": "person"}) for name in ("Ann", "Bob", "Cyd")]
    )
    await graph.upsert_node("Acme", {"entity_id": "Acme", "entity_type": "firm"})
    await graph.upsert_edges_batch(
        [("Ann", "Acme", {"weight": "1"}), ("Bob", "Acme", {"weight": "2"})]
    )
    await graph.upsert_edge("Cyd", "Bob", {"weight": "3"})
    await graph.index_done_callback()
    return graph


async def test_relations_have_no_direction(make: Make) -> None:
    graph = await fill(make)
    assert await graph.has_edge("Acme", "Ann")
    assert not await graph.has_edge("Ann", "Bob")
    assert await graph.get_edge("Acme", "Bob") == {"weight": "2"}
    assert sorted(await graph.get_node_edges("Acme")) == [("Acme", "Ann"), ("Acme", "Bob")]
    assert await graph.get_node_edges("missing") is None
    pairs = [{"src": "Acme", "tgt": "Ann"}, {"src": "Ann", "tgt": "Cyd"}]
    found = await graph.get_edges_batch(pairs)
    assert found[("Acme", "Ann")] == {"weight": "1"}
    both = await graph.get_nodes_edges_batch(["Bob", "Cyd"])
    assert {key: sorted(each) for key, each in both.items()} == {
        "Bob": [("Bob", "Acme"), ("Bob", "Cyd")],
        "Cyd": [("Cyd", "Bob")],
    }


async def test_degrees_count_relations(make: Make) -> None:
    graph = await fill(make)
    assert await graph.node_degree("Bob") == 2
    assert await graph.node_degrees_batch(["Ann", "Acme"]) == {"Ann": 1, "Acme": 2}
    assert await graph.edge_degree("Ann", "Acme") == 3
    assert await graph.edge_degrees_batch([("Ann", "Acme")]) == {("Ann", "Acme"): 3}
    assert await graph.get_popular_labels(2) == ["Acme", "Bob"]


async def test_what_is_written_again_is_merged(make: Make) -> None:
    graph = await fill(make)
    await graph.upsert_node("Ann", {"description": "leads"})
    await graph.upsert_edge("Acme", "Ann", {"keywords": "leads"})
    assert await graph.get_node("Ann") == {
        "entity_id": "Ann",
        "entity_type": "person",
        "description": "leads",
    }
    assert await graph.get_edge("Ann", "Acme") == {"weight": "1", "keywords": "leads"}


async def test_nodes_and_edges_are_removed(make: Make) -> None:
    graph = await fill(make)
    await graph.remove_edges([("Acme", "Ann"), ("Ann", "Cyd")])
    assert not await graph.has_edge("Ann", "Acme")
    await graph.delete_node("Bob")
    await graph.remove_nodes(["missing"])
    assert await graph.get_node("Bob") is None
    assert await graph.get_all_edges() == []
    assert await graph.get_all_labels() == ["Acme", "Ann", "Cyd"]
    assert await graph.has_nodes_batch(["Ann", "Bob"]) == {"Ann"}
    await graph.drop()
    assert await graph.get_all_nodes() == []


async def test_labels_are_searched(make: Make) -> None:
    graph = await fill(make)
    assert await graph.search_labels("bob") == ["Bob"]
    assert await graph.search_labels("a") == ["Acme", "Ann"] or await graph.search_labels("a") == [
        "Ann",
        "Acme",
    ]
    assert await graph.search_labels("  ") == []


async def test_the_graph_around_an_entity_is_drawn(make: Make) -> None:
    graph = await fill(make)
    near = await graph.get_knowledge_graph("Ann", max_depth=1)
    assert sorted(node.id for node in near.nodes) == ["Acme", "Ann"]
    assert [(edge.source, edge.target) for edge in near.edges] == [("Acme", "Ann")]
    far = await graph.get_knowledge_graph("Ann", max_depth=3)
    assert len(far.nodes) == 4
    assert len(far.edges) == 3
    everything = await graph.get_knowledge_graph("*", max_nodes=2)
    assert sorted(node.id for node in everything.nodes) == ["Acme", "Bob"]
    assert everything.is_truncated
    assert (await graph.get_knowledge_graph("missing")).nodes == []


async def test_documents_are_inserted_asked_and_deleted(tmp_path: Path) -> None:
    register_storages()
    address = new_address()
    rag = LightRAG(
        working_dir=str(tmp_path),
        kv_storage=OURS["values"],
        vector_storage=OURS["vectors"],
        graph_storage=OURS["graph"],
        vector_db_storage_cls_kwargs={"omnigraph_uri": address},
        llm_model_func=answer,
        embedding_func=EmbeddingFunc(embedding_dim=DIMENSIONS, func=embed),
        tokenizer=Tokenizer("letters", Letters()),
        entity_extract_max_gleaning=0,
    )
    await rag.initialize_storages()
    await rag.ainsert(["Ann leads Acme."], ids=["d1"], file_paths=["d1.txt"])
    found = await rag.chunk_entity_relation_graph.get_all_labels()
    assert found == ["Acme", "Ann"]
    context = await rag.aquery(
        "Who leads Acme?", QueryParam(mode="local", only_need_context=True, enable_rerank=False)
    )
    assert "Ann" in str(context)
    await rag.adelete_by_doc_id("d1")
    assert await rag.chunk_entity_relation_graph.get_all_labels() == []
    await rag.finalize_storages()


def test_a_storage_without_an_address_is_refused() -> None:
    register_storages()
    with pytest.raises(InvalidArgumentError, match="omnigraph_uri"):
        get_storage_class(OURS["values"])(
            namespace="n", workspace="w", global_config={}, embedding_func=None
        )
