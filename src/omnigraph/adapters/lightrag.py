"""LightRAG: its graph, its vectors and its values of keys, in a branch.

LightRAG makes its storages by the names of their classes, after `register_storages()`; which branch
they use stands in `vector_db_storage_cls_kwargs` (`omnigraph_uri`, and `omnigraph_branch` unless it
is `main`). Each namespace of a workspace is a label of one property graph, and its ids begin with
both. The states of documents stay with LightRAG's own storage: its scheduler owns them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import omnigraph
from omnigraph.adapters.property_graph import (
    NodeFilter,
    PropertyGraph,
    PropertyNode,
    PropertyRelation,
)
from omnigraph.errors import InvalidArgumentError
from omnigraph.errors.query_errors import require_extra

with require_extra("lightrag"):
    from lightrag import kg
    from lightrag.base import BaseGraphStorage, BaseKVStorage, BaseVectorStorage
    from lightrag.types import KnowledgeGraph, KnowledgeGraphEdge, KnowledgeGraphNode
    from lightrag.utils import compute_mdhash_id

_ADDRESS: Final = "omnigraph_uri"
_BRANCH: Final = "omnigraph_branch"
_RELATED: Final = "related"
# The bound of LightRAG's own storages for a drawing of the graph.
_DRAWN_NODES_MAX: Final = 1000
_ALL_LABELS: Final = "*"
# The default of LightRAG for a cosine below which a vector is not an answer.
_SCORE_MIN: Final = 0.2

Returned = TypeVar("Returned")


def register_storages() -> None:
    """Make the storages of this module known to LightRAG by their names."""
    for kind, storage in (
        ("GRAPH_STORAGE", OmnigraphGraphStorage),
        ("VECTOR_STORAGE", OmnigraphVectorStorage),
        ("KV_STORAGE", OmnigraphKVStorage),
    ):
        names = kg.STORAGE_IMPLEMENTATIONS[kind]["implementations"]
        if storage.__name__ not in names:
            names.append(storage.__name__)
        kg.STORAGES[storage.__name__] = __name__
        kg.STORAGE_ENV_REQUIREMENTS.setdefault(storage.__name__, [])


class _Space:
    """One namespace of a workspace: a label of nodes, and what their ids begin with."""

    def __init__(self, settings: dict[str, Any], *, workspace: str, namespace: str) -> None:
        options = settings.get("vector_db_storage_cls_kwargs") or {}
        if _ADDRESS not in options:
            raise InvalidArgumentError(
                "vector_db_storage_cls_kwargs",
                f"it has no '{_ADDRESS}'",
                hint='pass {"omnigraph_uri": "memory.omni"}, the address of a graph',
            )
        graph = omnigraph.connect(options[_ADDRESS])
        self.graph = PropertyGraph(graph.branch(options.get(_BRANCH, "main")))
        self.label = f"{workspace}/{namespace}"
        self._prefix = f"{self.label}/"

    def to_id(self, key: str) -> str:
        return self._prefix + key

    def to_key(self, node_id: str) -> str:
        return node_id.removeprefix(self._prefix)

    def filter_of(self, keys: Iterable[str] | None = None) -> NodeFilter:
        """The nodes of these keys, or all of the namespace."""
        ids = None if keys is None else [self.to_id(key) for key in keys]
        return NodeFilter(ids=ids, label=self.label)

    def fetch(
        self, keys: Iterable[str] | None = None, *, has_vectors: bool = False
    ) -> dict[str, PropertyNode]:
        """The nodes of these keys, or all of the namespace, by key."""
        found = self.graph.fetch_nodes(self.filter_of(keys), has_vectors=has_vectors)
        return {self.to_key(node.id): node for node in found}

    def write(
        self, values: dict[str, dict[str, Any]], vectors: dict[str, list[float]] | None = None
    ) -> None:
        """Write the values of keys in one commit."""
        self.graph.write(
            PropertyNode(self.to_id(key), self.label, key, None, value, (vectors or {}).get(key))
            for key, value in values.items()
        )

    def drop(self) -> dict[str, str]:
        self.graph.delete_nodes(self.filter_of())
        return {"status": "success", "message": "data dropped"}


async def _run(call: Callable[..., Returned], *args: Any, **kwargs: Any) -> Returned:
    """A call of the engine, in a thread, so that the loop goes on."""
    return await asyncio.to_thread(call, *args, **kwargs)


@dataclass
class OmnigraphKVStorage(BaseKVStorage):
    """Values of keys; a miss is a confirmed one, for a read sees every commit."""

    supports_strict_point_reads = True

    def __post_init__(self) -> None:
        self._space = _Space(self.global_config, workspace=self.workspace, namespace=self.namespace)

    async def get_by_id(self, id: str) -> dict[str, Any] | None:  # noqa: A002 — LightRAG's name
        """The value of a key."""
        return (await self.get_by_ids([id]))[0]

    async def get_by_id_strict(self, id: str) -> dict[str, Any] | None:  # noqa: A002 — as above
        """The same: a failure raises."""
        return await self.get_by_id(id)

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """The values of keys, in their order; None where there is none."""
        found = await _run(self._space.fetch, ids)
        return [_value_of(found.get(key)) for key in ids]

    async def filter_keys(self, keys: set[str]) -> set[str]:
        """The keys that do not exist."""
        return keys - (await _run(self._space.fetch, keys)).keys()

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write values in one commit; times of creation stay."""
        found = await _run(self._space.fetch, list(data))
        now = int(time.time())
        values = {
            key: {
                **value,
                "create_time": found[key].properties.get("create_time", now)
                if key in found
                else now,
                "update_time": now,
                "_id": key,
            }
            for key, value in data.items()
        }
        await _run(self._space.write, values)

    async def delete(self, ids: list[str]) -> None:
        """Delete keys in one commit."""
        await _run(self._space.graph.delete_nodes, self._space.filter_of(ids))

    async def is_empty(self) -> bool:
        """Whether no key has a value."""
        return not await _run(self._space.fetch)

    async def index_done_callback(self) -> None:
        """Nothing is left to do: every write is a commit."""

    async def drop(self) -> dict[str, str]:
        """Delete all keys of the namespace."""
        return await _run(self._space.drop)


