"""Operators over checked operands: comparison, text tests, membership, null tests, Booleans.

Each function takes operands that may be None, which means that they are wrong and have been
reported; it then says nothing more about them.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import (
    are_compatible,
    coerce_literal,
    is_empty_list,
    scalar_of,
)
from omnigraph.schema.property_types import (
    FLOATS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
)

_EQUALITIES = (ast.CompareOp.EQ, ast.CompareOp.NE)
_BOOL = Scalar.BOOL
_MAYBE = typed_tree.BOOL.as_nullable()
Operand = tuple[typed_tree.Expr | None, Span]


def check_comparison(
    context: CheckContext,
    comparison: ast.Comparison,
    left: typed_tree.Expr | None,
    right: typed_tree.Expr | None,
) -> typed_tree.Expr | None:
    """`left op right`."""
    if left is None or right is None:
        return None
    left_scalar, right_scalar = scalar_of(left), scalar_of(right)
    if not are_compatible(left_scalar, right_scalar):
        _refuse_comparison(context, comparison, left, right)
        return None
    if comparison.op in _EQUALITIES:
        _warn_of_mismatches(context, left, (right, comparison.right.span))
        _warn_of_mismatches(context, right, (left, comparison.left.span))
        if (isinstance(comparison.left, ast.Arithmetic) and left_scalar in FLOATS) or (
            isinstance(comparison.right, ast.Arithmetic) and right_scalar in FLOATS
        ):
            _warn_of_rounding(context, comparison)
    if left_scalar is not right_scalar:
        left, right = coerce_literal(left, right_scalar), coerce_literal(right, left_scalar)
    return typed_tree.Compare(comparison.op, left, right, truth_type_of(left, right))


def _refuse_comparison(
    context: CheckContext,
    comparison: ast.Comparison,
    left: typed_tree.Expr,
    right: typed_tree.Expr,
) -> None:
    if not _is_scalar(context, left, comparison.left.span):
        return
    if _is_scalar(context, right, comparison.right.span):
        context.report_error(
            "T7",
            comparison.span,
            f"cannot compare {left.type} with {right.type}",
            hint=_suggest_conversion(left, right),
        )


def _warn_of_rounding(context: CheckContext, comparison: ast.Comparison) -> None:
    """Warn of a computed float that has to equal something: it may be off by a rounding."""
    context.collector.report_warning(
        "L325",
        comparison.span,
        "a computed float may miss a value by a rounding",
        hint="compare with a tolerance: abs(x - y) < 0.000001",
    )


def _warn_of_mismatches(context: CheckContext, value: typed_tree.Expr, other: Operand) -> None:
    """Warn of a literal that an enum never equals: nothing is wrong, and nothing is found."""
    literal, span = other
    enum = value.type.value if isinstance(value.type, PropertyType) else None
    if not isinstance(enum, EnumType) or not isinstance(literal, typed_tree.Constant):
        return
    found = literal.value
    for word in found if isinstance(found, tuple) else (found,):
        if isinstance(word, str) and word not in enum.values:
            context.collector.report_warning(
                "L204",
                span,
                f"'{sanitize_text(word)}' is never a value of {enum}",
                hint=context.suggest_similar(word, enum.values),
            )


def check_text_test(
    context: CheckContext,
    test: ast.TextTest,
    left: typed_tree.Expr | None,
    right: typed_tree.Expr | None,
) -> typed_tree.Expr | None:
    """`left contains right`, `left starts_with right`, or one of their call forms."""
    if left is None or right is None:
        return None
    if test.op is ast.TextOp.CONTAINS and element_of(left) is not None:
        if not test.is_call:
            return check_member(context, test.span, (right, test.right.span), left)
        context.report_error(
            "T7",
            test.left.span,
            f"contains(text, part) needs Strings, got {left.type}",
            hint="write 'item in list'",
        )
        return None
    for value, expr in ((left, test.left), (right, test.right)):
        if scalar_of(value) is not Scalar.STRING:
            context.report_error("T7", expr.span, f"'{test.op}' needs Strings, got {value.type}")
            return None
    if test.op is ast.TextOp.CONTAINS:
        return typed_tree.Substring(left, right, truth_type_of(left, right))
    return typed_tree.Prefix(left, right, truth_type_of(left, right))


def check_membership(
    context: CheckContext,
    membership: ast.Membership,
    item: typed_tree.Expr | None,
    items: typed_tree.Expr | None,
) -> typed_tree.Expr | None:
    """`item in items`."""
    if isinstance(item, typed_tree.NodeValue):
        context.report_error(
            "T7",
            membership.item.span,
            f"membership needs a value, got the node '${item.variable}'",
            hint='an edge of that name is written in quotes: "in"',
        )
        return None
    if item is None or items is None:
        return None
    if element_of(items) is None:
        context.report_error(
            "T7", membership.items.span, f"'in' needs a list on the right, got {items.type}"
        )
        return None
    return check_member(context, membership.span, (item, membership.item.span), items)


def check_member(
    context: CheckContext, span: Span, item: Operand, items: typed_tree.Expr
) -> typed_tree.Expr | None:
    """Whether an item is in a list, in either spelling."""
    value, item_span = item
    if value is None:
        return None
    scalar, element = scalar_of(value), element_of(items)
    if scalar in (None, Scalar.BLOB):
        context.report_error("T7", item_span, f"membership needs one item, got {value.type}")
        return None
    if is_empty_list(items):
        items = typed_tree.Constant((), PropertyType(ListType(scalar))) if scalar else items
    elif not are_compatible(scalar, element):
        context.report_error(
            "T7", span, f"membership needs an item of type {element}, got {value.type}"
        )
        return None
    _warn_of_mismatches(context, value, (items, span))
    return typed_tree.Member(
        coerce_literal(value, element), coerce_literal(items, scalar), truth_type_of(value, items)
    )


def check_null_test(
    context: CheckContext, test: ast.NullTest, operand: typed_tree.Expr | None
) -> typed_tree.Expr | None:
    """`operand is null` or `operand is not null`."""
    if operand is None:
        return None
    if isinstance(operand.type, typed_tree.NodeObject):
        is_refused = context.is_strict
    else:
        is_refused = operand.type.is_blob
    if is_refused:
        context.report_error("T7", test.operand.span, f"a null test cannot take a {operand.type}")
        return None
    return typed_tree.IsNull(operand, test.is_negated)


def check_logical(
    context: CheckContext, word: str, operands: Sequence[Operand]
) -> typed_tree.Expr | None:
    """Operands joined by `and` or by `or`, all of them Boolean."""
    known = [value for value, _ in operands if value is not None]
    wrong = [(value, span) for value, span in operands if value and not is_boolean(value)]
    if wrong:
        named = known if len(operands) == 2 else [wrong[0][0]]
        got = " and ".join(str(value.type) for value in named)
        context.report_error("T41", wrong[0][1], f"'{word}' needs Bool operands, got {got}")
    if wrong or len(known) < len(operands):
        return None
    joined = typed_tree.AllOf if word == "and" else typed_tree.AnyOf
    return joined(tuple(known), truth_type_of(*known))


def check_negation(context: CheckContext, operand: Operand) -> typed_tree.Expr | None:
    """`not operand`."""
    value, span = operand
    if value is None:
        return None
    if not is_boolean(value):
        context.report_error("T41", span, f"'not' needs a Bool operand, got {value.type}")
        return None
    return typed_tree.Negation(value, truth_type_of(value))


def check_boolean(context: CheckContext, operand: Operand, what: str) -> typed_tree.Expr | None:
    """A whole condition."""
    value, span = operand
    if value is None or is_boolean(value):
        return value
    hint = None if element_of(value) is None else "item(list, 0) reads an item of a list"
    context.report_error("T41", span, f"{what} needs a Bool, got {value.type}", hint=hint)
    return None


def truth_type_of(*operands: typed_tree.Expr) -> PropertyType:
    """Bool, nullable if an operand is."""
    for each in operands:
        if not isinstance(each.type, typed_tree.NodeObject) and each.type.is_nullable:
            return _MAYBE
    return typed_tree.BOOL


def is_boolean(value: typed_tree.Expr) -> bool:
    """Whether an expression is true, false, or perhaps null."""
    return scalar_of(value) is _BOOL


def element_of(value: typed_tree.Expr) -> Scalar | None:
    """The element type of a list expression; None for anything else."""
    if isinstance(value.type, typed_tree.NodeObject) or not isinstance(value.type.value, ListType):
        return None
    return value.type.value.element


def _is_scalar(context: CheckContext, value: typed_tree.Expr, span: Span) -> bool:
    if isinstance(value, typed_tree.NodeValue):
        context.report_error(
            "T7",
            span,
            f"'${value.variable}' is a node, not a value",
            hint=f"compare a property, or '${value.variable}.@id'",
        )
        return False
    if scalar_of(value) in (None, Scalar.BLOB):
        hint = "test one item with 'in'" if element_of(value) else None
        context.report_error("T7", span, f"a {value.type} cannot be compared", hint=hint)
        return False
    return True


def _suggest_conversion(left: typed_tree.Expr, right: typed_tree.Expr) -> str | None:
    scalars = {scalar_of(left), scalar_of(right)}
    if Scalar.STRING in scalars and scalars & {Scalar.DATE, Scalar.DATETIME}:
        word = "date" if Scalar.DATE in scalars else "datetime"
        return f'write {word}("…")'
    return None
