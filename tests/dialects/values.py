"""Property values: from a mutation or a JSON record into a graph, and out of it as JSON."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.query.typed_tree import (
    EdgeObject,
    NodeList,
    NodeObject,
    PathObject,
    PathPart,
    ResultType,
)
from omnigraph.schema import property_values
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_types import (
    INTEGER_RANGES,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.schema.type_sets import is_type_set

_TEMPORAL = {
    Scalar.DATE: (property_values.DATE_MIN, property_values.DATE_MAX),
    Scalar.DATETIME: (property_values.DATETIME_MIN, property_values.DATETIME_MAX),
}
_BOUNDS = INTEGER_RANGES | _TEMPORAL
_JSON_TYPES: dict[Scalar, tuple[type, ...]] = {
    **dict.fromkeys(INTEGER_RANGES, (int,)),
    **dict.fromkeys(_TEMPORAL, (int, str)),
    **dict.fromkeys((Scalar.F32, Scalar.F64), (int, float)),
    **dict.fromkeys((Scalar.STRING, Scalar.BLOB), (str,)),
    Scalar.BOOL: (bool,),
}


def each(function: Callable[[Any, Scalar], Any], value: Any, type_: PropertyType) -> Any:
    """Apply a function to a value, or to every item of a list or vector."""
    if type_.scalar is not None or value is None:
        return function(value, type_.scalar or Scalar.STRING)
    if isinstance(type_.value, ListType):
        return tuple(function(item, type_.value.element) for item in value)
    if isinstance(type_.value, VectorType) and len(value) != type_.value.dimension:
        raise ValueError(f"expects {type_.value.dimension} numbers, got {len(value)}")
    return tuple(function(item, Scalar.F32) for item in value)


def stored(value: Any, scalar: Scalar) -> Any:
    """A scalar as a property keeps it; ValueError if it does not fit."""
    if value is None or scalar in (Scalar.STRING, Scalar.BOOL):
        return value
    if scalar is Scalar.BLOB:
        if not value.startswith("base64:"):
            raise ValueError("a blob must be base64 text; an external URI is not allowed")
        try:
            return base64.b64decode(value.removeprefix("base64:"), validate=True)
        except ValueError as failure:
            raise ValueError(f"invalid base64: {failure}") from failure
    if scalar in (Scalar.F32, Scalar.F64):
        number = property_values.round_to_f32(value) if scalar is Scalar.F32 else float(value)
        if not math.isfinite(number):
            raise ValueError(f"{value} exceeds {scalar} range")
        return number
    low, high = _BOUNDS[scalar]
    if value != int(value):
        raise ValueError(f"{value} is not a whole number")
    if not low <= value <= high:
        raise ValueError(f"{value} exceeds {_arrow_name(scalar)} range")
    return int(value)


def _arrow_name(scalar: Scalar) -> str:
    return scalar.replace("I", "Int").replace("U", "UInt").replace("F", "Float")


def from_json(value: Any, type_: PropertyType, *, is_strict: bool) -> Any:
    """A JSON value as a property keeps it; not strict, a value of a wrong type becomes null."""
    is_vector = isinstance(type_.value, VectorType)
    if type_.scalar is None and value is not None:
        if not isinstance(value, list):
            raise ValueError(f"expects {type_}")
        if (is_strict or is_vector) and None in value:
            raise ValueError("null is not allowed as an element")

    def read(item: Any, scalar: Scalar) -> Any:
        if item is not None and type(item) not in _JSON_TYPES[scalar]:
            if is_strict or is_vector or scalar in _TEMPORAL:
                raise ValueError(f"expects {_arrow_name(scalar)}")
            return None
        if isinstance(item, str) and scalar is Scalar.DATE:
            item = property_values.parse_date(item)
        if isinstance(item, str) and scalar is Scalar.DATETIME:
            item = property_values.parse_datetime(item, is_strict=is_strict)
        return stored(item, scalar)

    return each(read, value, type_)


def to_json(value: Any, type_: ResultType, catalog: Catalog) -> Any:
    """A value of a result column or a property as JSON."""
    if isinstance(type_, PathObject):
        return None if value is None else _path_to_json(value, type_, catalog)
    if isinstance(type_, NodeList):
        return [to_json(item, NodeObject(type_.type_name), catalog) for item in value]
    if isinstance(type_, EdgeObject):
        edges = [catalog.edges[name] for name in type_.edge_types]
        fields = ("@type", "@id", "@src", "@dst")[len(edges) == 1 :]
        return None if value is None else _entity_to_json(value, fields, edges, catalog)
    if isinstance(type_, NodeObject):
        if value is None:
            return None
        properties = catalog.nodes[type_.type_name].properties.values()
        own = ("@type", "@id") if is_type_set(type_.type_name) else ("@id",)
        return {name: value[name] for name in own} | {
            p.name: to_json(value.get(p.name), p.type, catalog)
            for p in properties
            if not p.type.is_blob and not isinstance(p.type.value, VectorType)
        }
    shown = each(_shown, value, type_)
    return list(shown) if isinstance(shown, tuple) else shown


def graph_rows(rows: Iterable[dict[str, Any]], catalog: Catalog) -> list[dict[str, Any]]:
    """The nodes and edges of rows, each of them once: nodes first, by type and id."""
    found: dict[tuple[bool, str, str], Any] = {}
    for value in (value for row in rows for value in row.values() if value is not None):
        for entity in (*value["nodes"], *value["edges"]) if "nodes" in value else (value,):
            found["@src" in entity, entity["@type"], entity["@id"]] = entity
    shown = []
    for (is_edge, name, id_), entity in sorted(found.items(), key=lambda item: item[0]):
        type_ = (catalog.edges if is_edge else catalog.nodes)[name]
        data = _entity_to_json(entity, (), [type_], catalog)
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        ends = {"src": entity.get("@src"), "dst": entity.get("@dst")}
        kind = "edge" if is_edge else "node"
        shown.append({"kind": kind, "type": name, "id": id_, **ends, "data": text})
    return shown


def _path_to_json(value: Any, path: PathObject, catalog: Catalog) -> Any:
    """A path as JSON; what the type of an entity lacks beside others is null."""
    nodes = [catalog.nodes[name] for name in path.node_types]
    edges = [catalog.edges[name] for name in path.edge_types]
    match path.part:
        case PathPart.NODES:
            return [_entity_to_json(each, ("@type", "@id"), nodes, catalog) for each in value]
        case PathPart.EDGES:
            fields = ("@type", "@id", "@src", "@dst")
            return [_entity_to_json(each, fields, edges, catalog) for each in value]
        case PathPart.WHOLE:
            parts = {
                str(part): _path_to_json(value[part], replace(path, part=part), catalog)
                for part in (PathPart.NODES, PathPart.EDGES)
            }
            return parts | {"length": value["length"]}


def _entity_to_json(
    entity: Any,
    fields: tuple[str, ...],
    types: Sequence[NodeType | EdgeType],
    catalog: Catalog,
) -> Any:
    shown = {name: entity[name] for name in fields}
    for type_ in types:
        for p in type_.properties.values():
            if p.type.is_blob or isinstance(p.type.value, VectorType):
                continue
            if type_.name == entity["@type"]:
                shown[p.name] = to_json(entity[p.name], p.type, catalog)
            else:
                shown.setdefault(p.name, None)
    return shown


def _shown(value: Any, scalar: Scalar) -> Any:
    match value:
        case bytes():
            return "base64:" + base64.b64encode(value).decode()
        case int() if scalar is Scalar.DATE:
            return property_values.format_date(value)
        case int() if scalar is Scalar.DATETIME:
            return property_values.format_datetime(value)
        case int() if scalar is Scalar.DURATION:
            return property_values.format_duration(value)
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case float() if scalar is Scalar.F32:
            return property_values.compute_shortest_f32(value)
    return value