@dataclass
class OmnigraphVectorStorage(BaseVectorStorage):
    """Vectors with the fields that LightRAG stores beside them; distances are cosines."""

    def __post_init__(self) -> None:
        self._validate_embedding_func()
        self._space = _Space(self.global_config, workspace=self.workspace, namespace=self.namespace)
        options = self.global_config.get("vector_db_storage_cls_kwargs") or {}
        self._score_min = float(options.get("cosine_better_than_threshold", _SCORE_MIN))

    async def query(
        self, query: str, top_k: int, query_embedding: list[float] | None = None
    ) -> list[dict[str, Any]]:
        """The nearest vectors that are better than the threshold."""
        if query_embedding is None:
            query_embedding = (await self._embed([query], context="query"))[0]
        found = await _run(
            self._space.graph.find_nearest,
            [float(each) for each in query_embedding],
            limit=top_k,
            wanted=self._space.filter_of(),
        )
        return [
            {**node.properties, "id": self._space.to_key(node.id), "distance": score}
            for node, score in found
            if score >= self._score_min
        ]

    async def _embed(self, texts: list[str], *, context: str) -> list[list[float]]:
        vectors = await self.embedding_func(texts, context=context)
        return [[float(each) for each in vector] for vector in vectors]

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write texts with their vectors in one commit."""
        if not data:
            return
        texts = [value["content"] for value in data.values()]
        vectors = dict(zip(data, await self._embed(texts, context="document"), strict=True))
        now = int(time.time())
        kept = {*self.meta_fields, "content"}
        values = {
            key: {name: each for name, each in value.items() if name in kept} | {"created_at": now}
            for key, value in data.items()
        }
        await _run(self._space.write, values, vectors)

    async def delete(self, ids: list[str]) -> None:
        """Delete vectors in one commit."""
        await _run(self._space.graph.delete_nodes, self._space.filter_of(ids))

    async def delete_entity(self, entity_name: str) -> None:
        """Delete the vector of an entity."""
        await self.delete([compute_mdhash_id(entity_name, prefix="ent-")])

    async def delete_entity_relation(self, entity_name: str) -> None:
        """Delete the vectors of the relations of an entity."""
        for end in ("src_id", "tgt_id"):
            wanted = NodeFilter(label=self._space.label, properties={end: entity_name})
            await _run(self._space.graph.delete_nodes, wanted)

    async def get_by_id(self, id: str) -> dict[str, Any] | None:  # noqa: A002 — LightRAG's name
        """The fields that are stored beside a vector."""
        return (await self.get_by_ids([id]))[0]

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """The same of several, in their order; None where there is none."""
        found = await _run(self._space.fetch, ids)
        return [None if key not in found else {**found[key].properties, "id": key} for key in ids]

    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, list[float]]:
        """Vectors by id."""
        found = await _run(self._space.fetch, ids, has_vectors=True)
        return {key: list(node.vector) for key, node in found.items() if node.vector is not None}

    async def index_done_callback(self) -> None:
        """Nothing is left to do: every write is a commit."""

    async def drop(self) -> dict[str, str]:
        """Delete all vectors of the namespace."""
        return await _run(self._space.drop)


@dataclass
class OmnigraphGraphStorage(BaseGraphStorage):
    """Entities and the relations between them, which have no direction."""

    def __post_init__(self) -> None:
        self._space = _Space(self.global_config, workspace=self.workspace, namespace=self.namespace)

    async def has_node(self, node_id: str) -> bool:
        """Whether an entity exists."""
        return node_id in await self.has_nodes_batch([node_id])

    async def has_nodes_batch(self, node_ids: list[str]) -> set[str]:
        """Those entities that exist."""
        return set(await _run(self._space.fetch, node_ids))

    async def has_edge(self, source_node_id: str, target_node_id: str) -> bool:
        """Whether two entities are related."""
        return await self.get_edge(source_node_id, target_node_id) is not None

    async def node_degree(self, node_id: str) -> int:
        """How many relations an entity has."""
        return (await self.node_degrees_batch([node_id]))[node_id]

    async def node_degrees_batch(self, node_ids: list[str]) -> dict[str, int]:
        """How many relations entities have."""
        counts = _count_ends(await self._fetch_edges(node_ids))
        return {each: counts[each] for each in node_ids}

    async def edge_degree(self, src_id: str, tgt_id: str) -> int:
        """How many relations two entities have together."""
        return sum((await self.node_degrees_batch([src_id, tgt_id])).values())

    async def edge_degrees_batch(
        self, edge_pairs: list[tuple[str, str]]
    ) -> dict[tuple[str, str], int]:
        """The same of several pairs."""
        counts = await self.node_degrees_batch([end for pair in edge_pairs for end in pair])
        return {pair: counts[pair[0]] + counts[pair[1]] for pair in edge_pairs}

    async def get_node(self, node_id: str) -> dict[str, str] | None:
        """The properties of an entity."""
        return (await self.get_nodes_batch([node_id])).get(node_id)

    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, dict[str, Any]]:
        """The properties of entities that exist."""
        found = await _run(self._space.fetch, node_ids)
        return {key: dict(node.properties) for key, node in found.items()}

    async def get_edge(self, source_node_id: str, target_node_id: str) -> dict[str, str] | None:
        """The properties of a relation, from whichever end."""
        pair = {"src": source_node_id, "tgt": target_node_id}
        return (await self.get_edges_batch([pair])).get((source_node_id, target_node_id))

    async def get_edges_batch(
        self, pairs: list[dict[str, str]]
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """The properties of relations that exist."""
        found = await self._fetch_edges({pair["src"] for pair in pairs})
        asked = [(pair["src"], pair["tgt"]) for pair in pairs]
        return {
            pair: dict(found[_sort_ends(*pair)]) for pair in asked if _sort_ends(*pair) in found
        }

    async def get_node_edges(self, source_node_id: str) -> list[tuple[str, str]] | None:
        """The relations of an entity, seen from it."""
        if not await self.has_node(source_node_id):
            return None
        return (await self.get_nodes_edges_batch([source_node_id]))[source_node_id]

    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        """The relations of entities, seen from each of them."""
        found: dict[str, list[tuple[str, str]]] = {each: [] for each in node_ids}
        for source, target in await self._fetch_edges(node_ids):
            for near, far in {(source, target), (target, source)}:
                if near in found:
                    found[near].append((near, far))
        return found

    async def _fetch_edges(
        self, node_ids: Collection[str] | None = None
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """The relations of entities, or all of the namespace, by their ends in order."""
        ends = None if node_ids is None else [self._space.to_id(each) for each in node_ids]
        found = await _run(self._space.graph.fetch_relations, ends=ends, labels=[self._space.label])
        to_key = self._space.to_key
        return {(to_key(each.source), to_key(each.target)): dict(each.properties) for each in found}

    async def upsert_node(self, node_id: str, node_data: dict[str, str]) -> None:
        """Write an entity; properties that are not named stay."""
        await self.upsert_nodes_batch([(node_id, node_data)])

    async def upsert_nodes_batch(self, nodes: list[tuple[str, dict[str, str]]]) -> None:
        """The same of several, in one commit."""
        values = await self.get_nodes_batch([node_id for node_id, _ in nodes])
        for node_id, data in nodes:
            values[node_id] = {**values.get(node_id, {}), **data}
        await _run(self._space.write, values)

    async def upsert_edge(
        self, source_node_id: str, target_node_id: str, edge_data: dict[str, str]
    ) -> None:
        """Write a relation; properties that are not named stay."""
        await self.upsert_edges_batch([(source_node_id, target_node_id, edge_data)])

    async def upsert_edges_batch(self, edges: list[tuple[str, str, dict[str, str]]]) -> None:
        """The same of several, in one commit; an end that does not exist becomes an entity."""
        ends = {end for source, target, _ in edges for end in (source, target)}
        values = await self._fetch_edges({source for source, _, _ in edges})
        changed: dict[tuple[str, str], dict[str, Any]] = {}
        for source, target, data in edges:
            pair = _sort_ends(source, target)
            changed[pair] = {**values.get(pair, {}), **changed.get(pair, {}), **data}
        missing = ends - await self.has_nodes_batch(sorted(ends))
        to_id, label = self._space.to_id, self._space.label
        await _run(
            self._space.graph.write,
            [PropertyNode(to_id(each), label, each) for each in sorted(missing)],
            [
                PropertyRelation(to_id(source), to_id(target), label, data)
                for (source, target), data in changed.items()
            ],
        )

    async def delete_node(self, node_id: str) -> None:
        """Delete an entity and its relations."""
        await self.remove_nodes([node_id])

    async def remove_nodes(self, nodes: list[str]) -> None:
        """Delete entities and their relations in one commit."""
        await _run(self._space.graph.delete_nodes, self._space.filter_of(nodes))

    async def remove_edges(self, edges: list[tuple[str, str]]) -> None:
        """Delete relations in one commit."""
        to_id, label = self._space.to_id, self._space.label
        pairs = [_sort_ends(*each) for each in edges]
        await _run(
            self._space.graph.delete_relation_keys,
            [PropertyRelation(to_id(source), to_id(target), label) for source, target in pairs],
        )

    async def get_all_labels(self) -> list[str]:
        """The names of all entities."""
        return sorted(await _run(self._space.fetch))

    async def get_popular_labels(self, limit: int = 300) -> list[str]:
        """The names of the entities with most relations."""
        return (await self._rank_by_degree())[:limit]

    async def _rank_by_degree(self) -> list[str]:
        counts = _count_ends(await self._fetch_edges())
        names = await _run(self._space.fetch)
        return sorted(names, key=lambda name: (-counts[name], name))

    async def search_labels(self, query: str, limit: int = 50) -> list[str]:
        """The names that contain a text: equal ones first, then by where it stands."""
        asked = query.lower().strip()
        if not asked:
            return []
        found = [name for name in await _run(self._space.fetch) if asked in name.lower()]
        found.sort(key=lambda name: (name.lower().find(asked), len(name), name))
        return found[:limit]

    async def get_knowledge_graph(
        self, node_label: str, max_depth: int = 3, max_nodes: int = _DRAWN_NODES_MAX
    ) -> KnowledgeGraph:
        """The entities around one of them, level by level, or those with most relations."""
        bound = min(max_nodes, self.global_config.get("max_graph_nodes", _DRAWN_NODES_MAX))
        if node_label == _ALL_LABELS:
            ranked = await self._rank_by_degree()
        elif await self.has_node(node_label):
            ranked = await self._walk_from(node_label, max_depth, bound)
        else:
            return KnowledgeGraph()
        chosen = ranked[:bound]
        nodes = await self.get_nodes_batch(chosen)
        edges = await self._fetch_edges(chosen)
        return KnowledgeGraph(
            nodes=[
                KnowledgeGraphNode(id=each, labels=[each], properties=nodes[each])
                for each in chosen
            ],
            edges=[
                KnowledgeGraphEdge(
                    id=f"{source}-{target}",
                    type="DIRECTED",
                    source=source,
                    target=target,
                    properties=properties,
                )
                for (source, target), properties in edges.items()
                if source in nodes and target in nodes
            ],
            is_truncated=len(ranked) > bound,
        )

    async def _walk_from(self, start: str, depth: int, bound: int) -> list[str]:
        """Entities by their distance from one, and by name; one more than the bound at most."""
        found, frontier = {start: None}, {start}
        for _ in range(depth):
            edges = await self._fetch_edges(sorted(frontier))
            frontier = {end for pair in edges for end in pair} - found.keys()
            found |= dict.fromkeys(sorted(frontier))
            if not frontier or len(found) > bound:
                break
        return list(found)

    async def get_all_nodes(self) -> list[dict[str, Any]]:
        """The properties of all entities, with their ids."""
        found = await _run(self._space.fetch)
        return [{**node.properties, "id": key} for key, node in found.items()]

    async def get_all_edges(self) -> list[dict[str, Any]]:
        """The properties of all relations, with their ends."""
        found = await self._fetch_edges()
        return [
            {**properties, "source": source, "target": target}
            for (source, target), properties in found.items()
        ]

    async def index_done_callback(self) -> None:
        """Nothing is left to do: every write is a commit."""

    async def drop(self) -> dict[str, str]:
        """Delete all entities of the namespace."""
        return await _run(self._space.drop)


def _value_of(node: PropertyNode | None) -> dict[str, Any] | None:
    return None if node is None else dict(node.properties)


def _sort_ends(source: str, target: str) -> tuple[str, str]:
    """The ends of a relation without a direction, in one order."""
    return (source, target) if source <= target else (target, source)


def _count_ends(pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    """How many relations each entity has; one with itself counts twice, as a degree does."""
    return Counter(end for pair in pairs for end in pair)
