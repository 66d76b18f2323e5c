"""What a widget draws: nodes and edges of a result, a diff or a neighbourhood, up to a bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

import pyarrow as pa

from omnigraph.engine import Branch, Diff, Result, Snapshot
from omnigraph.errors import EntityNotFoundError, InvalidArgumentError
from omnigraph.query.typed_tree import NodeObject
from omnigraph.rows.result_types import ID_FIELD
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.catalog import Catalog

# A layout of more is neither quick nor readable.
NODES_MAX: Final = 300
EDGES_MAX: Final = 1_200
STEPS_MAX: Final = 4
_LABEL_NAMES: Final = ("name", "title", "label")
_LABEL_CHARACTERS_MAX: Final = 40
Values: TypeAlias = Mapping[str, Any]  # Any: JSON values


@dataclass(slots=True)
class Drawing:
    """Nodes and edges as a widget has them, and a note about what is not among them."""

    note: str = ""
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _left_nodes: int = 0
    _left_edges: int = 0

    def add_node(self, type_name: str, id_: str, data: Values | None = None, op: str = "") -> str:
        """Draw a node once; the key by which edges name it."""
        key = f"{type_name}:{id_}"
        if key not in self._keys and len(self.nodes) < NODES_MAX:
            values = dict(data or {})
            label = next((values[each] for each in _LABEL_NAMES if values.get(each)), id_)
            shown = str(label)[:_LABEL_CHARACTERS_MAX]
            self.nodes.append(
                {"id": key, "type": type_name, "label": shown, "data": values, "op": op}
            )
            self._keys.add(key)
        elif key not in self._keys:
            self._left_nodes += 1
        return key

    def add_edge(
        self, ends: tuple[str, str], type_name: str, *, data: Values | None = None, op: str = ""
    ) -> None:
        """Draw an edge whose ends are drawn."""
        if len(self.edges) < EDGES_MAX and self._keys.issuperset(ends):
            source, target = ends
            self.edges.append(
                {
                    "source": source,
                    "target": target,
                    "type": type_name,
                    "data": dict(data or {}),
                    "op": op,
                }
            )
        else:
            self._left_edges += 1

    def finish(self) -> Drawing:
        """Say how much is drawn."""
        self.note = f"{len(self.nodes)} nodes, {len(self.edges)} edges"
        if self._left_nodes or self._left_edges:
            self.note += ", and more that are not drawn"
        return self


def build_drawing(thing: Any, *args: Any, **kwargs: Any) -> Drawing:
    """The drawing of a result, a diff, or of a snapshot or branch around an entity."""
    match thing:
        case Result():
            return draw_result(thing, *args, **kwargs)
        case Diff():
            return draw_diff(thing, *args, **kwargs)
        case Branch():
            return draw_neighbourhood(thing.snapshot(), *args, **kwargs)
        case Snapshot():
            return draw_neighbourhood(thing, *args, **kwargs)
    raise InvalidArgumentError(
        "thing", f"a {type(thing).__name__} cannot be drawn: give a result, a diff or a snapshot"
    )


def draw_result(result: Result) -> Drawing:
    """The nodes that a result returns whole; those of a row are joined in their order."""
    drawing = Drawing()
    names = [
        (column.name, column.type.type_name if isinstance(column.type, NodeObject) else column.name)
        for column, kind in zip(result.columns, result.to_arrow().schema.types, strict=True)
        if pa.types.is_struct(kind) and kind.get_field_index(ID_FIELD) >= 0
    ]
    if not names:
        raise InvalidArgumentError(
            "result", "it has no nodes", hint="return nodes, as in return { $a, $b }"
        )
    first = Result(result.columns, result.to_arrow().slice(0, EDGES_MAX))
    for row in first.to_json_rows():
        keys = [
            drawing.add_node(type_name, row[name][ID_FIELD], _without_id(row[name]))
            for name, type_name in names
            if row[name] is not None
        ]
        for ends in pairwise(keys):
            drawing.add_edge(ends, "")
    drawing.finish()
    if len(result) > len(first):
        drawing.note += f" of the first {len(first):,} of {len(result):,} rows"
    return drawing


def draw_diff(diff: Diff) -> Drawing:
    """The entities that changed, and the nodes at which changed edges end."""
    drawing, ends = Drawing(), _find_end_types(diff)
    # The changes of nodes come first.
    changed: dict[str, str] = {}
    for change in islice(diff, NODES_MAX + EDGES_MAX):
        image = change.after if change.after is not None else change.before
        assert image is not None, "a change has a state before or after"
        if change.kind == "node":
            drawing.add_node(change.type_name, change.id, image["properties"], change.op)
            changed.setdefault(change.id, change.type_name)
        else:
            places = image["endpoints"]["from"], image["endpoints"]["to"]
            # A server does not say of which types the ends are: changed nodes are known by id.
            types = ends.get(change.type_name) or [changed.get(id_, "") for id_ in places]
            keys = [drawing.add_node(*each) for each in zip(types, places, strict=True)]
            source, target = keys
            values = image["properties"]
            drawing.add_edge((source, target), change.type_name, data=values, op=change.op)
    drawing.finish()
    drawing.note += f"; {len(diff):,} changes"
    return drawing


def _find_end_types(diff: Diff) -> dict[str, tuple[str, str]]:
    """The types of the ends of changed edges, as far as the diff has the schemas."""
    found = {}
    for part in diff.parts:
        if part.kind is TypeKind.EDGE:
            view = part.old if part.pair.new is None else part.new
            edge = view.catalog.edges[part.type_key.name]
            found[edge.name] = (edge.source, edge.target)
    return found


def draw_neighbourhood(
    snapshot: Snapshot, type_name: str, entity_id: str, *, steps: int = 1
) -> Drawing:
    """An entity, and what is up to some edges away from it, whatever their direction."""
    if not 0 <= steps <= STEPS_MAX:
        raise InvalidArgumentError("steps", f"{steps} is not between 0 and {STEPS_MAX}")
    if snapshot.entity(type_name, entity_id, kind="node") is None:
        raise EntityNotFoundError(type_name, entity_id)
    catalog, drawing = snapshot.catalog, Drawing()
    found: dict[str, dict[str, None]] = {type_name: {entity_id: None}}
    frontier: dict[str, list[str]] = {type_name: [entity_id]}
    edges: dict[tuple[str, str, str], tuple[str, str]] = {}
    for _ in range(steps):
        reached: dict[str, list[str]] = {}
        for edge_type, source, target, id_ in _iter_edges(snapshot, catalog, frontier):
            type_ = catalog.edges[edge_type]
            edges[edge_type, id_, f"{source}\n{target}"] = (
                f"{type_.source}:{source}",
                f"{type_.target}:{target}",
            )
            for end, node in ((type_.source, source), (type_.target, target)):
                known = found.setdefault(end, {})
                if node not in known and sum(map(len, found.values())) < NODES_MAX:
                    known[node] = None
                    reached.setdefault(end, []).append(node)
        frontier = reached
    for node_type, ids in found.items():
        for id_, values in _iter_nodes(snapshot, node_type, list(ids)):
            drawing.add_node(node_type, id_, values)
    for (edge_type, _, _), ends in edges.items():
        drawing.add_edge(ends, edge_type)
    return drawing.finish()


def _iter_edges(
    snapshot: Snapshot, catalog: Catalog, frontier: Mapping[str, list[str]]
) -> Iterator[tuple[str, str, str, str]]:
    """The edges at some nodes: their type, their ends and their id."""
    for name, edge in sorted(catalog.edges.items()):
        for end, variable in ((edge.source, "$a"), (edge.target, "$b")):
            if not frontier.get(end):
                continue
            text = (
                f"query edges($ids: [String]) {{ match {{ $a: {edge.source} $b: {edge.target}"
                f' $a $e: "{name}" $b {variable}.@id in $ids }}'
                " return { $e.@id as id, $a.@id as source, $b.@id as target }"
                # One more than is drawn: then there is something to say.
                f" order {{ source, target, id }} limit {EDGES_MAX + 1} }}"
            )
            for row in snapshot.query(text, params={"ids": frontier[end]}).to_json_rows():
                yield name, row["source"], row["target"], row["id"]


def _iter_nodes(
    snapshot: Snapshot, type_name: str, ids: Iterable[str]
) -> Iterator[tuple[str, Values]]:
    text = (
        f"query nodes($ids: [String]) {{ match {{ $n: {type_name} $n.@id in $ids }}"
        " return { $n as node } }"
    )
    for row in snapshot.query(text, params={"ids": list(ids)}).to_json_rows():
        yield row["node"][ID_FIELD], _without_id(row["node"])


def _without_id(node: Values) -> Values:
    return {name: value for name, value in node.items() if name != ID_FIELD}
