"""What a mutation assigns to properties, and to the ends of edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    Leaf,
    Target,
    check_enum_member,
    check_expression,
    coerce_assigned,
    make_constant_leaf,
)
from omnigraph.query.check.check_functions import is_null
from omnigraph.query.check.variable_scope import EDGE_FIELDS, NODE_FIELDS, Owner, refuse_property
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import PropertyType

ENDS = {"from": typed_tree.SystemName.SRC, "to": typed_tree.SystemName.DST}
_FIELD_HINTS = {
    typed_tree.SystemName.ID: "the id follows from the key, or is made by the system",
    typed_tree.SystemName.SRC: "an insert names the source of the edge 'from'",
    typed_tree.SystemName.DST: "an insert names the target of the edge 'to'",
    typed_tree.SystemName.TYPE: "the type is the one that is inserted",
}


def find_type(context: CheckContext, name: Name) -> NodeType | EdgeType | None:
    """The type that a statement is about; reports an unknown one."""
    catalog = context.catalog
    found = catalog.nodes.get(name.text) or catalog.edges.get(name.text)
    if found is None:
        hint = context.suggest_similar(name.text, chain(catalog.nodes, catalog.edges))
        if name.text in catalog.interfaces:
            hint = "an interface has no entities; name a node type that implements it"
        context.report_error("T10", name.span, f"unknown type '{name.text}'", hint=hint)
    return found


def require_key(context: CheckContext, insert: ast.Insert, type_: NodeType | EdgeType) -> None:
    """Report a verb that finds its entity by a key which the type does not have."""
    if insert.verb in (WriteVerb.UPSERT, WriteVerb.REPLACE) and type_.key is None:
        context.report_error(
            "T123",
            insert.type_name.span,
            f"'{insert.verb}' needs a type with a key, and {type_.name} has none",
            hint="write 'insert' for a new entity, or 'update … where' for those that exist",
        )


def refuse_assigned_keys(
    context: CheckContext,
    assignments: Iterable[ast.Assignment],
    type_: NodeType | EdgeType,
    *,
    hint: str = "delete the entity and create it under its new key",
) -> None:
    """Report an update of what identifies an entity."""
    for assignment in assignments:
        name = assignment.property
        if name.text in (type_.key or ()):
            message = f"cannot update @key property '{name.text}' of {type_.name}"
            context.report_error("T11", name.span, message, hint=hint)


def check_assignments(
    context: CheckContext,
    assignments: Sequence[ast.Assignment],
    type_: NodeType | EdgeType,
    *,
    ends: Collection[str] = (),
    leaf: Leaf | None = None,
    may_compute_key: bool = False,
) -> tuple[typed_tree.Assign, ...]:
    """The values of properties of a type, and of the ends of an inserted edge.

    Without `leaf` the values are constants. Keys and ends, which identify the entity, are too
    unless they may be computed: then an end may also be a node.
    """
    constant = make_constant_leaf(context)
    fixed = {*ends, *(type_.key or ())}
    seen: set[str] = set()
    checked: list[typed_tree.Assign] = []
    for assignment in assignments:
        name = assignment.property
        if name.text in seen:
            context.report_error("T13", name.span, f"property '{name.text}' is assigned twice")
        seen.add(name.text)
        is_constant = leaf is None or (name.text in fixed and not may_compute_key)
        value = check_expression(
            context, assignment.value, constant if is_constant or leaf is None else leaf
        )
        if isinstance(value, typed_tree.NodeValue):
            value = _check_node(context, value, assignment, type_, ends)
        found = typed_tree.STRING if name.text in ends else _find_property_type(type_, name.text)
        if found is None:
            owner = owner_of(type_)
            is_field = name.text in owner.fields
            hint = _FIELD_HINTS[typed_tree.SystemName(name.text)] if is_field else None
            refuse_property(context, "T11", name, owner, hint=hint)
        elif value is not None:
            stored = _check_stored(context, value, Target(name.text, found), assignment)
            if stored is not None:
                checked.append(typed_tree.Assign(name.text, stored))
    return tuple(checked)


def _check_node(
    context: CheckContext,
    value: typed_tree.NodeValue,
    assignment: ast.Assignment,
    type_: NodeType | EdgeType,
    ends: Collection[str],
) -> typed_tree.Expr | None:
    """A node as an end of an edge: its id."""
    name = assignment.property.text
    expected = None
    if name in ends and isinstance(type_, EdgeType):
        expected = type_.source if name == "from" else type_.target
    if expected == value.type.type_name:
        return typed_tree.SystemValue(value.variable, typed_tree.SystemName.ID)
    needed = "a value" if expected is None else f"a node of type {expected}, or its id"
    context.report_error(
        "T112", assignment.value.span, f"'{name}' is {needed}; got {value.type.type_name}"
    )
    return None


def _find_property_type(type_: NodeType | EdgeType, name: str) -> PropertyType | None:
    found = type_.properties.get(name)
    return None if found is None else found.type


def _check_stored(
    context: CheckContext, value: typed_tree.Expr, target: Target, assignment: ast.Assignment
) -> typed_tree.Expr | None:
    span = assignment.value.span
    if is_null(value):
        return _check_null(context, target, span)
    stored = coerce_assigned(context, value, target, span)
    if stored is None or not check_enum_member(context, stored, target, span):
        return None
    return stored


def _check_null(context: CheckContext, target: Target, span: Span) -> typed_tree.Expr | None:
    if target.type.is_nullable:
        return typed_tree.Constant(None, target.type)
    context.report_error(
        "T3", span, f"'{target.name}' is {target.type}, which is never null", hint="give it a value"
    )
    return None


def check_complete(
    context: CheckContext,
    insert: ast.Insert,
    type_: NodeType | EdgeType,
    needed: Collection[str],
) -> None:
    """Report what a new entity needs and is not given; of an upsert, what identifies the entity."""
    given = {assignment.property.text for assignment in insert.assignments}
    # An end that was given under its field name has been refused there.
    misnamed = {name for name in needed if ENDS[name] in given - type_.properties.keys()}
    missing = [name for name in needed if name not in given | misnamed]
    for name, found in type_.properties.items():
        is_embedded = found.embed is not None and found.embed.source in given
        is_identity = insert.verb is not WriteVerb.UPSERT or name in (type_.key or ())
        if name not in given and found.must_be_given and not is_embedded and is_identity:
            missing.append(name)
    if missing:
        shown = ", ".join(f"'{name}'" for name in missing)
        context.report_error(
            "T12", insert.type_name.span, f"{insert.verb} of {type_.name} misses {shown}"
        )


def owner_of(type_: NodeType | EdgeType) -> Owner:
    """A type as messages about its properties name it."""
    return Owner(type_.name, type_.properties, fields_of(type_))


def fields_of(type_: NodeType | EdgeType) -> tuple[typed_tree.SystemName, ...]:
    """The system fields of the entities of a type."""
    return NODE_FIELDS if isinstance(type_, NodeType) else EDGE_FIELDS
