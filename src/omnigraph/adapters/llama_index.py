"""LlamaIndex: the property graph store of an index, in a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.adapters.property_graph import (
    NodeFilter,
    PropertyGraph,
    PropertyNode,
    PropertyRelation,
)
from omnigraph.engine.branch import Branch
from omnigraph.errors import InvalidArgumentError
from omnigraph.errors.query_errors import require_extra

with require_extra("llama-index"):
    from llama_index.core.graph_stores.types import (
        ChunkNode,
        EntityNode,
        LabelledNode,
        PropertyGraphStore,
        Relation,
        Triplet,
    )
    from llama_index.core.prompts import PromptTemplate
    from llama_index.core.vector_stores.types import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
    )

_QUERY_PROMPT = """\
Write one read in the query language of Omnigraph that answers a question about a graph.

The schema, and the labels that occur in it:
{schema}

A read has the form
query answer() {{
  match {{ $a: Entity  $a.name = "…"  $a $r:relation $b  $r.label = "…" }}
  return {{ $b.name as name }}
}}
Return the query only, without an explanation.

The question: {question}
"""


class OmnigraphPropertyGraphStore(PropertyGraphStore):
    """A property graph store whose batches are commits.

    The types of the branch are those of `build_property_graph_schema`. Nodes match a dict of
    properties if all of them are equal; structured queries are in the language of Omnigraph.
    """

    supports_structured_queries = True
    supports_vector_queries = True
    text_to_cypher_template = PromptTemplate(_QUERY_PROMPT)

    def __init__(
        self, branch: Branch, *, node_type: str = "Entity", edge_type: str = "Relation"
    ) -> None:
        self._graph = PropertyGraph(branch, node_type=node_type, edge_type=edge_type)

    @property
    def client(self) -> Branch:
        """The branch."""
        return self._graph.branch

    def get(
        self,
        properties: dict[str, Any] | None = None,  # Any: as LlamaIndex declares it
        ids: list[str] | None = None,
    ) -> list[LabelledNode]:
        """The nodes with these ids, and these values of properties; without either, all of them."""
        wanted = NodeFilter(ids=ids, properties=properties or {})
        return [_labelled_node_of(node) for node in self._graph.fetch_nodes(wanted)]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,  # Any: as above
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """The relations with an end of these names or ids; without any argument, none."""
        if not (entity_names or relation_names or properties or ids):
            return []
        ends = list(ids or [])
        if entity_names:
            named = self._graph.fetch_nodes(NodeFilter(names=entity_names))
            ends += [node.id for node in named]
        found = self._graph.fetch_relations(
            ends=ends if entity_names or ids else None,
            labels=relation_names or None,
            properties=properties,
        )
        return self._build_triplets(found)

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """The relations around some nodes, nearest first."""
        ids = [node.id for node in graph_nodes]
        found = self._graph.fetch_neighbourhood(
            ids, depth=depth, limit=limit, ignored_labels=ignore_rels or ()
        )
        return self._build_triplets(found)

    def _build_triplets(self, relations: Sequence[PropertyRelation]) -> list[Triplet]:
        ends = {end for each in relations for end in (each.source, each.target)}
        nodes = {
            node.id: _labelled_node_of(node)
            for node in self._graph.fetch_nodes(NodeFilter(ids=sorted(ends)))
        }
        return [(nodes[each.source], _relation_of(each), nodes[each.target]) for each in relations]

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Write nodes in one commit."""
        self._graph.write([_property_node_of(node) for node in nodes])

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Write relations in one commit; an end that does not exist becomes an entity."""
        self._graph.write(
            relations=[
                PropertyRelation(each.source_id, each.target_id, each.label, each.properties)
                for each in relations
            ]
        )

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,  # Any: as above
        ids: list[str] | None = None,
    ) -> None:
        """Delete nodes by name, by properties and by id, and relations by label."""
        if entity_names:
            self._graph.delete_nodes(NodeFilter(names=entity_names))
        if ids:
            self._graph.delete_nodes(NodeFilter(ids=ids))
        if properties:
            self._graph.delete_nodes(NodeFilter(properties=properties))
        if relation_names:
            self._graph.delete_relations(relation_names)

    def structured_query(
        self,
        query: str,
        param_map: dict[str, Any] | None = None,  # Any: as above
    ) -> list[dict[str, Any]]:
        """The rows of a query in the language of Omnigraph."""
        return self.client.query(query, params=param_map or {}).to_pylist()

    def vector_query(
        self,
        query: VectorStoreQuery,
        **_: Any,  # Any: as above
    ) -> tuple[list[LabelledNode], list[float]]:
        """The nodes whose vectors are nearest, and the cosines of their angles."""
        if query.query_embedding is None:
            raise InvalidArgumentError("query", "it has no embedding")
        wanted = NodeFilter(
            ids=query.node_ids or query.doc_ids, properties=_read_filters(query.filters)
        )
        found = self._graph.find_nearest(
            query.query_embedding, limit=query.similarity_top_k, wanted=wanted
        )
        return [_labelled_node_of(node) for node, _ in found], [score for _, score in found]

    def get_schema(self, refresh: bool = False) -> dict[str, Any]:  # noqa: ARG002 — always fresh
        """The schema text, and which labels of nodes and relations there are."""
        nodes, relations = self._graph.count_labels()
        return {
            "schema": self.client.snapshot().schema,
            "node_labels": list(nodes),
            "relations": [
                f"({source})-[{label}]->({target})" for source, label, target in relations
            ],
        }

    def get_schema_str(self, refresh: bool = False) -> str:
        """The same as a text for a prompt."""
        found = self.get_schema(refresh)
        labels, relations = ", ".join(found["node_labels"]), ", ".join(found["relations"])
        return f"{found['schema']}\nLabels of nodes: {labels}\nRelations: {relations}"


def _labelled_node_of(node: PropertyNode) -> LabelledNode:
    properties = dict(node.properties)
    if node.name is None:
        text = node.text or ""
        return ChunkNode(text=text, id_=node.id, label=node.label, properties=properties)
    return EntityNode(name=node.name, label=node.label, properties=properties)


def _property_node_of(node: LabelledNode) -> PropertyNode:
    name = node.name if isinstance(node, EntityNode) else None
    text = node.text if isinstance(node, ChunkNode) else None
    return PropertyNode(node.id, node.label, name, text, node.properties, node.embedding)


def _relation_of(relation: PropertyRelation) -> Relation:
    return Relation(
        label=relation.label,
        source_id=relation.source,
        target_id=relation.target,
        properties=dict(relation.properties),
    )


def _read_filters(filters: MetadataFilters | None) -> dict[str, Any]:  # Any: values of metadata
    """Equalities that all hold; other filters are refused."""
    if filters is None:
        return {}
    found: dict[str, Any] = {}
    for each in filters.filters:
        is_equality = isinstance(each, MetadataFilter) and each.operator is FilterOperator.EQ
        if filters.condition is not FilterCondition.AND or not is_equality:
            raise InvalidArgumentError(
                "filters",
                "only equalities that are joined by `and` are tested in the graph",
                hint="write other conditions as a structured query",
            )
        found[each.key] = each.value
    return found
