"""What headers say: names, implemented interfaces, the ends and the cardinality of edges."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from omnigraph.lang.diagnostics import Collector
from omnigraph.schema import ast
from omnigraph.schema.property_types import INTEGER_RANGES, Scalar

_CARDINALITY_MAX = INTEGER_RANGES[Scalar.U32][1]


def check_names(schema: ast.Schema, collector: Collector) -> None:
    """Refuse two types of one kind with one name, and edge types that differ only in case."""
    kinds: dict[str, list[ast.Name]] = {"interface": [], "node": [], "edge": []}
    for declaration in schema.declarations:
        kinds[type(declaration).__name__.lower()].append(declaration.name)
    for kind, names in kinds.items():
        _check_duplicates(kind, names, collector)
    _check_folding(kinds["edge"], collector)


def check_ends(
    edge: ast.Edge, nodes: Collection[str], interfaces: Collection[str], collector: Collector
) -> None:
    """Refuse ends that are not declared node types."""
    for end, name in (("source", edge.source), ("target", edge.target)):
        if name.text in nodes:
            continue
        message = f"edge '{edge.name.text}': unknown {end} node type '{name.text}'"
        if name.text in interfaces:
            hint: str | None = f"'{name.text}' is an interface; an edge connects node types"
        else:
            hint = collector.suggest_similar(name.text, nodes)
        collector.report_error("S005", name.span, message, hint=hint)


def check_implements(
    node: ast.Node, interfaces: Collection[str], lost: Container[str], collector: Collector
) -> None:
    """Refuse interfaces that are not declared, and not lost to an error."""
    for name in node.implements:
        if name.text not in interfaces and name.text not in lost:
            message = f"node '{node.name.text}' implements unknown interface '{name.text}'"
            hint = collector.suggest_similar(name.text, interfaces)
            collector.report_error("S008", name.span, message, hint=hint)


def check_cardinality(edge: ast.Edge, collector: Collector) -> None:
    """Refuse a cardinality that no number of edges satisfies, or that is not 32-bit."""
    cardinality = edge.cardinality
    if cardinality is None:
        return
    bounds = [bound for bound in (cardinality.minimum, cardinality.maximum) if bound is not None]
    if max(bounds) > _CARDINALITY_MAX:
        message = f"edge '{edge.name.text}': @card bounds are at most {_CARDINALITY_MAX}"
        collector.report_error("S018", cardinality.span, message)
    elif cardinality.maximum is not None and cardinality.minimum > cardinality.maximum:
        message = (
            f"edge '{edge.name.text}': @card min exceeds max"
            f" ({cardinality.minimum} > {cardinality.maximum})"
        )
        collector.report_error("S018", cardinality.span, message)


def _check_duplicates(kind: str, names: Iterable[ast.Name], collector: Collector) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            message = f"duplicate {kind} type '{name.text}'"
            collector.report_error("S003", name.span, message, hint="rename or remove one of them")
        seen.add(name.text)


def _check_folding(names: Iterable[ast.Name], collector: Collector) -> None:
    first: dict[str, str] = {}
    for name in names:
        known = first.setdefault(name.text.lower(), name.text)
        if known != name.text:
            message = f"edge types '{known}' and '{name.text}' are equal after case folding"
            hint = "queries match edge names in any case; rename one of them"
            collector.report_error("S004", name.span, message, hint=hint)
