"""Text to catalog: parse, check names and headers, then check members and build."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, replace

from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.lexer import Mode, decode_source
from omnigraph.lang.source_text import Source
from omnigraph.schema import ast, catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check.merge_rules import check_merge_rules
from omnigraph.schema.check.property_defaults import check_defaults
from omnigraph.schema.check.property_drafts import PropertyDraft, build_drafts, inherit_properties
from omnigraph.schema.check.schema_annotations import (
    AnnotationTarget,
    build_annotation_values,
    check_annotations,
    rename_hint_of,
)
from omnigraph.schema.check.schema_constraints import (
    ConstraintScope,
    check_constraints,
    check_embeds,
)
from omnigraph.schema.property_types import INTEGER_RANGES, Scalar
from omnigraph.schema.schema_parser import ParsedSchema, parse_source

# Many nodes times many interface properties can be far more than the text they come from.
PROPERTIES_MAX = 50_000
_CARDINALITY_MAX = INTEGER_RANGES[Scalar.U32][1]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A text, its tree, and its catalog, which is None when a diagnostic is an error."""

    source: Source
    schema: ast.Schema
    catalog: Catalog | None
    diagnostics: tuple[Diagnostic, ...]


def compile_schema(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> CompiledSchema:
    """Read and check a schema, reporting everything that is wrong with it."""
    source, collector = decode_source(name, text, code="S001")
    parsed = parse_source(source, collector, mode=mode)
    catalog = build_catalog(parsed, collector, mode=mode)
    found = None if collector.has_errors else catalog
    return CompiledSchema(source, parsed.schema, found, collector.list_diagnostics())


def load_catalog(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> Catalog:
    """The catalog of a schema text; raises `CompileError` when it has errors."""
    compiled = compile_schema(text, name=name, mode=mode)
    if compiled.catalog is None:
        raise CompileError(compiled.diagnostics)
    return compiled.catalog


def build_catalog(parsed: ParsedSchema, collector: Collector, *, mode: Mode) -> catalog.Catalog:
    """Check a tree and resolve it; the catalog is only good if nothing was reported as an error."""
    return _CatalogBuilder(parsed, collector, mode).build()


class _CatalogBuilder:
    """Declarations in the order interfaces, nodes, edges: each needs the names before it."""

    def __init__(self, parsed: ParsedSchema, collector: Collector, mode: Mode) -> None:
        self._parsed = parsed
        self._collector = collector
        self._mode = mode
        self._interfaces: dict[str, dict[str, PropertyDraft]] = {}
        self._given_count = 0

    def build(self) -> catalog.Catalog:
        declarations = self._parsed.schema.declarations
        _check_names(self._parsed.schema, self._collector)
        for found in declarations:
            if isinstance(found, ast.Interface):
                self._add_interface(found)
        nodes = [self._build_node(found) for found in declarations if isinstance(found, ast.Node)]
        names = {node.name for node in nodes} | self._parsed.lost
        edges = [
            self._build_edge(found, names) for found in declarations if isinstance(found, ast.Edge)
        ]
        return catalog.Catalog(
            {
                name: catalog.InterfaceType(name, _collect_properties(drafts))
                for name, drafts in self._interfaces.items()
            },
            {node.name: node for node in nodes},
            {edge.name: edge for edge in edges},
        )

    def _add_interface(self, interface: ast.Interface) -> None:
        name = interface.name.text
        drafts = build_drafts(
            name, AnnotationTarget.NODE_PROPERTY, interface.properties, self._collector
        )
        check_merge_rules(drafts, catalog.Constraints(), self._collector)
        scope = ConstraintScope(name, drafts, self._mode, is_edge=False, lost=self._parsed.lost)
        check_defaults(scope, None, self._collector)
        self._interfaces.setdefault(name, drafts)

    def _build_node(self, node: ast.Node) -> catalog.NodeType:
        name = node.name.text
        _check_implements(node, self._interfaces, self._parsed.lost, self._collector)
        check_annotations(
            node.annotations, AnnotationTarget.NODE, f"node '{name}'", self._collector
        )
        drafts = self._inherit_properties(
            build_drafts(name, AnnotationTarget.NODE_PROPERTY, node.members, self._collector), node
        )
        is_partial = any(name.text not in self._interfaces for name in node.implements)
        lost = self._parsed.lost
        scope = ConstraintScope(
            name, drafts, self._mode, is_edge=False, lost=lost, is_partial=is_partial
        )
        check_embeds(scope, self._collector)
        constraints = check_constraints(scope, node.members, self._collector)
        check_merge_rules(drafts, constraints, self._collector)
        check_defaults(scope, constraints.key, self._collector)
        return catalog.NodeType(
            name,
            _collect_properties(drafts),
            constraints,
            annotations=build_annotation_values(node.annotations),
            implements=tuple(dict.fromkeys(interface.text for interface in node.implements)),
            rename_from=rename_hint_of(node.annotations),
        )

    def _inherit_properties(
        self, own: dict[str, PropertyDraft], node: ast.Node
    ) -> dict[str, PropertyDraft]:
        names = {interface.text for interface in node.implements}
        was_within = self._given_count <= PROPERTIES_MAX
        self._given_count += sum(len(self._interfaces.get(name, ())) for name in names)
        if self._given_count <= PROPERTIES_MAX:
            return inherit_properties(own, node, self._interfaces, self._collector)
        if was_within:
            message = f"the interfaces give the nodes more than {PROPERTIES_MAX} properties"
            hint = "implement fewer interfaces"
            self._collector.report_error("S023", node.name.span, message, hint=hint)
        return own

    def _build_edge(self, edge: ast.Edge, nodes: set[str]) -> catalog.EdgeType:
        name = edge.name.text
        _check_ends(edge, nodes, self._interfaces, self._collector)
        _check_cardinality(edge, self._collector)
        check_annotations(
            edge.annotations, AnnotationTarget.EDGE, f"edge '{name}'", self._collector
        )
        drafts = build_drafts(name, AnnotationTarget.EDGE_PROPERTY, edge.members, self._collector)
        scope = ConstraintScope(name, drafts, self._mode, is_edge=True, lost=self._parsed.lost)
        constraints = check_constraints(scope, edge.members, self._collector)
        check_merge_rules(drafts, constraints, self._collector)
        check_defaults(scope, constraints.key, self._collector)
        return catalog.EdgeType(
            name,
            edge.source.text,
            edge.target.text,
            _collect_properties(drafts),
            _build_cardinality(edge.cardinality),
            constraints=constraints,
            annotations=build_annotation_values(edge.annotations),
            rename_from=rename_hint_of(edge.annotations),
        )


def _collect_properties(drafts: dict[str, PropertyDraft]) -> dict[str, catalog.Property]:
    return {name: _build_property(draft.meant, drafts) for name, draft in drafts.items()}


def _build_property(meant: catalog.Property, known: Container[str]) -> catalog.Property:
    if meant.default is None:
        return meant
    members = tuple(name for name in meant.default.members if name in known)
    return replace(meant, default=replace(meant.default, members=members))


def _build_cardinality(syntax: ast.Cardinality | None) -> catalog.Cardinality:
    if syntax is None:
        return catalog.Cardinality()
    return catalog.Cardinality(syntax.minimum, syntax.maximum)


def _check_names(schema: ast.Schema, collector: Collector) -> None:
    """Refuse two types of one kind with one name, and edge types that differ only in case."""
    kinds: dict[str, list[ast.Name]] = {"interface": [], "node": [], "edge": []}
    for declaration in schema.declarations:
        kinds[type(declaration).__name__.lower()].append(declaration.name)
    for kind, names in kinds.items():
        _check_duplicates(kind, names, collector)
    _check_folding(kinds["edge"], collector)


def _check_ends(
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


def _check_implements(
    node: ast.Node, interfaces: Collection[str], lost: Container[str], collector: Collector
) -> None:
    """Refuse interfaces that are not declared, and not lost to an error."""
    for name in node.implements:
        if name.text not in interfaces and name.text not in lost:
            message = f"node '{node.name.text}' implements unknown interface '{name.text}'"
            hint = collector.suggest_similar(name.text, interfaces)
            collector.report_error("S008", name.span, message, hint=hint)


def _check_cardinality(edge: ast.Edge, collector: Collector) -> None:
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
