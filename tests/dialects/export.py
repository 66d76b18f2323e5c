"""Entities as the records that a load reads back unchanged."""

import json
from collections.abc import Iterable
from typing import Any

from dialects.values import to_json
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType

Table = dict[str, dict[str, Any]]  # Any: the properties of an entity, by id


def export_text(catalog: Catalog, tables: Iterable[tuple[NodeType | EdgeType, Table]]) -> str:
    """One line per entity, types in the given order, entities by id."""
    lines = []
    for type_, table in tables:
        for id_, entity in sorted(table.items()):
            line: dict[str, Any] = {"type": type_.name, "id": id_}
            if isinstance(type_, EdgeType):
                ends = {"from": entity["@src"], "to": entity["@dst"]}
                line = {"edge": type_.name, "id": id_, **ends}
            line["data"] = {
                name: to_json(entity[name], property_.type, catalog)
                for name, property_ in type_.properties.items()
                if entity[name] is not None
            }
            lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return "".join(lines)
