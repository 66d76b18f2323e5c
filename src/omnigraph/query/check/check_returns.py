"""The items of `return`: their values, names and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_aggregates import (
    bind_to_groups,
    check_aggregate_call,
    check_aggregate_type,
    has_aggregate,
    is_row_reader,
)
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    LeafExpr,
    LeafRules,
    Operator,
    Refusal,
    check_expression,
    leaf_of,
    refuse_leaf,
)
from omnigraph.query.check.check_search import check_rank
from omnigraph.query.check.variable_scope import Scope, read_edge
from omnigraph.query.tree_walk import map_children, variables_of

_WORD = Refusal(
    "T102",
    "is not a value here",
    "a variable begins with '$'; 'order' and 'limit' stand after the braces of 'return'",
)
_ITEM = LeafRules(
    word=_WORD,
    aggregate=Refusal("T9", "an aggregate must be a whole item of 'return'"),
    predicate=Refusal("T35", "a search predicate cannot be returned", "filter by it in 'match'"),
    rank=Refusal("T33", "a score can only be returned as a whole item"),
)
_ARGUMENT = LeafRules(
    word=_WORD,
    aggregate=Refusal("T8", "an aggregate cannot take an aggregate"),
    predicate=_ITEM.predicate,
    rank=Refusal("T32", "a rank call cannot stand inside an aggregate"),
)


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """A projection with the name of its column and its value; None where they are wrong."""

    name: str | None
    value: typed_tree.Expr | None
    syntax: ast.Projection

    @property
    def alias(self) -> str | None:
        """The name that the text gives the column."""
        return None if self.syntax.alias is None else self.syntax.alias.text

    @property
    def is_score(self) -> bool:
        """Whether the projection is a rank call."""
        return isinstance(self.syntax.value, ast.RankCall)


AliasedItems = Mapping[str, ReturnItem]


@dataclass(frozen=True, slots=True)
class ReturnItems:
    """Everything a query returns; it aggregates as soon as one item is an aggregate."""

    all: tuple[ReturnItem, ...]
    is_aggregated: bool

    def index_by_alias(self) -> AliasedItems:
        """The items by the names that the text gives them."""
        return {item.alias: item for item in reversed(self.all) if item.alias is not None}

    def index_by_value(self) -> Mapping[typed_tree.Expr, typed_tree.ColumnValue]:
        """The columns by their values, scores aside."""
        return {
            item.value: typed_tree.ColumnValue(item.name, item.value.type)
            for item in reversed(self.all)
            if item.name is not None
            and item.value is not None
            and not item.is_score
            and (variables_of(item.value) or has_aggregate(item.value))
        }

    def build_columns(self) -> tuple[typed_reads.Column, ...]:
        """The columns of the items that are right."""
        return tuple(
            typed_reads.Column(item.name, item.value, item.value.type, item.alias)
            for item in self.all
            if item.name is not None and item.value is not None
        )


def check_items(
    context: CheckContext,
    scope: Scope,
    projections: tuple[ast.Projection, ...],
    *,
    is_grouped: bool = False,
) -> ReturnItems:
    """Check every projection; scores are compared with the order later.

    Rows that are grouped, as those of `distinct`, are the groups of everything that is returned.
    """
    is_aggregated = is_grouped or any(is_over_rows(each.value) for each in projections)
    items: list[ReturnItem] = []
    aliased: dict[str, ReturnItem] = {}
    for projection in projections:
        value = _check_value(context, scope, projection.value, aliased)
        if value is not None and not _is_returnable(context, projection, value, is_aggregated):
            value = None
        item = ReturnItem(_resolve_name(context, projection), value, projection)
        items.append(item)
        if item.alias is not None:
            aliased.setdefault(item.alias, item)
    _check_distinct(context, items)
    found = ReturnItems(tuple(items), is_aggregated)
    return _bind_computed(context, found) if is_aggregated else found


def is_over_rows(expr: ast.Expr) -> bool:
    """Whether an aggregate stands anywhere in an expression."""
    if isinstance(expr, ast.AggregateCall):
        return True
    if not isinstance(expr, Operator | ast.Computation):
        return False
    waiting: list[object] = [getattr(expr, name) for name in expr.__slots__]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif isinstance(part, Operator | ast.Computation | ast.AggregateCall) and is_over_rows(
            part
        ):
            return True
    return False


def _bind_computed(context: CheckContext, items: ReturnItems) -> ReturnItems:
    """The items, of which those that are computed over aggregates read keys from their columns."""
    columns = items.index_by_value()
    bound: list[ReturnItem] = []
    for item in items.all:
        value = item.value
        is_computed = (
            value is not None
            and not isinstance(value, typed_tree.AggregateValue)
            and has_aggregate(value)
        )
        if value is not None and is_computed:
            value = map_children(value, lambda child: bind_to_groups(child, columns))
            if is_row_reader(value):
                context.report_error(
                    "T9",
                    item.syntax.value.span,
                    "beside an aggregate stand only constants and what the rows are grouped by",
                    hint="return what it reads, so that rows are grouped by it",
                )
                value = None
        bound.append(replace(item, value=value))
    return replace(items, all=tuple(bound))


def check_aggregate(
    context: CheckContext, scope: Scope, call: ast.AggregateCall, aliases: AliasedItems
) -> typed_tree.AggregateValue | None:
    """`count(e)` and the like."""
    match call.argument:
        case ast.Identifier(name) as alias if name in aliases:
            _refuse_alias(context, call.function, alias, aliases[name])
            return None

    def check(expr: ast.Expr) -> typed_tree.Expr | None:
        return _check_in_position(context, scope, expr, (_ARGUMENT, aliases))

    return check_aggregate_call(context, call, check, takes_nodes=not context.is_strict)


def _refuse_alias(
    context: CheckContext, function: ast.AggregateFunction, alias: ast.Identifier, item: ReturnItem
) -> None:
    """An aggregate over an alias: what it stands for decides which rule it breaks first."""
    errors = context.errors
    match item.syntax.value:
        case ast.AggregateCall():
            refuse_leaf(context, _ARGUMENT.aggregate, alias)
        case ast.Nearest() | ast.Bm25() | ast.Rrf():
            refuse_leaf(context, _ARGUMENT.rank, alias)
        case _:
            check_aggregate_type(context, function, item.value, alias.span)
    if context.errors == errors:
        _refuse_repeated_alias(context, alias)


def _refuse_repeated_alias(context: CheckContext, alias: ast.Identifier) -> None:
    context.report_error("T36", alias.span, f"alias '{alias.name}' cannot be returned again")


def default_name_of(expr: ast.Expr) -> str | None:
    """The name of a column without alias; None when it needs one."""
    match expr:
        case ast.PropertyAccess(variable, property_):
            return f"{variable.name}.{property_.text}"
        case ast.SystemAccess(variable, field):
            return f"{variable.name}.@{field.text}"
        case ast.Variable(name):
            return name
        case ast.Now():
            return typed_tree.NOW_NAME
        case ast.AggregateCall(argument=argument):
            return default_name_of(argument)
        case ast.Nearest(target):
            return f"{target.variable.name}._distance"
        case ast.Bm25(ast.PropertyAccess(variable)):
            return f"{variable.name}._score"
        case ast.Rrf((ast.Nearest(target) | ast.Bm25(ast.PropertyAccess() as target), *_)):
            return f"{target.variable.name}._rrf"
        case _:
            return "literal" if isinstance(expr, ast.Literal) else None


def _check_value(
    context: CheckContext, scope: Scope, expr: ast.Expr, aliases: AliasedItems
) -> typed_tree.Expr | None:
    match expr:
        case ast.AggregateCall():
            return check_aggregate(context, scope, expr, aliases)
        case ast.Nearest() | ast.Bm25() | ast.Rrf():
            return check_rank(context, scope, expr)
        case ast.Variable(name) if not context.is_strict and name not in context.parameters:
            edge = read_edge(scope, name)
            return edge or _check_in_position(context, scope, expr, (_ITEM, aliases))
        case _:
            return _check_in_position(context, scope, expr, (_ITEM, aliases))


def _check_in_position(
    context: CheckContext, scope: Scope, expr: ast.Expr, where: tuple[LeafRules, AliasedItems]
) -> typed_tree.Expr | None:
    position, aliases = where
    refuse_or_read = leaf_of(context, scope, position)

    def leaf(leaf_expr: LeafExpr) -> typed_tree.Expr | None:
        match leaf_expr:
            case ast.Identifier(name) as alias if name in aliases:
                _refuse_repeated_alias(context, alias)
                return None
            case ast.Identifier(name, span) if scope.peek(name) or name in context.parameters:
                message = f"'{name}' is not a value here"
                context.report_error("T102", span, message, hint=f"write '${name}'")
                return None
            case ast.AggregateCall() if position is _ITEM and not context.is_strict:
                return check_aggregate(context, scope, leaf_expr, aliases)
            case _:
                return refuse_or_read(leaf_expr)

    return check_expression(context, expr, leaf)


def _is_returnable(
    context: CheckContext, projection: ast.Projection, value: typed_tree.Expr, is_aggregated: bool
) -> bool:
    if not isinstance(value.type, typed_tree.NodeObject) and value.type.is_blob:
        context.report_error("T24", projection.value.span, "a Blob cannot be returned")
        return False
    is_key = isinstance(
        projection.value,
        ast.AggregateCall | ast.PropertyAccess | ast.SystemAccess | ast.Variable,
    ) or not (context.is_strict or isinstance(projection.value, ast.RankCall))
    if is_aggregated and not is_key:
        context.report_error(
            "T9",
            projection.value.span,
            "only properties, system fields and variables can stand beside an aggregate"
            if context.is_strict
            else "a score is the same for no group of rows",
        )
        return False
    return True


def _resolve_name(context: CheckContext, projection: ast.Projection) -> str | None:
    if projection.alias is not None:
        return projection.alias.text
    name = default_name_of(projection.value)
    if name is None and _is_operator(projection.value):
        context.report_error(
            "T43", projection.value.span, "a computed result needs an alias: 'as name'"
        )
    return name


def _is_operator(expr: ast.Expr) -> bool:
    if isinstance(expr, ast.AggregateCall):
        return _is_operator(expr.argument)
    computed = ast.Computation | ast.AllRows | ast.BlockValue | ast.TextPredicate
    return isinstance(expr, Operator | computed)


def _check_distinct(context: CheckContext, items: list[ReturnItem]) -> None:
    names: set[str] = set()
    for item in items:
        if item.name is not None and item.name in names:
            alias = item.syntax.alias
            context.report_error(
                "T25",
                alias.span if alias else item.syntax.value.span,
                f"result column '{item.name}' is produced by more than one projection",
                hint="give it another name with 'as'",
            )
        if item.name is not None:
            names.add(item.name)
