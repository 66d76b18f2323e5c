"""A graph whose labels and properties are data: two types of a schema, read and written in batches.

Frameworks that extract graphs from texts learn their labels as they go. Here a label is a value, so
that a new one is not a change of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.adapters.facets import encode_facet, encode_properties, list_facets
from omnigraph.engine.branch import Branch

if TYPE_CHECKING:
    from omnigraph.engine.write_results import MutationResult

_SCHEMA: Final = """\
node {node} @description("A node of a property graph: an entity, or a text it comes from") {{
  id: String @key
  label: String @index
  name: String?
  text: String?
  properties: String @description("JSON")
  facets: [String]
  vec: Vector({dimensions})?
}}

edge {edge}: {node} -> {node} {{
  label: String
  properties: String @description("JSON")
  facets: [String]
  @key(@src, @dst, label)
}}
"""
_WRITE: Final = """\
query write($nodes: [{node}], $ends: [{{ id: String, none: [String] }}], $relations: [{edge}]) {{
  for $n in $nodes {{
    upsert {node} {{
      id: $n.id, label: $n.label, name: $n.name, text: $n.text, properties: $n.properties,
      facets: $n.facets, vec: coalesce($n.vec, vec)
    }}
  }}
  for $e in $ends {{
    upsert {node} {{
      id: $e.id, name: case {{ label is null: $e.id, else: name }},
      label: coalesce(label, "{default_label}"), properties: coalesce(properties, "{{}}"),
      facets: coalesce(facets, $e.none)
    }}
  }}
  for $r in $relations {{
    upsert {edge} {{
      from: $r.from, to: $r.to, label: $r.label, properties: $r.properties, facets: $r.facets
    }}
  }}
}}
"""
_NODE_COLUMNS: Final = (
    "$n.id as id, $n.label as label, $n.name as name, $n.text as text, $n.properties as properties"
)
_RELATION_COLUMNS: Final = (
    "$s.id as source, $r.label as label, $o.id as target, $r.properties as properties"
)
DEFAULT_LABEL: Final = "entity"
# How far a neighbourhood goes: each level is one query over all nodes that the last one reached.
DEPTH_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class PropertyNode:
    """A node: an entity has a name, a text that entities come from has a text."""

    id: str
    label: str = DEFAULT_LABEL
    name: str | None = None
    text: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class PropertyRelation:
    """A relation between two nodes; there is one of each label from a source to a target."""

    source: str
    target: str
    label: str
    properties: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes are meant: those that satisfy everything that is given."""

    ids: Collection[str] | None = None
    names: Collection[str] | None = None
    label: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    def to_conditions(self) -> tuple[list[str], list[str], dict[str, object]]:
        """Declarations, conditions on `$n` and values of the parameters."""
        rules: list[tuple[str, str, str, object]] = []
        if self.ids is not None:
            rules.append(("ids", "[String]", "$n.id in $ids", list(self.ids)))
        if self.names is not None:
            rules.append(("names", "[String]", "$n.name in $names", list(self.names)))
        if self.label is not None:
            rules.append(("label", "String", "$n.label = $label", self.label))
        for at, (name, value) in enumerate(sorted(self.properties.items())):
            facet = encode_facet(name, value)
            rules.append((f"f{at}", "String", f"$n.facets contains $f{at}", facet))
        declared = [f"${name}: {type_name}" for name, type_name, _, _ in rules]
        return declared, [rule[2] for rule in rules], {rule[0]: rule[3] for rule in rules}


def build_property_graph_schema(
    dimensions: int, *, node_type: str = "Entity", edge_type: str = "Relation"
) -> str:
    """The schema text of a property graph whose vectors have so many numbers."""
    return _SCHEMA.format(node=node_type, edge=edge_type, dimensions=dimensions)


