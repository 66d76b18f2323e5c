"""LangChain: documents of a branch by the likeness of their vectors, or by any query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from omnigraph.adapters.property_graph import NodeFilter, PropertyGraph, PropertyNode
from omnigraph.engine.branch import Branch
from omnigraph.errors import InvalidArgumentError
from omnigraph.errors.query_errors import require_extra
from omnigraph.ids import generate_ulid

with require_extra("langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import ConfigDict, Field


class OmnigraphVectorStore(VectorStore):
    """Documents as nodes of one label of a property graph, with their vectors.

    The types of the branch are those of `build_property_graph_schema`. `filter` is a dict of
    metadata, which are compared before the nearest are chosen. Scores are cosines.
    """

    def __init__(
        self,
        branch: Branch,
        embedding: Embeddings,
        *,
        label: str = "document",
        node_type: str = "Entity",
        edge_type: str = "Relation",
    ) -> None:
        self._graph = PropertyGraph(branch, node_type=node_type, edge_type=edge_type)
        self._embedding = embedding
        self._label = label

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,  # Any: as LangChain declares it
        *,
        ids: list[str] | None = None,
        **_: Any,  # Any: as above
    ) -> list[str]:
        """Write texts in one commit, and return their ids; an id that exists is replaced."""
        contents = list(texts)
        given: Sequence[str | None] = ids or [None] * len(contents)
        kept = [each or generate_ulid() for each in given]
        nodes = [
            PropertyNode(node_id, self._label, None, text, metadata, vector)
            for node_id, text, metadata, vector in zip(
                kept,
                contents,
                metadatas or [{}] * len(contents),
                self._embedding.embed_documents(contents) if contents else [],
                strict=True,
            )
        ]
        self._graph.write(nodes)
        return kept

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:  # Any: as above
        """Delete documents by id, or all of them, in one commit."""
        self._graph.delete_nodes(NodeFilter(ids=ids, label=self._label))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that have these ids."""
        found = self._graph.fetch_nodes(NodeFilter(ids=ids, label=self._label))
        return [_document_of(node) for node in found]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        **kwargs: Any,  # Any: as above
    ) -> list[Document]:
        """The documents whose vectors are nearest to that of a text."""
        return [found for found, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        **kwargs: Any,  # Any: as above
    ) -> list[tuple[Document, float]]:
        """The same, with cosines."""
        return self.similarity_search_with_score_by_vector(
            self._embedding.embed_query(query), k, **kwargs
        )

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        **kwargs: Any,  # Any: as above
    ) -> list[Document]:
        """The documents whose vectors are nearest to this one."""
        found = self.similarity_search_with_score_by_vector(embedding, k, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 — the name that LangChain gives it
        **_: Any,  # Any: as above
    ) -> list[tuple[Document, float]]:
        """The same, with cosines."""
        wanted = NodeFilter(label=self._label, properties=filter or {})
        found = self._graph.find_nearest(embedding, limit=k, wanted=wanted)
        return [(_document_of(node), score) for node, score in found]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,  # Any: as above
    ) -> list[Document]:
        """Of the nearest `fetch_k` documents those `k` that are least alike among themselves."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(
            vector, k, fetch_k, lambda_mult, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 — the name that LangChain gives it
        **_: Any,  # Any: as above
    ) -> list[Document]:
        """The same for a vector."""
        # The package of vectors is one of LangChain's own dependencies.
        import numpy as np  # noqa: PLC0415

        wanted = NodeFilter(label=self._label, properties=filter or {})
        found = self._graph.find_nearest(embedding, limit=fetch_k, wanted=wanted, has_vectors=True)
        vectors = [list(node.vector or ()) for node, _ in found]
        chosen = maximal_marginal_relevance(np.array(embedding), vectors, lambda_mult, k)
        return [_document_of(found[at][0]) for at in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return _to_relevance

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,  # Any: as above
        *,
        ids: list[str] | None = None,
        branch: Branch | None = None,
        **kwargs: Any,  # Any: as above
    ) -> OmnigraphVectorStore:
        """A store of a branch, with these texts in it."""
        if branch is None:
            raise InvalidArgumentError("branch", "is missing", hint="pass graph.branch('main')")
        store = cls(branch, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store


class OmnigraphRetriever(BaseRetriever):
    """The rows of a query as documents: by words, vectors, traversals or all of them.

    The query declares `$q`, the question, or `$v`, its vector, or both, and may declare `$k`. The
    column `text` is the content of a document, the column `id` its id, and every other column its
    metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    branch: Branch
    query: str
    name: str | None = None
    k: int = 4
    params: dict[str, Any] = Field(default_factory=dict)  # Any: values of parameters
    embedding: Embeddings | None = None
    text_column: str = "text"
    id_column: str = "id"

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 — a query has no events of its own
        k: int | None = None,
        **params: Any,  # Any: values of parameters
    ) -> list[Document]:
        count = self.k if k is None else k
        offered: dict[str, object] = {"q": query, "k": count}
        if self.embedding is not None:
            offered["v"] = self.embedding.embed_query(query)
        values = {name: each for name, each in offered.items() if f"${name}:" in self.query}
        rows = self.branch.query(
            self.query, name=self.name, params={**values, **self.params, **params}
        ).to_pylist()
        return [self._build_document(row) for row in rows[:count]]

    def _build_document(self, row: dict[str, Any]) -> Document:  # Any: values of columns
        if self.text_column not in row:
            raise InvalidArgumentError(
                "query",
                f"it returns no column '{self.text_column}', but {', '.join(row)}",
                hint="name one with `as text`, or pass text_column",
            )
        own = {self.text_column, self.id_column}
        found = row.get(self.id_column)
        return Document(
            id=None if found is None else str(found),
            page_content=str(row[self.text_column] or ""),
            metadata={name: value for name, value in row.items() if name not in own},
        )


def _document_of(node: PropertyNode) -> Document:
    return Document(id=node.id, page_content=node.text or "", metadata=dict(node.properties))


def _to_relevance(cosine: float) -> float:
    """A cosine as a relevance from 0 to 1."""
    return (1.0 + cosine) / 2.0
