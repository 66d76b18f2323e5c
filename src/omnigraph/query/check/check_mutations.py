"""Inserts, updates and deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from omnigraph.query import ast, typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.check.check_actions import check_pattern_write
from omnigraph.query.check.check_assignments import (
    ENDS,
    check_assignments,
    check_complete,
    find_type,
    refuse_assigned_keys,
    require_key,
)
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    Leaf,
    LeafExpr,
    check_constant,
    check_expression,
)
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.check.check_own_fields import check_own_leaf
from omnigraph.query.check.check_row_loops import check_row_loop
from omnigraph.schema.catalog import EdgeType, NodeType

_AMBIGUOUS_WORDS = frozenset({"true", "false"})


def check_mutations(
    context: CheckContext,
    mutations: Iterable[ast.MutationStatement],
    parameters: tuple[typed_tree.Parameter, ...] = (),
) -> tuple[typed_tree.Statement, ...]:
    """The statements that are right, in order; a pattern reads the parameters of the query."""
    mutations = list(mutations)
    if context.is_strict:
        _refuse_mixture(context, mutations)
    checked = [_check_statement(context, each, parameters) for each in mutations]
    return tuple(statement for statement in checked if statement is not None)


def _check_statement(
    context: CheckContext,
    statement: ast.MutationStatement,
    parameters: tuple[typed_tree.Parameter, ...],
) -> typed_tree.Statement | None:
    match statement:
        case ast.PatternWrite():
            return check_pattern_write(context, statement, parameters)
        case ast.RowsWrite():
            return check_row_loop(context, statement)
        case _:
            return _check_mutation(context, statement)


def _refuse_mixture(context: CheckContext, statements: Sequence[ast.MutationStatement]) -> None:
    # The parser has refused all others.
    mutations = [each for each in statements if isinstance(each, ast.Mutation)]
    deletes = [isinstance(each, ast.Delete) for each in mutations]
    if any(deletes) and not all(deletes):
        context.report_error(
            "L203",
            mutations[deletes.index(not deletes[0])].type_name.span,
            "inserts/updates and deletes cannot be mixed: split the mutation",
            hint="run the deletes as a mutation of their own",
        )


def _check_mutation(context: CheckContext, mutation: ast.Mutation) -> typed_tree.Statement | None:
    target = find_type(context, mutation.type_name)
    if target is None:
        for assignment in _assignments_of(mutation):
            check_constant(context, assignment.value)
        return None
    match mutation:
        case ast.Insert():
            require_key(context, mutation, target)
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


# ---- insert and update ----


def _make_old_leaf(context: CheckContext, type_: NodeType | EdgeType) -> Leaf:
    """The leaves of a value that may read the entity as it is before the statement."""

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        return check_own_leaf(context, type_, expr, "a value")

    return leaf


def _check_insert_node(
    context: CheckContext, insert: ast.Insert, node: NodeType
) -> typed_tree.InsertNode | None:
    errors_before = context.errors
    assignments = check_assignments(
        context, insert.assignments, node, leaf=_leaf_of(context, insert, node)
    )
    check_complete(context, insert, node, needed=())
    if context.errors > errors_before:
        return None
    return typed_tree.InsertNode(node.name, assignments, insert.verb)


def _check_insert_edge(
    context: CheckContext, insert: ast.Insert, edge: EdgeType
) -> typed_tree.InsertEdge | None:
    errors_before = context.errors
    values = check_assignments(
        context, insert.assignments, edge, ends=ENDS, leaf=_leaf_of(context, insert, edge)
    )
    check_complete(context, insert, edge, needed=tuple(ENDS))
    if context.errors > errors_before:
        return None
    ends = {each.property: each.value for each in values if each.property in ENDS}
    properties = tuple(each for each in values if each.property not in ENDS)
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
    hint = "delete the node and insert it under its new key"
    refuse_assigned_keys(context, update.assignments, target, hint=hint)
    leaf = None if context.is_strict else _make_old_leaf(context, target)
    assignments = check_assignments(context, update.assignments, target, leaf=leaf)
    condition = _check_where(context, target, update.condition)
    if condition is None or context.errors > errors_before:
        return None
    if isinstance(target, EdgeType):
        return typed_tree.UpdateEdges(target.name, assignments, (condition,))
    return typed_tree.UpdateNodes(target.name, assignments, (condition,))


# ---- where ----


def _check_where(
    context: CheckContext, target: NodeType | EdgeType, condition: ast.Expr
) -> typed_tree.Expr | None:
    if _is_ambiguous(context, target, condition):
        return None

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        return check_own_leaf(context, target, expr, "'where'")

    value = check_expression(context, condition, leaf)
    return check_boolean(context, (value, condition.span), "'where'")


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