class PropertyGraph:
    """The nodes and relations of two types of a branch, which stands locally or on a server."""

    def __init__(
        self, branch: Branch, *, node_type: str = "Entity", edge_type: str = "Relation"
    ) -> None:
        self.branch = branch
        self._node_type = node_type
        self._edge_type = edge_type
        self._traversal = edge_type[0].lower() + edge_type[1:]

    def write(
        self, nodes: Iterable[PropertyNode] = (), relations: Iterable[PropertyRelation] = ()
    ) -> MutationResult | None:
        """Write nodes and relations in one commit; the last of those with one id counts.

        A node without a vector keeps the one it has. An end of a relation that does not exist
        becomes a node whose name is its id.
        """
        by_id = {node.id: node for node in nodes}
        by_key = {(each.source, each.target, each.label): each for each in relations}
        if not by_id and not by_key:
            return None
        ends = {end for source, target, _ in by_key for end in (source, target)} - by_id.keys()
        text = _WRITE.format(
            node=self._node_type, edge=self._edge_type, default_label=DEFAULT_LABEL
        )
        tables = {
            "nodes": _build_node_table(by_id.values()),
            "ends": pa.table(
                {"id": sorted(ends), "none": pa.array([[]] * len(ends), pa.list_(pa.string()))},
                schema=pa.schema([("id", pa.string()), ("none", pa.list_(pa.string()))]),
            ),
            "relations": _build_relation_table(by_key.values()),
        }
        return self.branch.mutate(text, params=tables)

    def fetch_nodes(self, wanted: NodeFilter, *, has_vectors: bool = False) -> list[PropertyNode]:
        """The nodes of a filter by id; nodes that are named by id in the order of the names."""
        declared, conditions, values = wanted.to_conditions()
        text = f"""query nodes({", ".join(declared)}) {{
            match {{ $n: {self._node_type}  {"; ".join(conditions)} }}
            return {{ {_NODE_COLUMNS}{", $n.vec as vec" if has_vectors else ""} }}
            order {{ id }}
        }}"""
        rows = self.branch.query(text, params=values).to_arrow()
        found = {node.id: node for node in _iter_nodes(rows)}
        if wanted.ids is None:
            return list(found.values())
        return [found[each] for each in dict.fromkeys(wanted.ids) if each in found]

    def fetch_relations(
        self,
        *,
        ends: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        ignored_labels: Collection[str] = (),
        properties: Mapping[str, Any] | None = None,  # Any: JSON
        limit: int | None = None,
    ) -> list[PropertyRelation]:
        """Relations by their ends (either of them), labels and properties, in order."""
        values: dict[str, object] = {"ignored": list(ignored_labels), "limit": limit}
        declared = ["$ignored: [String]", "$limit: I64?"]
        conditions = ["not $r.label in $ignored"]
        if labels is not None:
            declared.append("$labels: [String]")
            conditions.append("$r.label in $labels")
            values["labels"] = list(labels)
        for at, (name, value) in enumerate(sorted((properties or {}).items())):
            declared.append(f"$f{at}: String")
            conditions.append(f"$r.facets contains $f{at}")
            values[f"f{at}"] = encode_facet(name, value)
        anchors = [""]
        if ends is not None:
            declared.append("$ends: [String]")
            values["ends"] = list(ends)
            anchors = ["$s.id in $ends;", "$o.id in $ends;"]
        reads = [
            f"match {{ $s: {self._node_type}  $o: {self._node_type}  {anchor} "
            f"$s $r:{self._traversal} $o; {'; '.join(conditions)} }} "
            f"return {{ {_RELATION_COLUMNS} }}"
            for anchor in anchors
        ]
        tail = "order { source, label, target } limit $limit"
        text = f"query relations({', '.join(declared)}) {{ {' union '.join(reads)} {tail} }}"
        rows = self.branch.query(text, params=values).to_arrow()
        columns = (rows[name].to_pylist() for name in ("source", "target", "label", "properties"))
        return [
            PropertyRelation(source, target, label, json.loads(stored))
            for source, target, label, stored in zip(*columns, strict=True)
        ]

    def fetch_neighbourhood(
        self, ids: Collection[str], *, depth: int, limit: int, ignored_labels: Collection[str] = ()
    ) -> list[PropertyRelation]:
        """Relations around some nodes, level by level, at most so many."""
        found: dict[tuple[str, str, str], PropertyRelation] = {}
        seen, frontier = set(ids), set(ids)
        for _ in range(min(depth, DEPTH_MAX)):
            if not frontier or len(found) >= limit:
                break
            level = self.fetch_relations(
                ends=sorted(frontier), ignored_labels=ignored_labels, limit=limit
            )
            found |= {(each.source, each.target, each.label): each for each in level} | found
            frontier = {end for each in level for end in (each.source, each.target)} - seen
            seen |= frontier
        return list(found.values())[:limit]

    def find_nearest(
        self, vector: Sequence[float], *, limit: int, wanted: NodeFilter, has_vectors: bool = False
    ) -> list[tuple[PropertyNode, float]]:
        """The nodes whose vectors have the smallest angle to this one, with its cosine."""
        declared, conditions, values = wanted.to_conditions()
        rank = 'nearest($n.vec, $v, metric: "cosine")'
        declared = [f"$v: Vector({len(vector)})", "$limit: I64", *declared]
        text = f"""query near({", ".join(declared)}) {{
            match {{ $n: {self._node_type}  {"; ".join(conditions)} }}
            return {{
                {_NODE_COLUMNS}, {rank} as distance{", $n.vec as vec" if has_vectors else ""}
            }}
            order {{ {rank} }}
            limit $limit
        }}"""
        values |= {"v": list(vector), "limit": limit}
        rows = self.branch.query(text, params=values).to_arrow()
        scores = [1.0 - distance for distance in rows["distance"].to_pylist()]
        return list(zip(_iter_nodes(rows), scores, strict=True))

    def delete_nodes(self, wanted: NodeFilter) -> MutationResult:
        """Delete the nodes of a filter, and their relations."""
        declared, conditions, values = wanted.to_conditions()
        text = f"""query remove({", ".join(declared)}) {{
            match {{ $n: {self._node_type}  {"; ".join(conditions)} }}
            delete $n
        }}"""
        return self.branch.mutate(text, params=values)

    def delete_relations(self, labels: Collection[str]) -> MutationResult:
        """Delete all relations of some labels."""
        text = f"""query remove($labels: [String]) {{
            delete {self._edge_type} where label in $labels
        }}"""
        return self.branch.mutate(text, params={"labels": list(labels)})

    def delete_relation_keys(self, relations: Iterable[PropertyRelation]) -> MutationResult:
        """Delete relations by their ends and labels; those that do not exist are left out."""
        text = f"""query remove($rows: [{{ source: String, target: String, label: String }}]) {{
            for $row in $rows {{
                delete {self._edge_type} where @src = $row.source and @dst = $row.target
                    and label = $row.label
            }}
        }}"""
        rows = [
            {"source": each.source, "target": each.target, "label": each.label}
            for each in relations
        ]
        return self.branch.mutate(text, params={"rows": rows})

    def count_labels(self) -> tuple[dict[str, int], dict[tuple[str, str, str], int]]:
        """How many nodes each label has; and relations by the labels of source, itself, target."""
        nodes = self.branch.query(
            f"""query labels() {{
                match {{ $n: {self._node_type} }}
                return {{ $n.label as label, count(*) as n }}
                order {{ label }}
            }}"""
        )
        relations = self.branch.query(
            f"""query labels() {{
                match {{ $s: {self._node_type}  $s $r:{self._traversal} $o }}
                return {{
                    $s.label as source, $r.label as label, $o.label as target, count(*) as n
                }}
                order {{ source, label, target }}
            }}"""
        )
        triples = {(each["source"], each["label"], each["target"]): each["n"] for each in relations}
        return {each["label"]: each["n"] for each in nodes}, triples


