"""Blocks of clauses: `match { … }` and the blocks inside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.ambiguous_clauses import resolve_ambiguities
from omnigraph.query.check.check_aggregates import check_aggregate_type
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    LeafRules,
    Refusal,
    Target,
    check_constant,
    check_enum_member,
    check_expression,
    code_of,
    leaf_of,
)
from omnigraph.query.check.check_laterals import (
    check_lateral,
    require_bound,
    warn_of_pointless_optional,
)
from omnigraph.query.check.check_literals import (
    are_compatible,
    check_literal,
    coerce_literal,
    find_parameter_value,
    scalar_of,
)
from omnigraph.query.check.check_operators import (
    check_boolean,
    check_logical,
    element_of,
    truth_type_of,
)
from omnigraph.query.check.check_paths import check_path
from omnigraph.query.check.check_search import check_predicate
from omnigraph.query.check.check_table_calls import check_for_table
from omnigraph.query.check.check_traversals import CheckedTraversal, check_anchors, check_traversal
from omnigraph.query.check.check_type_sets import (
    find_bound_type,
    find_member_property,
    refuse_types,
)
from omnigraph.query.check.check_values import check_for_each, check_let
from omnigraph.query.check.clause_order import sort_clauses
from omnigraph.query.check.open_walks import warn_of_open_walks
from omnigraph.query.check.variable_scope import (
    ANONYMOUS,
    NODE_FIELDS,
    EdgeVariable,
    NodeVariable,
    Owner,
    Scope,
    ValueVariable,
    check_new_name,
    refuse_property,
)
from omnigraph.schema.catalog import NodeType
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from omnigraph.schema.type_sets import is_type_set

_JOINED_HINT = "a block is a clause of its own: write what follows it as another clause"
_RANK_HINT = "rank calls belong in 'order'"
_FILTER = LeafRules(
    word=Refusal("T7", "is not a value here", "quote a text, or write '$v.name' for a property"),
    aggregate=Refusal(
        "T7", "an aggregate cannot stand in a filter", "compare a block: 'count { … } > 2'"
    ),
    predicate=Refusal(
        "T38", "a search predicate must be a whole condition, alone or joined by 'and'"
    ),
    rank=Refusal("T7", "a rank call is not a condition", _RANK_HINT),
    takes_scores=True,
)
_BLOCK_ARGUMENT = LeafRules(
    word=_FILTER.word,
    aggregate=Refusal("T8", "an aggregate cannot take an aggregate"),
    predicate=Refusal("T8", "an aggregate cannot take a search predicate"),
    rank=Refusal("T32", "a rank call cannot stand inside an aggregate", _RANK_HINT),
)


Block = ast.NotBlock | ast.ExistsBlock | ast.AggregateBlock | ast.LateralBlock


def check_pattern(
    context: CheckContext, clauses: Sequence[ast.Clause], outer: Scope | None = None
) -> tuple[typed_reads.Pattern, Scope]:
    """The checked clauses of a block and the variables it binds."""
    meant = resolve_ambiguities(context, clauses, () if outer is None else outer.list_value_names())
    if not context.is_strict:

        def is_bound(name: str) -> bool:
            return outer is not None and outer.peek(name) is not None

        meant = sort_clauses(meant, is_bound)
        warn_of_open_walks(context, meant, is_bound)
    scope = Scope(collect_declared_types(context, meant), outer)
    checked: list[typed_reads.Clause | None] = []
    walks: dict[int, CheckedTraversal] = {}
    # What has to be bound before each clause: blocks in its expressions, or an implicit scan.
    before: dict[int, list[typed_reads.Clause]] = {}
    for index, clause in enumerate(meant):
        context.collector.poll()
        if isinstance(clause, ast.Traversal):
            walks[index] = check_traversal(context, scope, clause)
            checked.append(walks[index].typed)
        else:
            checked.append(_check_clause(context, scope, clause))
        before[index] = list(scope.take_hidden())
        warn_of_pointless_optional(context, scope, checked[-1], clause.span)
    for index, scan in check_anchors(context, scope, walks).items():
        before[index].append(scan)
    arranged = _arrange_clauses(checked, before)
    return typed_reads.Pattern(arranged, scope.list_nodes(), scope.list_edges()), scope


def _arrange_clauses(
    checked: Sequence[typed_reads.Clause | None], before: Mapping[int, list[typed_reads.Clause]]
) -> tuple[typed_reads.Clause, ...]:
    """The clauses in order, what is implicit put in, repeated bindings of a variable made one."""
    conditions: dict[str, list[typed_tree.Expr]] = {}
    places: dict[int, typed_reads.Binding] = {}
    arranged: list[typed_reads.Clause] = []
    for index, clause in enumerate(checked):
        arranged += before[index]
        if isinstance(clause, typed_reads.Binding):
            if clause.variable not in conditions:
                places[len(arranged)] = clause
                arranged.append(clause)
            conditions.setdefault(clause.variable, []).extend(clause.conditions)
        elif clause is not None:
            arranged.append(clause)
    for place, binding in places.items():
        arranged[place] = replace(binding, conditions=tuple(conditions[binding.variable]))
    return tuple(arranged)


def _check_clause(
    context: CheckContext,
    scope: Scope,
    clause: ast.Binding
    | ast.Filter
    | Block
    | ast.Let
    | ast.ForEach
    | ast.ForTable
    | ast.PathClause,
) -> typed_reads.Clause | None:
    match clause:
        case ast.Binding():
            return check_binding(context, scope, clause)
        case ast.Filter():
            condition = _check_filter(context, scope, clause.condition)
            return typed_reads.Condition(condition) if condition is not None else None
        case ast.NotBlock():
            pattern, _ = _check_block(context, scope, clause)
            return typed_reads.ExistsBlock(pattern, is_negated=True)
        case ast.ExistsBlock():
            pattern, _ = _check_block(context, scope, clause)
            return typed_reads.ExistsBlock(pattern, is_negated=False)
        case ast.AggregateBlock():
            return _check_aggregate_block(context, scope, clause)
        case ast.LateralBlock():
            errors_before = context.errors
            pattern, inner = check_pattern(context, clause.clauses, scope)
            context.block_variables.update(inner.own)
            lateral = check_lateral(context, (scope, inner), pattern, clause)
            # Its tail may be what mentions an outer variable.
            _require_mention(context, inner, clause, errors_before=errors_before)
            return lateral
        case ast.ForTable():
            return check_for_table(context, scope, clause)
        case ast.Let() | ast.ForEach() | ast.PathClause():
            context.value_variables.add(clause.variable.name)
            return _check_value_clause(context, scope, clause)
        case _:
            assert_never(clause)


def _check_value_clause(
    context: CheckContext, scope: Scope, clause: ast.Let | ast.ForEach | ast.PathClause
) -> typed_reads.Clause | None:
    match clause:
        case ast.Let():
            return check_let(context, scope, clause)
        case ast.ForEach():
            return check_for_each(context, scope, clause)
        case ast.PathClause():
            return check_path(context, scope, clause)


# ---- filters ----


def _check_filter(
    context: CheckContext, scope: Scope, condition: ast.Expr
) -> typed_tree.Expr | None:
    """A condition; only its conjuncts may be search predicates."""
    conjuncts = _split_conjuncts(condition)
    checked = [(_check_conjunct(context, scope, each), each.span) for each in conjuncts]
    if len(checked) == 1:
        return check_boolean(context, checked[0], "a filter")
    return check_logical(context, "and", checked)


def _split_conjuncts(condition: ast.Expr) -> list[ast.Expr]:
    if not isinstance(condition, ast.And):
        return [condition]
    return [conjunct for operand in condition.operands for conjunct in _split_conjuncts(operand)]


def _check_conjunct(
    context: CheckContext, scope: Scope, conjunct: ast.Expr
) -> typed_tree.Expr | None:
    match conjunct:
        case ast.TextPredicate() as predicate:
            return check_predicate(context, scope, predicate)
        case ast.Comparison(
            ast.CompareOp.EQ, ast.TextPredicate() as predicate, ast.BooleanLiteral(value=True)
        ):
            return check_predicate(context, scope, predicate)
        case _:
            return check_expression(context, conjunct, leaf_of(context, scope, _FILTER))


# ---- blocks ----


def _check_block(
    context: CheckContext, scope: Scope, block: Block
) -> tuple[typed_reads.Pattern, Scope]:
    errors_before = context.errors
    pattern, inner = check_pattern(context, block.clauses, scope)
    context.block_variables.update(inner.own)
    _require_mention(context, inner, block, errors_before=errors_before)
    return pattern, inner


def _require_mention(
    context: CheckContext, inner: Scope, block: Block, *, errors_before: int
) -> None:
    # A wrong clause may be the one that was meant to mention the outer variable.
    if not inner.mentions_outer and context.errors == errors_before:
        code = "T9" if isinstance(block, ast.NotBlock) else "T39"
        context.report_error(
            code,
            block.span,
            "the block mentions no variable bound before it",
            hint="its own clauses must use one; a block nested in it does not count",
        )


def _check_aggregate_block(
    context: CheckContext, scope: Scope, block: ast.AggregateBlock
) -> typed_reads.AggregateBlock | typed_reads.Condition | None:
    if _is_compared_with_row(context, block):
        condition = _check_filter(context, scope, _as_comparison(block))
        return None if condition is None else typed_reads.Condition(condition)
    pattern, inner = _check_block(context, scope, block)
    argument, type_ = None, None
    if block.argument is not None:
        leaf = leaf_of(context, inner, _BLOCK_ARGUMENT)
        argument = check_expression(context, block.argument, leaf)
        type_ = check_aggregate_type(context, block.function, argument, block.argument.span)
    elif block.function is ast.AggregateFunction.COUNT:
        type_ = make_scalar_type(Scalar.I64)
    else:
        context.report_error("T8", block.span, f"{block.function} needs an argument over a block")
    value = _check_bound(context, block, type_)
    if type_ is None or value is None:
        return None
    pattern = inner.attach_hidden(pattern)
    return typed_reads.AggregateBlock(pattern, block.function, argument, block.op, value)


def _is_compared_with_row(context: CheckContext, block: ast.AggregateBlock) -> bool:
    """Whether the other side of a block is a variable of the row, not a parameter."""
    value = block.value
    is_row = isinstance(value, ast.Variable) and value.name not in context.parameters
    return is_row and not context.is_strict


def _as_comparison(block: ast.AggregateBlock) -> ast.Comparison:
    call = None
    if block.argument is not None:
        call = ast.AggregateCall(block.function, block.argument, span=block.argument.span)
    value = ast.BlockValue(block.function, call, block.clauses, block.span)
    return ast.Comparison(block.op, value, block.value, block.span)


def _check_bound(
    context: CheckContext, block: ast.AggregateBlock, type_: PropertyType | None
) -> typed_tree.Expr | None:
    """The right side of a block: one literal, parameter or `now()` of a fitting type."""
    bound = block.value
    value: typed_tree.Expr | None
    if isinstance(bound, ast.Variable) and bound.name in context.parameters:
        value = find_parameter_value(context, bound.name)
    elif isinstance(bound, ast.Now):
        value = typed_tree.NowValue()
    elif isinstance(bound, ast.Literal):
        value = check_literal(context, bound)
    else:
        context.report_error(
            "T40",
            bound.span,
            "a block can only be compared with a literal, a parameter or now()",
            hint=_JOINED_HINT if isinstance(bound, ast.And | ast.Or) else None,
        )
        return None
    if value is None or type_ is None:
        return None
    if not are_compatible(type_.scalar, scalar_of(value)):
        context.report_error(
            "T40",
            bound.span,
            f"{block.function} over this block is {type_}; it cannot be compared with {value.type}",
        )
        return None
    return coerce_literal(value, type_.scalar)


def collect_declared_types(
    context: CheckContext, clauses: Iterable[ast.Clause]
) -> dict[str, str | None]:
    """The node type each binding of a block gives its variable; the first one counts."""
    declared: dict[str, str | None] = {}
    for clause in clauses:
        if isinstance(clause, ast.Binding) and clause.variable.name != ANONYMOUS:
            declared.setdefault(clause.variable.name, find_bound_type(context, clause))
    return declared


def check_binding(
    context: CheckContext, scope: Scope, binding: ast.Binding
) -> typed_reads.Binding | None:
    """`$v: Type { p: value }`; binds the variable unless a clause before has bound it."""
    type_name = find_bound_type(context, binding)
    node = None if type_name is None else context.catalog.nodes[type_name]
    if node is None:
        refuse_types(context, binding)
    name = _bind_variable(context, scope, binding, node)
    if node is None:
        for match in binding.matches:
            check_constant(context, match.value)
        return None
    # Matches of a variable that could not be bound are still checked against the written type.
    conditions = [_check_match(context, name or "", node, match) for match in binding.matches]
    known = tuple(condition for condition in conditions if condition is not None)
    if name is None or len(known) < len(conditions):
        return None
    return typed_reads.Binding(name, node.name, (*require_bound(scope, name), *known))


def _bind_variable(
    context: CheckContext, scope: Scope, binding: ast.Binding, node: NodeType | None
) -> str | None:
    """The name the binding constrains, or None when the variable already is something else."""
    type_name = node.name if node else None
    if binding.variable.name == ANONYMOUS:
        name = context.make_anonymous_name()
        scope.bind(NodeVariable(name, type_name))
        return name
    name = binding.variable.name
    match scope.find(name):
        case None:
            check_new_name(context, binding.variable)
            scope.bind(NodeVariable(name, type_name))
        case EdgeVariable():
            context.report_error(
                "T23", binding.variable.span, f"'${name}' is an edge variable, not a node"
            )
            return None
        case ValueVariable():
            context.report_error("T101", binding.variable.span, f"'${name}' is already a value")
            return None
        case NodeVariable(_, bound_type):
            if bound_type is not None and type_name is not None and bound_type != type_name:
                context.report_error(
                    "T101",
                    binding.type_name.span,
                    f"variable '${name}' is already {bound_type}; it cannot also be {type_name}",
                )
                return None
    return name


def _check_match(
    context: CheckContext, variable: str, node: NodeType, match: ast.PropertyMatch
) -> typed_tree.Expr | None:
    value = check_constant(context, match.value)
    found = node.properties.get(match.property.text)
    if is_type_set(node.name):
        found = find_member_property(context, node.name, match.property, "T2")
    elif found is None:
        owner = Owner(node.name, node.properties, NODE_FIELDS)
        refuse_property(context, "T2", match.property, owner)
    if found is None:
        return None
    target = typed_tree.PropertyValue(variable, found.name, found.type)
    if found.type.is_blob or isinstance(found.type.value, VectorType):
        context.report_error(
            "T3", match.property.span, f"'{found.name}' is {found.type}; it cannot be matched"
        )
        return None
    if value is None:
        return None
    if isinstance(found.type.value, ListType):
        return _check_element(context, target, found.type.value.element, (value, match))
    if not are_compatible(scalar_of(value), found.type.scalar):
        context.report_error(
            code_of(value),
            match.value.span,
            f"cannot match '{found.name}', which is {found.type}, with {value.type}",
        )
        return None
    if not check_enum_member(context, value, Target(found.name, found.type), match.value.span):
        return None
    fitted = coerce_literal(value, found.type.scalar)
    return typed_tree.Compare(ast.CompareOp.EQ, target, fitted, truth_type_of(target, fitted))


def _check_element(
    context: CheckContext,
    target: typed_tree.PropertyValue,
    element: Scalar,
    matched: tuple[typed_tree.Expr, ast.PropertyMatch],
) -> typed_tree.Expr | None:
    value, match = matched
    if not are_compatible(scalar_of(value), element):
        hint = "match one element of the list" if element_of(value) else None
        context.report_error(
            code_of(value),
            match.value.span,
            f"'{target.property}' is {target.type}; it can be matched with one {element}, "
            f"got {value.type}",
            hint=hint,
        )
        return None
    fitted = coerce_literal(value, element)
    return typed_tree.Member(fitted, target, truth_type_of(fitted, target))
