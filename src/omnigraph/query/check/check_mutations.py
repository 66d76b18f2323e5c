"""Inserts, updates and deletes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import assert_never

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    Leaf,
    LeafExpr,
    Target,
    check_constant,
    check_enum_member,
    check_expression,
    coerce_assigned,
)
from omnigraph.query.check.check_functions import is_null
from omnigraph.query.check.check_literals import refuse_variable
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.check.variable_scope import EDGE_FIELDS, NODE_FIELDS, Owner, refuse_property
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import PropertyType

_ENDS = {"from": typed_tree.SystemName.SRC, "to": typed_tree.SystemName.DST}
_FIELD_HINTS = {
    typed_tree.SystemName.ID: "the id follows from the key, or is made by the system",
    typed_tree.SystemName.SRC: "an insert names the source of the edge 'from'",
    typed_tree.SystemName.DST: "an insert names the target of the edge 'to'",
    typed_tree.SystemName.TYPE: "the type is the one that is inserted",
}
_AMBIGUOUS_WORDS = frozenset({"true", "false"})


def check_mutations(
    context: CheckContext, mutations: Iterable[ast.Mutation]
) -> tuple[typed_tree.Statement, ...]:
    """The statements that are right, in order."""
    mutations = list(mutations)
    if context.is_strict:
        _refuse_mixture(context, mutations)
    checked = [_check_mutation(context, mutation) for mutation in mutations]
    return tuple(statement for statement in checked if statement is not None)


def _refuse_mixture(context: CheckContext, mutations: Sequence[ast.Mutation]) -> None:
    deletes = [isinstance(each, ast.Delete) for each in mutations]
    if any(deletes) and not all(deletes):
        context.report_error(
            "L203",
            mutations[deletes.index(not deletes[0])].type_name.span,
            "inserts/updates and deletes cannot be mixed: split the mutation",
            hint="run the deletes as a mutation of their own",
        )


def _check_mutation(context: CheckContext, mutation: ast.Mutation) -> typed_tree.Statement | None:
    target = _find_type(context, mutation.type_name)
    if target is None:
        for assignment in _assignments_of(mutation):
            check_constant(context, assignment.value)
        return None
    match mutation:
        case ast.Insert():
            _require_key(context, mutation, target)
            if isinstance(target, NodeType):
                return _check_insert_node(context, mutation, target)
            return _check_insert_edge(context, mutation, target)
        case ast.Update():
            return _check_update(context, mutation, target)
        case ast.Delete():
            condition = _check_where(context, target, mutation.condition)
            if condition is None:
                return None
            if isinstance(target, NodeType):
                return typed_tree.DeleteNodes(target.name, (condition,))
            return typed_tree.DeleteEdges(target.name, (condition,))
        case _:
            assert_never(mutation)


def _assignments_of(mutation: ast.Mutation) -> tuple[ast.Assignment, ...]:
    return () if isinstance(mutation, ast.Delete) else mutation.assignments


def _find_type(context: CheckContext, name: Name) -> NodeType | EdgeType | None:
    catalog = context.catalog
    found = catalog.nodes.get(name.text) or catalog.edges.get(name.text)
    if found is None:
        hint = context.suggest_similar(name.text, chain(catalog.nodes, catalog.edges))
        if name.text in catalog.interfaces:
            hint = "an interface has no entities; name a node type that implements it"
        context.report_error("T10", name.span, f"unknown type '{name.text}'", hint=hint)
    return found


# ---- insert and update ----


def _require_key(context: CheckContext, insert: ast.Insert, type_: NodeType | EdgeType) -> None:
    if insert.verb in (WriteVerb.UPSERT, WriteVerb.REPLACE) and type_.key is None:
        context.report_error(
            "T123",
            insert.type_name.span,
            f"'{insert.verb}' needs a type with a key, and {type_.name} has none",
            hint="write 'insert' for a new entity, or 'update … where' for those that exist",
        )


def _make_old_leaf(context: CheckContext, type_: NodeType | EdgeType) -> Leaf:
    """The leaves of a value that may read the entity as it is before the statement."""

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        return _check_own_leaf(context, type_, expr, "a value")

    return leaf


def _check_insert_node(
    context: CheckContext, insert: ast.Insert, node: NodeType
) -> typed_tree.InsertNode | None:
    errors_before = context.errors
    assignments = _check_assignments(
        context, insert.assignments, node, leaf=_leaf_of(context, insert, node)
    )
    _check_complete(context, insert, node, needed=())
    if context.errors > errors_before:
        return None
    return typed_tree.InsertNode(node.name, assignments, insert.verb)


def _check_insert_edge(
    context: CheckContext, insert: ast.Insert, edge: EdgeType
) -> typed_tree.InsertEdge | None:
    errors_before = context.errors
    values = _check_assignments(
        context, insert.assignments, edge, ends=_ENDS, leaf=_leaf_of(context, insert, edge)
    )
    _check_complete(context, insert, edge, needed=tuple(_ENDS))
    if context.errors > errors_before:
        return None
    ends = {each.property: each.value for each in values if each.property in _ENDS}
    properties = tuple(each for each in values if each.property not in _ENDS)
    return typed_tree.InsertEdge(edge.name, ends["from"], ends["to"], properties, insert.verb)


def _leaf_of(context: CheckContext, insert: ast.Insert, type_: NodeType | EdgeType) -> Leaf | None:
    return _make_old_leaf(context, type_) if insert.verb is WriteVerb.UPSERT else None


def _check_update(
    context: CheckContext, update: ast.Update, target: NodeType | EdgeType
) -> typed_tree.UpdateNodes | typed_tree.UpdateEdges | None:
    if isinstance(target, EdgeType) and context.is_strict:
        context.report_error(
            "T16",
            update.type_name.span,
            f"{target.name} is an edge type; edges cannot be updated",
            hint="delete the edge and insert it again",
        )
        return None
    errors_before = context.errors
    for assignment in update.assignments:
        name = assignment.property
        if name.text in (target.key or ()):
            context.report_error(
                "T11",
                name.span,
                f"cannot update @key property '{name.text}' of {target.name}",
                hint="delete the node and insert it under its new key",
            )
    leaf = None if context.is_strict else _make_old_leaf(context, target)
    assignments = _check_assignments(context, update.assignments, target, leaf=leaf)
    condition = _check_where(context, target, update.condition)
    if condition is None or context.errors > errors_before:
        return None
    if isinstance(target, EdgeType):
        return typed_tree.UpdateEdges(target.name, assignments, (condition,))
    return typed_tree.UpdateNodes(target.name, assignments, (condition,))


def _check_assignments(
    context: CheckContext,
    assignments: Sequence[ast.Assignment],
    type_: NodeType | EdgeType,
    *,
    ends: Collection[str] = (),
    leaf: Leaf | None = None,
) -> tuple[typed_tree.Assign, ...]:
    """The values of properties of a type, and of the ends of an inserted edge.

    Without `leaf` the values are constants. Keys and ends, which identify the entity, always are.
    """
    fixed = {*ends, *(type_.key or ())}
    seen: set[str] = set()
    checked: list[typed_tree.Assign] = []
    for assignment in assignments:
        name = assignment.property
        if name.text in seen:
            context.report_error("T13", name.span, f"property '{name.text}' is assigned twice")
        seen.add(name.text)
        if leaf is None or name.text in fixed:
            value = check_constant(context, assignment.value)
        else:
            value = check_expression(context, assignment.value, leaf)
        found = typed_tree.STRING if name.text in ends else _find_property_type(type_, name.text)
        if found is None:
            owner = _owner_of(type_)
            is_field = name.text in owner.fields
            hint = _FIELD_HINTS[typed_tree.SystemName(name.text)] if is_field else None
            refuse_property(context, "T11", name, owner, hint=hint)
        elif value is not None:
            stored = _check_stored(context, value, Target(name.text, found), assignment)
            if stored is not None:
                checked.append(typed_tree.Assign(name.text, stored))
    return tuple(checked)


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


def _check_complete(
    context: CheckContext,
    insert: ast.Insert,
    type_: NodeType | EdgeType,
    needed: Collection[str],
) -> None:
    """Report what a new entity needs and is not given; of an upsert, what identifies the entity."""
    given = {assignment.property.text for assignment in insert.assignments}
    # An end that was given under its field name has been refused there.
    misnamed = {name for name in needed if _ENDS[name] in given - type_.properties.keys()}
    missing = [name for name in needed if name not in given | misnamed]
    for name, found in type_.properties.items():
        is_embedded = found.embed is not None and found.embed.source in given
        is_identity = insert.verb is not WriteVerb.UPSERT or name in (type_.key or ())
        if name not in given and not found.type.is_nullable and not is_embedded and is_identity:
            missing.append(name)
    if missing:
        shown = ", ".join(f"'{name}'" for name in missing)
        context.report_error(
            "T12", insert.type_name.span, f"{insert.verb} of {type_.name} misses {shown}"
        )


# ---- where ----


def _check_where(
    context: CheckContext, target: NodeType | EdgeType, condition: ast.Expr
) -> typed_tree.Expr | None:
    if _is_ambiguous(context, target, condition):
        return None

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        return _check_own_leaf(context, target, expr, "'where'")

    value = check_expression(context, condition, leaf)
    return check_boolean(context, (value, condition.span), "'where'")


def _check_own_leaf(
    context: CheckContext, target: NodeType | EdgeType, leaf: LeafExpr, position: str
) -> typed_tree.Expr | None:
    """A property or field of the entity that a statement is about."""
    match leaf:
        case ast.Identifier():
            return _check_own_property(context, target, leaf)
        case ast.SystemField(name, span):
            fields = [each for each in _fields_of(target) if each is not typed_tree.SystemName.TYPE]
            if name in fields:
                return typed_tree.SystemValue(typed_tree.ROW, typed_tree.SystemName(name))
            shown = ", ".join(f"'@{each}'" for each in fields)
            context.report_error(
                "T11", span, f"'@{name}' cannot stand here; {target.name} has {shown}"
            )
        case ast.Variable(name, span):
            refuse_variable(context, name, span)
        case ast.PropertyAccess(variable) | ast.SystemAccess(variable):
            context.report_error(
                "T14",
                variable.span,
                f"a mutation has no variable '${variable.name}'",
                hint="name the property alone",
            )
        case _:
            context.report_error(
                "T44", leaf.span, f"an aggregate, search or rank call cannot stand in {position}"
            )
    return None


def _check_own_property(
    context: CheckContext, target: NodeType | EdgeType, word: ast.Identifier
) -> typed_tree.Expr | None:
    found = target.properties.get(word.name)
    if found is None and isinstance(target, EdgeType) and word.name in _ENDS:
        return typed_tree.SystemValue(typed_tree.ROW, _ENDS[word.name])
    if found is None:
        refuse_property(context, "T11", Name(word.name, word.span), _owner_of(target))
        return None
    if found.type.is_blob:
        context.report_error("T11", word.span, f"'{word.name}' is a Blob; it cannot be tested")
        return None
    return typed_tree.PropertyValue(typed_tree.ROW, word.name, found.type)


def _is_ambiguous(context: CheckContext, target: NodeType | EdgeType, condition: ast.Expr) -> bool:
    """Whether `true` or `false` could mean a property: guessing could delete the wrong rows."""
    names = _AMBIGUOUS_WORDS & target.properties.keys()
    literal = next(_iter_boolean_literals(condition), None) if names else None
    if literal is None:
        return False
    context.report_error(
        "T46",
        literal.span,
        f"{target.name} has a property '{max(names)}', so a Boolean literal is ambiguous here",
        hint="pass the Boolean as a parameter",
    )
    return True


def _iter_boolean_literals(expr: ast.Expr) -> Iterator[ast.BooleanLiteral]:
    match expr:
        case ast.BooleanLiteral():
            yield expr
        case ast.Comparison(_, left, right) | ast.TextTest(_, left, right):
            yield from _iter_boolean_literals(left)
            yield from _iter_boolean_literals(right)
        case ast.Membership(item, items):
            yield from _iter_boolean_literals(item)
            yield from _iter_boolean_literals(items)
        case ast.NullTest(operand) | ast.Not(operand):
            yield from _iter_boolean_literals(operand)
        case ast.And(operands) | ast.Or(operands) | ast.ListLiteral(operands):
            for operand in operands:
                yield from _iter_boolean_literals(operand)
        case _:
            return


def _owner_of(type_: NodeType | EdgeType) -> Owner:
    return Owner(type_.name, type_.properties, _fields_of(type_))


def _fields_of(type_: NodeType | EdgeType) -> tuple[typed_tree.SystemName, ...]:
    return NODE_FIELDS if isinstance(type_, NodeType) else EDGE_FIELDS
