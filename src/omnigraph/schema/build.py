"""A syntax tree to a catalog, reporting every rule it breaks."""

from __future__ import annotations

from omnigraph.diagnostics import Collector
from omnigraph.schema import ast, catalog
from omnigraph.schema.check.annotations import (
    Place,
    check_annotations,
    kept_annotations,
    rename_hint,
)
from omnigraph.schema.check.constraints import Scope, check_constraints, check_embeds
from omnigraph.schema.check.declarations import (
    check_cardinality,
    check_ends,
    check_implements,
    check_names,
)
from omnigraph.schema.check.drafts import Draft
from omnigraph.schema.check.interfaces import with_interfaces
from omnigraph.schema.check.properties import draft_properties
from omnigraph.schema.parser import ParsedSchema
from omnigraph.syntax import Mode

# Many nodes times many interface properties can be far more than the text they come from.
PROPERTIES_MAX = 50_000


def build_catalog(parsed: ParsedSchema, collector: Collector, *, mode: Mode) -> catalog.Catalog:
    """Check a tree and resolve it; the catalog is only good if nothing was reported as an error."""
    return _Builder(parsed, collector, mode).build()


class _Builder:
    """Declarations in the order interfaces, nodes, edges: each needs the names before it."""

    def __init__(self, parsed: ParsedSchema, collector: Collector, mode: Mode) -> None:
        self._parsed = parsed
        self._collector = collector
        self._mode = mode
        self._interfaces: dict[str, dict[str, Draft]] = {}
        self._given_count = 0

    def build(self) -> catalog.Catalog:
        declarations = self._parsed.schema.declarations
        check_names(self._parsed.schema, self._collector)
        for found in declarations:
            if isinstance(found, ast.Interface):
                self._interface(found)
        nodes = [self._node(found) for found in declarations if isinstance(found, ast.Node)]
        names = {node.name for node in nodes} | self._parsed.lost
        edges = [self._edge(found, names) for found in declarations if isinstance(found, ast.Edge)]
        return catalog.Catalog(
            {
                name: catalog.InterfaceType(name, _properties(drafts))
                for name, drafts in self._interfaces.items()
            },
            {node.name: node for node in nodes},
            {edge.name: edge for edge in edges},
        )

    def _interface(self, interface: ast.Interface) -> None:
        name = interface.name.text
        drafts = draft_properties(name, Place.NODE_PROPERTY, interface.properties, self._collector)
        self._interfaces.setdefault(name, drafts)

    def _node(self, node: ast.Node) -> catalog.NodeType:
        name = node.name.text
        check_implements(node, self._interfaces, self._parsed.lost, self._collector)
        check_annotations(node.annotations, Place.NODE, f"node '{name}'", self._collector)
        drafts = self._with_interfaces(
            draft_properties(name, Place.NODE_PROPERTY, node.members, self._collector), node
        )
        is_partial = any(name.text not in self._interfaces for name in node.implements)
        lost = self._parsed.lost
        scope = Scope(name, drafts, self._mode, is_edge=False, lost=lost, is_partial=is_partial)
        check_embeds(scope, self._collector)
        return catalog.NodeType(
            name,
            _properties(drafts),
            check_constraints(scope, node.members, self._collector),
            annotations=kept_annotations(node.annotations),
            implements=tuple(dict.fromkeys(interface.text for interface in node.implements)),
            rename_from=rename_hint(node.annotations),
        )

    def _with_interfaces(self, own: dict[str, Draft], node: ast.Node) -> dict[str, Draft]:
        names = {interface.text for interface in node.implements}
        was_within = self._given_count <= PROPERTIES_MAX
        self._given_count += sum(len(self._interfaces.get(name, ())) for name in names)
        if self._given_count <= PROPERTIES_MAX:
            return with_interfaces(own, node, self._interfaces, self._collector)
        if was_within:
            message = f"the interfaces give the nodes more than {PROPERTIES_MAX} properties"
            hint = "implement fewer interfaces"
            self._collector.error("S023", node.name.span, message, hint=hint)
        return own

    def _edge(self, edge: ast.Edge, nodes: set[str]) -> catalog.EdgeType:
        name = edge.name.text
        check_ends(edge, nodes, self._interfaces, self._collector)
        check_cardinality(edge, self._collector)
        check_annotations(edge.annotations, Place.EDGE, f"edge '{name}'", self._collector)
        drafts = draft_properties(name, Place.EDGE_PROPERTY, edge.members, self._collector)
        scope = Scope(name, drafts, self._mode, is_edge=True, lost=self._parsed.lost)
        return catalog.EdgeType(
            name,
            edge.source.text,
            edge.target.text,
            _properties(drafts),
            _cardinality(edge.cardinality),
            constraints=check_constraints(scope, edge.members, self._collector),
            annotations=kept_annotations(edge.annotations),
            rename_from=rename_hint(edge.annotations),
        )


def _properties(drafts: dict[str, Draft]) -> dict[str, catalog.Property]:
    return {name: draft.meant for name, draft in drafts.items()}


def _cardinality(syntax: ast.Cardinality | None) -> catalog.Cardinality:
    if syntax is None:
        return catalog.Cardinality()
    return catalog.Cardinality(syntax.minimum, syntax.maximum)
