"""The properties a node has: those it writes, and those its interfaces give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.diagnostics import Collector
from omnigraph.schema import ast
from omnigraph.schema.catalog import Property
from omnigraph.schema.check.drafts import PropertyDraft


def inherit_properties(
    own: Mapping[str, PropertyDraft],
    node: ast.Node,
    interfaces: Mapping[str, Mapping[str, PropertyDraft]],
    collector: Collector,
) -> dict[str, PropertyDraft]:
    """The node's own properties, then those it does not write itself, in source order."""
    effective = dict(own)
    satisfied: dict[str, list[str]] = {}
    for interface in dict.fromkeys(node.implements):
        for given in interfaces.get(interface.text, {}).values():
            mine = effective.get(given.name)
            if mine is None:
                mine = replace(given, meant=replace(given.meant, is_injected=True))
            elif mine.meant.is_injected:
                mine = _merge_drafts(mine, given, interface, collector)
            else:
                _check_same_type(mine, given, collector)
            effective[given.name] = mine
            satisfied.setdefault(given.name, []).append(interface.text)
    for name, names in satisfied.items():
        draft = effective[name]
        meant = replace(draft.meant, interfaces=tuple(sorted(names)))
        effective[name] = replace(draft, meant=meant)
    return effective


def _check_same_type(mine: PropertyDraft, given: PropertyDraft, collector: Collector) -> None:
    if not (mine.has_type and given.has_type) or mine.meant.type == given.meant.type:
        return
    collector.report_error(
        "S009",
        mine.syntax.type.span,
        f"{mine.path} is {mine.meant.type}, but interface '{given.owner}' says {given.meant.type}",
        hint=f"write {given.meant.type}, or remove the property to get the interface's",
    )


def _merge_drafts(
    mine: PropertyDraft, given: PropertyDraft, interface: ast.Name, collector: Collector
) -> PropertyDraft:
    is_comparable = mine.has_type and given.has_type
    if is_comparable and _semantics_of(mine.meant) != _semantics_of(given.meant):
        message = (
            f"interfaces '{mine.owner}' and '{given.owner}' give '{given.name}' incompatible"
            " property semantics"
        )
        hint = "make both declarations equal, or write the property in the node"
        collector.report_error("S010", interface.span, message, hint=hint)
    rename_from = mine.meant.rename_from or given.meant.rename_from
    return replace(mine, meant=replace(mine.meant, rename_from=rename_from))


def _semantics_of(property_: Property) -> tuple[object, ...]:
    annotations = frozenset(
        (found.name, found.value, frozenset(found.options)) for found in property_.annotations
    )
    return (property_.type, annotations, property_.property_constraints, property_.embed)
