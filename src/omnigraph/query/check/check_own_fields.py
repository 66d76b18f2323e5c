"""Properties and fields of the entity that a statement of a mutation is about."""

from __future__ import annotations

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_assignments import ENDS, fields_of, owner_of
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafExpr
from omnigraph.query.check.check_literals import refuse_variable
from omnigraph.query.check.variable_scope import refuse_property
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import EdgeType, NodeType

# Where a schema has a condition of its entities.
CONDITION = "@check"


def check_own_leaf(
    context: CheckContext, target: NodeType | EdgeType, leaf: LeafExpr, position: str
) -> typed_tree.Expr | None:
    """A property or field of the entity that a statement is about."""
    match leaf:
        case ast.Identifier():
            return _check_own_property(context, target, leaf)
        case ast.SystemField(name, span):
            fields = [each for each in fields_of(target) if each is not typed_tree.SystemName.TYPE]
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
                f"{position if position == CONDITION else 'a mutation'} has no variable"
                f" '${variable.name}'",
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
    if found is None and isinstance(target, EdgeType) and word.name in ENDS:
        return typed_tree.SystemValue(typed_tree.ROW, ENDS[word.name])
    if found is None:
        refuse_property(context, "T11", Name(word.name, word.span), owner_of(target))
        return None
    if found.type.is_blob:
        context.report_error("T11", word.span, f"'{word.name}' is a Blob; it cannot be tested")
        return None
    return typed_tree.PropertyValue(typed_tree.ROW, word.name, found.type)
