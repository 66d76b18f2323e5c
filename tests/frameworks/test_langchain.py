"""The standard tests of LangChain for vector stores and retrievers, and its graph documents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_community.graphs.graph_document import GraphDocument, Node, Relationship
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

import omnigraph
from omnigraph import Branch
from omnigraph.adapters import build_property_graph_schema
from omnigraph.adapters.langchain import OmnigraphRetriever, OmnigraphVectorStore
from omnigraph.adapters.langchain_graphs import OmnigraphGraphStore
from omnigraph.errors import InvalidArgumentError

EMBEDDING = DeterministicFakeEmbedding(size=6)
NEAR = """
query near($v: Vector(6), $k: I64) {
  match { $d: Entity  $d.label = "document" }
  return { $d.id as id, $d.text as text, $d.label as kind }
  order { nearest($d.vec, $v, metric: "cosine") }
  limit $k
}
"""


def new_branch() -> Branch:
    schema = build_property_graph_schema(6)
    return omnigraph.create(
        f"memory://{omnigraph.__name__}-{next(_NUMBERS)}", schema=schema
    ).branch()


_NUMBERS = iter(range(10**6))


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return OmnigraphVectorStore(new_branch(), self.get_embeddings())


class TestVectorStoreAsRetriever(RetrieversIntegrationTests):
    """The retriever that a query defines."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OmnigraphRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        branch = new_branch()
        OmnigraphVectorStore(branch, EMBEDDING).add_texts(["sea", "hills", "sand", "salt"])
        return {"branch": branch, "query": NEAR, "embedding": EMBEDDING}

    @property
    def retriever_query_example(self) -> str:
        return "hills"


def test_a_retriever_makes_metadata_of_the_columns_of_its_query() -> None:
    branch = new_branch()
    OmnigraphVectorStore(branch, EMBEDDING).add_texts(["sea", "hills"], ids=["1", "2"])
    retriever = OmnigraphRetriever(branch=branch, query=NEAR, embedding=EMBEDDING, k=1)
    expected = Document(id="2", page_content="hills", metadata={"kind": "document"})
    assert retriever.invoke("hills") == [expected]


def test_a_query_without_the_column_of_the_text_is_refused() -> None:
    branch = new_branch()
    OmnigraphVectorStore(branch, EMBEDDING).add_texts(["sea"])
    text = "query all() { match { $d: Entity } return { $d.id as id } }"
    with pytest.raises(InvalidArgumentError, match="no column 'text', but id"):
        OmnigraphRetriever(branch=branch, query=text).invoke("sea")


def test_a_filter_compares_metadata_before_the_nearest_are_chosen() -> None:
    store = OmnigraphVectorStore(new_branch(), EMBEDDING)
    store.add_texts(["a", "b", "c"], [{"n": 1}, {"n": 12}, {"n": 1, "deep": {"n": 12}}])
    found = store.similarity_search("a", k=3, filter={"n": 12})
    assert [each.page_content for each in found] == ["b"]


def test_the_least_alike_of_the_nearest_are_found() -> None:
    store = OmnigraphVectorStore(new_branch(), EMBEDDING)
    store.add_texts(["a", "a", "b"], ids=["1", "2", "3"])
    found = store.max_marginal_relevance_search("a", k=2, lambda_mult=0.1)
    assert [each.page_content for each in found] == ["a", "b"]


def test_relevance_is_between_0_and_1() -> None:
    store = OmnigraphVectorStore.from_texts(["a", "b"], EMBEDDING, branch=new_branch())
    found = store.similarity_search_with_relevance_scores("a")
    assert found[0][1] == pytest.approx(1.0)
    assert all(0 <= score <= 1 for _, score in found)
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("b")[0].page_content == "b"


def test_a_batch_of_texts_is_one_commit() -> None:
    branch = new_branch()
    store = OmnigraphVectorStore(branch, EMBEDDING)
    before = branch.snapshot().commit.version
    store.add_texts([f"text {number}" for number in range(500)])
    assert branch.snapshot().commit.version == before + 1


def test_graph_documents_are_one_commit_with_their_sources() -> None:
    branch = new_branch()
    store = OmnigraphGraphStore(branch)
    ann, acme = Node(id="ann", type="Person"), Node(id="acme", type="Firm", properties={"size": 3})
    text = Document(page_content="Ann works at Acme.", id="d1")
    documents = [
        GraphDocument(
            nodes=[ann, acme],
            relationships=[Relationship(source=ann, target=acme, type="WORKS_AT")],
            source=text,
        )
    ]
    before = branch.snapshot().commit.version
    store.add_graph_documents(documents, include_source=True)
    store.add_graph_documents(documents, include_source=True)
    assert branch.snapshot().commit.version <= before + 2
    store.refresh_schema()
    assert store.get_structured_schema == {
        "node_labels": ["Firm", "Person", "document"],
        "relationships": [
            {"start": "Person", "type": "WORKS_AT", "end": "Firm"},
            {"start": "document", "type": "MENTIONS", "end": "Firm"},
            {"start": "document", "type": "MENTIONS", "end": "Person"},
        ],
    }
    assert "WORKS_AT" in store.get_schema
    rows = store.query(
        "query firms($who: String) { match { $a: Entity { id: $who }  $a $r:relation $f  "
        '$r.label = "WORKS_AT" } return { $f.name as firm } }',
        {"who": "ann"},
    )
    assert rows == [{"firm": "acme"}]