def _build_node_table(nodes: Collection[PropertyNode]) -> pa.Table:
    vectors = [node.vector for node in nodes]
    sizes = {len(vector) for vector in vectors if vector is not None}
    columns = {
        "id": pa.array([node.id for node in nodes], pa.string()),
        "label": pa.array([node.label for node in nodes], pa.string()),
        "name": pa.array([node.name for node in nodes], pa.string()),
        "text": pa.array([node.text for node in nodes], pa.string()),
        "properties": pa.array([encode_properties(node.properties) for node in nodes], pa.string()),
        "facets": pa.array([list_facets(node.properties) for node in nodes], pa.list_(pa.string())),
    }
    if sizes:
        columns["vec"] = pa.array(vectors, pa.list_(pa.float32(), max(sizes)))
    return pa.table(columns)


def _build_relation_table(relations: Collection[PropertyRelation]) -> pa.Table:
    return pa.table(
        {
            "from": pa.array([each.source for each in relations], pa.string()),
            "to": pa.array([each.target for each in relations], pa.string()),
            "label": pa.array([each.label for each in relations], pa.string()),
            "properties": pa.array(
                [encode_properties(each.properties) for each in relations], pa.string()
            ),
            "facets": pa.array(
                [list_facets(each.properties) for each in relations], pa.list_(pa.string())
            ),
        }
    )


def _iter_nodes(rows: pa.Table) -> Iterable[PropertyNode]:
    """The nodes of an answer: objects, since that is what a framework asks for."""
    names = ("id", "label", "name", "text", "properties")
    columns = [rows[name].to_pylist() for name in names]
    vectors = rows["vec"].to_pylist() if "vec" in rows.column_names else [None] * len(rows)
    for node_id, label, name, text, stored, vector in zip(*columns, vectors, strict=True):
        yield PropertyNode(node_id, label, name, text, json.loads(stored), vector)
