"""LangChain: graphs that were extracted from documents, in a branch.

The graph store of LangChain is a protocol of five members, and a graph document anything that has
nodes, relationships and a source; the package that defines both, `langchain-community`, is not
developed any more. So this module imports neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import xxhash

from omnigraph.adapters.property_graph import PropertyGraph, PropertyNode, PropertyRelation
from omnigraph.engine.branch import Branch

# The relation from a document to what was found in it, and the label of documents.
_MENTIONS = "MENTIONS"
_DOCUMENT = "document"


class ExtractedNode(Protocol):
    """A node of a graph document."""

    @property
    def id(self) -> str | int: ...  # noqa: D102 — the members of a protocol speak for themselves
    @property
    def type(self) -> str: ...  # noqa: D102
    @property
    def properties(self) -> Mapping[str, Any]: ...  # noqa: D102 — Any: JSON


class ExtractedRelationship(Protocol):
    """A relationship of a graph document."""

    @property
    def source(self) -> ExtractedNode: ...  # noqa: D102
    @property
    def target(self) -> ExtractedNode: ...  # noqa: D102
    @property
    def type(self) -> str: ...  # noqa: D102
    @property
    def properties(self) -> Mapping[str, Any]: ...  # noqa: D102 — Any: JSON


class SourceDocument(Protocol):
    """The text that a graph was extracted from."""

    @property
    def id(self) -> str | None: ...  # noqa: D102
    @property
    def page_content(self) -> str: ...  # noqa: D102
    @property
    def metadata(self) -> Mapping[str, Any]: ...  # noqa: D102 — Any: JSON


class ExtractedGraph(Protocol):
    """A graph document."""

    @property
    def nodes(self) -> Sequence[ExtractedNode]: ...  # noqa: D102
    @property
    def relationships(self) -> Sequence[ExtractedRelationship]: ...  # noqa: D102
    @property
    def source(self) -> SourceDocument: ...  # noqa: D102


class OmnigraphGraphStore:
    """A graph store whose queries are written in the language of Omnigraph.

    The types of the branch are those of `build_property_graph_schema`. Chains that let a model
    write Cypher cannot use it: there is no Cypher here.
    """

    def __init__(
        self, branch: Branch, *, node_type: str = "Entity", edge_type: str = "Relation"
    ) -> None:
        self._graph = PropertyGraph(branch, node_type=node_type, edge_type=edge_type)
        self._structured: dict[str, Any] = {}  # Any: as LangChain declares it
        self.refresh_schema()

    @property
    def get_schema(self) -> str:
        """The schema of the branch, and the labels that occur."""
        relations = [
            f"({each['start']})-[{each['type']}]->({each['end']})"
            for each in self._structured["relationships"]
        ]
        labels = ", ".join(self._structured["node_labels"])
        schema = self._graph.branch.snapshot().schema
        return f"{schema}\nLabels of nodes: {labels}\nRelations: {', '.join(relations)}\n"

    @property
    def get_structured_schema(self) -> dict[str, Any]:
        """Labels of nodes, and which relations there are between them, as of the last refresh."""
        return self._structured

    def refresh_schema(self) -> None:
        """Count the labels anew."""
        nodes, relations = self._graph.count_labels()
        self._structured = {
            "node_labels": list(nodes),
            "relationships": [
                {"start": source, "type": label, "end": target}
                for source, label, target in relations
            ],
        }

    def query(self, query: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query in the language of Omnigraph."""
        return self._graph.branch.query(query, params=params or {}).to_pylist()

    def add_graph_documents(
        self, graph_documents: Sequence[ExtractedGraph], include_source: bool = False
    ) -> None:
        """Write the nodes and relations of all documents in one commit."""
        documents = list(graph_documents)
        nodes = [_entity_of(node) for each in documents for node in _iter_nodes(each)]
        relations = [
            PropertyRelation(
                str(each.source.id), str(each.target.id), each.type, dict(each.properties)
            )
            for document in documents
            for each in document.relationships
        ]
        if include_source:
            nodes += [_source_of(each.source) for each in documents]
            relations += [
                PropertyRelation(_source_of(each.source).id, str(node.id), _MENTIONS)
                for each in documents
                for node in _iter_nodes(each)
            ]
        self._graph.write(nodes, relations)


def _iter_nodes(document: ExtractedGraph) -> Iterable[ExtractedNode]:
    """The nodes of a document, and those that only its relations name."""
    for each in document.relationships:
        yield from (each.source, each.target)
    yield from document.nodes


def _entity_of(node: ExtractedNode) -> PropertyNode:
    name = str(node.properties.get("name", node.id))
    return PropertyNode(str(node.id), node.type, name, None, node.properties)


def _source_of(source: SourceDocument) -> PropertyNode:
    """A document as a node; without an id, its content identifies it."""
    node_id = source.id or xxhash.xxh3_128_hexdigest(source.page_content.encode())
    return PropertyNode(node_id, _DOCUMENT, None, source.page_content, source.metadata)
