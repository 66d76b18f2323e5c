"""Variables of several node types: which types a binding means, and what all of them have."""

from __future__ import annotations

from omnigraph.query import ast
from omnigraph.query.check.check_context import CheckContext
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import Catalog, Property
from omnigraph.schema.type_sets import ANY_TYPE, list_member_types, name_type_set


def find_bound_type(context: CheckContext, binding: ast.Binding) -> str | None:
    """The node type that a binding names, or the set of them; None if a name is unknown."""
    catalog = context.catalog
    if binding.type_name.text == ANY_TYPE:
        return name_type_set(catalog.nodes) if catalog.nodes else None
    if context.is_strict:
        return binding.type_name.text if binding.type_name.text in catalog.nodes else None
    types = [list_node_types(catalog, each.text) for each in _list_names(binding)]
    if not all(types):
        return None
    return name_type_set(name for each in types for name in each)


def list_node_types(catalog: Catalog, name: str) -> tuple[str, ...]:
    """The node type of a name, or those that implement an interface."""
    if name in catalog.nodes:
        return (name,)
    return tuple(each.name for each in catalog.nodes.values() if name in each.implements)


def refuse_types(context: CheckContext, binding: ast.Binding) -> None:
    """Report the names of a binding that are not those of node types."""
    if binding.type_name.text == ANY_TYPE:
        message = "the schema has no node types"
        context.report_error("T1", binding.type_name.span, message)
        return
    for name in _list_names(binding):
        if context.is_strict or not list_node_types(context.catalog, name.text):
            _refuse_type(context, name)


def _list_names(binding: ast.Binding) -> tuple[Name, ...]:
    return binding.members or (binding.type_name,)


def _refuse_type(context: CheckContext, name: Name) -> None:
    catalog = context.catalog
    if name.text in catalog.interfaces:
        hint: str | None = "interfaces cannot be queried; name a node type that implements it"
        if not context.is_strict:
            hint = f"no node type implements {name.text}"
    elif name.text in catalog.edges:
        hint = f"{name.text} is an edge type: write '$a {name.text[:1].lower()}{name.text[1:]} $b'"
    else:
        names = (*catalog.nodes, *(() if context.is_strict else catalog.interfaces))
        hint = context.suggest_similar(name.text, names)
    context.report_error("T1", name.span, f"unknown node type '{name.text}'", hint=hint)


def find_set_property(
    context: CheckContext, type_name: str, access: ast.PropertyAccess, code: str
) -> Property | None:
    """A property of all types of a set; with `?`, of at least one of them."""
    return find_member_property(
        context, type_name, access.property, code, is_optional=access.is_optional
    )


def find_member_property(
    context: CheckContext, type_name: str, name: Name, code: str, *, is_optional: bool = False
) -> Property | None:
    """A property of the types of a set, or None if it is reported."""
    catalog = context.catalog
    members = list_member_types(type_name)
    lacking = [each for each in members if name.text not in catalog.nodes[each].properties]
    if lacking and (not is_optional or len(lacking) == len(members)):
        known = {own for each in members for own in catalog.nodes[each].properties}
        hint = context.suggest_similar(name.text, sorted(known))
        if len(lacking) < len(members):
            hint = f"write '.{name.text}?': it is null there"
        have = "have" if len(lacking) > 1 else "has"
        message = f"{', '.join(lacking)} {have} no property '{name.text}'"
        context.report_error(code, name.span, message, hint=hint)
        return None
    found = catalog.nodes[type_name].properties.get(name.text)
    if found is None:
        message = f"property '{name.text}' has different types on {', '.join(members)}"
        context.report_error(code, name.span, message, hint="bind fewer types")
    return found
