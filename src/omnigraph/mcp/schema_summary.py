"""A schema in so few characters that it fits the context of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from omnigraph.engine import Snapshot
from omnigraph.schema.catalog import AnnotationValue, Catalog, EdgeType, NodeType, Property

SUMMARY_CHARACTERS: Final = 8_000
_DESCRIPTION: Final = "description"
# A line for a type: with its properties and their types, with their names, or alone.
_Line = Callable[["NodeType | EdgeType", "int"], str]


def summarize_schema(
    snapshot: Snapshot, *, types: Collection[str] | None = None, characters_max: int
) -> dict[str, Any]:  # Any: a JSON document
    """Types with how many entities each has, in as much detail as fits.

    What does not fit is left out from the end, and counted.
    """
    catalog = snapshot.view.catalog
    counts = {(each.kind, each.type_name): each.rows for each in snapshot.tables()}
    chosen = [each for each in _list_types(catalog) if types is None or each.name in types]
    missing = sorted(set(types or ()) - {each.name for each in chosen})
    rows = [counts.get((_kind_of(each), each.name), 0) for each in chosen]
    detail, lines = _choose_detail(list(zip(chosen, rows, strict=True)), characters_max)
    kept = list(_take(lines, characters_max))
    return {
        "graph_commit_id": snapshot.at.commit,
        "detail": detail,
        "summary": "\n".join(kept),
        **({"omitted_types": len(lines) - len(kept)} if len(kept) < len(lines) else {}),
        **({"unknown_types": missing} if missing else {}),
    }


def _choose_detail(
    counted: list[tuple[NodeType | EdgeType, int]], characters_max: int
) -> tuple[str, list[str]]:
    """The first level of detail that fits, or the last one, with its lines."""
    levels = {
        detail: [write(each, count) for each, count in counted] for detail, write in _LEVELS.items()
    }
    sizes = {detail: sum(len(line) + 1 for line in lines) for detail, lines in levels.items()}
    fitting = (detail for detail, size in sizes.items() if size <= characters_max)
    detail = next(fitting, _LEVEL_LAST)
    return detail, levels[detail]


def _list_types(catalog: Catalog) -> Iterator[NodeType | EdgeType]:
    yield from (catalog.nodes[name] for name in sorted(catalog.nodes))
    yield from (catalog.edges[name] for name in sorted(catalog.edges))


def _kind_of(shown: NodeType | EdgeType) -> str:
    return "edge" if isinstance(shown, EdgeType) else "node"


def _take(lines: list[str], characters_max: int) -> Iterator[str]:
    left = characters_max
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            return
        yield line


def _write_full(shown: NodeType | EdgeType, count: int) -> str:
    keys = frozenset(shown.constraints.key or ())
    properties = sorted(shown.properties.values(), key=lambda each: each.name not in keys)
    parts = [_write_property(each, is_key=each.name in keys) for each in properties]
    body = f" {{ {', '.join(parts)} }}" if parts else ""
    return f"{_write_name(shown, count)}{body}{_write_description(shown.annotations)}"


def _write_with_names(shown: NodeType | EdgeType, count: int) -> str:
    body = f" {{ {', '.join(shown.properties)} }}" if shown.properties else ""
    return f"{_write_name(shown, count)}{body}"


def _write_name(shown: NodeType | EdgeType, count: int) -> str:
    match shown:
        case NodeType():
            head = f"node {shown.name}"
        case EdgeType():
            head = f"edge {shown.name}: {shown.source} -> {shown.target}"
    return f"{head} ({count:,})"


def _write_property(shown: Property, *, is_key: bool) -> str:
    key = " @key" if is_key else ""
    return f"{shown.name}: {shown.type}{key}{_write_description(shown.annotations)}"


def _write_description(annotations: tuple[AnnotationValue, ...]) -> str:
    found = [each.value for each in annotations if each.name == _DESCRIPTION and each.value]
    return f" — {' '.join(found[0].split())}" if found else ""


_LEVELS: Final[Mapping[str, _Line]] = {
    "full": _write_full,
    "property_names": _write_with_names,
    "type_names": _write_name,
}
_LEVEL_LAST: Final = "type_names"
