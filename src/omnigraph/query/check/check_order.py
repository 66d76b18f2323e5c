"""The keys of `order`: the leading rank call, and keys that the rows or the result can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.check_returns import (
    ReturnItem,
    ReturnItems,
    check_aggregate,
    default_name_of,
)
from omnigraph.query.check.check_search import check_rank
from omnigraph.query.check.variable_scope import (
    EdgeVariable,
    Scope,
    ValueVariable,
    check_property,
    check_system,
)
from omnigraph.schema.property_types import ListType, VectorType
from omnigraph.schema.type_sets import is_type_set

_NOW_ALIAS = "now"
_FIRST_ONLY = "a rank call can only be the first order key"
_KEY = LeafRules(
    word=Refusal("T42", "cannot stand inside an order key"),
    aggregate=Refusal("T42", "an aggregate can only be a whole order key"),
    predicate=Refusal("T42", "a search predicate cannot be an order key"),
    rank=Refusal("T42", _FIRST_ONLY),
)


@dataclass(frozen=True, slots=True)
class Order:
    """The leading rank call, if there is one, and the keys after it."""

    rank: typed_tree.Score | None = None
    keys: tuple[typed_reads.OrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class _CheckedKey:
    """A checked key, and whether its value is the same on every row, so that it orders nothing."""

    key: typed_reads.OrderKey
    is_constant: bool


@dataclass(slots=True)
class _OrderScope:
    """What order keys can refer to; `rank` is the leading rank call once it is checked."""

    context: CheckContext
    scope: Scope
    items: ReturnItems
    limit: int | ast.Variable | None
    rank: typed_tree.Score | None = None
    by_name: dict[str, ReturnItem] = field(default_factory=dict)
    by_value: dict[typed_tree.Expr, ReturnItem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in self.items.all:
            if item.name is not None:
                self.by_name.setdefault(item.name, item)
            if item.value is not None:
                self.by_value.setdefault(item.value, item)
        if typed_tree.NOW_NAME in self.by_name:
            self.by_name.setdefault(_NOW_ALIAS, self.by_name[typed_tree.NOW_NAME])


def check_order(
    context: CheckContext, scope: Scope, body: ast.ReadBody, items: ReturnItems
) -> Order:
    """Check the order keys, and the returned scores against the first of them."""
    keys = _OrderScope(context, scope, items, body.limit)
    order = tuple(_resolve_boolean_key(keys, key) for key in body.order)
    call = _find_leading_call(keys, order)
    if call is None:
        _check_scores(keys, None)
        checked = _check_keys(keys, order)
        # One key stays even if it is constant: the rows must still come in the order of their ids.
        return Order(None, _drop_constant_keys(checked) or tuple(key.key for key in checked[:1]))
    if body.is_distinct:
        context.report_error(
            "T42", order[0].span, "distinct rows are ordered by what they return, not by a rank"
        )
    keys.rank = _check_leading(keys, call, order[0])
    rest = order[1:]
    if keys.rank is None:
        rest = tuple(key for key in rest if not _is_score(keys, key.value))
    else:
        _check_scores(keys, keys.rank)
    if isinstance(call, ast.Nearest):
        _check_aliases(keys, rest)
    return Order(keys.rank, _drop_constant_keys(_check_keys(keys, rest)))


def _resolve_boolean_key(keys: _OrderScope, key: ast.OrderKey) -> ast.OrderKey:
    """`true` and `false` are columns where one of that name is returned."""
    match key.value:
        case ast.BooleanLiteral(value, span):
            word = "true" if value else "false"
            return replace(key, value=ast.Identifier(word, span)) if word in keys.by_name else key
        case _:
            return key


# ---- the leading rank call ----


def _find_leading_call(keys: _OrderScope, order: Sequence[ast.OrderKey]) -> ast.RankCall | None:
    """The rank call that leads the order, written there or returned under the name there."""
    first = _resolve_alias(keys, order[0].value) if order else None
    return first if isinstance(first, ast.RankCall) else None


def _resolve_alias(keys: _OrderScope, expr: ast.Expr) -> ast.Expr:
    """The expression of a key, or the returned one that its name stands for."""
    if isinstance(expr, ast.Identifier) and expr.name in keys.by_name:
        return keys.by_name[expr.name].syntax.value
    return expr


def _is_score(keys: _OrderScope, expr: ast.Expr) -> bool:
    return isinstance(_resolve_alias(keys, expr), ast.RankCall)


def _check_leading(
    keys: _OrderScope, call: ast.RankCall, key: ast.OrderKey
) -> typed_tree.Score | None:
    check_rank_limit(keys.context, call, key, has_limit=keys.limit is not None)
    check_rank_direction(keys.context, replace(key, value=call))
    if isinstance(key.value, ast.Identifier):
        value = keys.by_name[key.value.name].value
        assert value is None or isinstance(value, typed_tree.Score)
        return value
    return check_rank(keys.context, keys.scope, call)


def check_rank_limit(
    context: CheckContext, call: ast.RankCall, key: ast.OrderKey, *, has_limit: bool
) -> None:
    """Report an order by a rank of everything that has no limit."""
    if has_limit or isinstance(call, ast.Bm25):
        return
    code, name = ("T17", "nearest") if isinstance(call, ast.Nearest) else ("T21", "rrf")
    context.report_error(
        code, key.value.span, f"ordering by {name}() needs a limit", hint="add 'limit 10'"
    )


def check_rank_direction(context: CheckContext, key: ast.OrderKey) -> bool:
    """Whether a key puts the highest score first, whatever its direction; reports a wrong one."""
    if isinstance(key.value, ast.Nearest):
        if key.direction is ast.Direction.DESC:
            context.report_error("T18", key.span, "nearest() orders nearest first; drop 'desc'")
        return False
    if not isinstance(key.value, ast.RankCall):
        return False
    if key.direction is ast.Direction.ASC:
        context.report_deprecated(
            ("T54", "L313"),
            key.span,
            "a text rank cannot be ascending"
            if context.is_strict
            else "'asc' is ignored: a text rank puts the best match first",
            hint="drop 'asc'",
        )
    return True


def _check_aliases(keys: _OrderScope, order: Sequence[ast.OrderKey]) -> None:
    """Aliases after `nearest` are an error when strict; otherwise they stand for their items."""
    for key in order:
        if isinstance(key.value, ast.Identifier) and key.value.name in keys.by_name:
            keys.context.report_deprecated(
                ("T18", "L318"),
                key.value.span,
                f"alias '{key.value.name}' cannot be combined with nearest() ordering"
                if keys.context.is_strict
                else f"alias '{key.value.name}' orders rows after nearest()",
                hint="write the expression itself",
            )


def _check_scores(keys: _OrderScope, rank: typed_tree.Score | None) -> None:
    for item in keys.items.all:
        if item.is_score and item.value is not None and item.value != rank:
            keys.context.report_error(
                "T33",
                item.syntax.value.span,
                "a returned score must repeat the leading order key",
                hint=f"order by '{keys.context.source_text_of(item.syntax.value.span)}' first",
            )


# ---- ordinary keys ----


def _check_keys(keys: _OrderScope, order: Sequence[ast.OrderKey]) -> tuple[_CheckedKey, ...]:
    checked = [_check_key(keys, key) for key in order]
    return tuple(key for key in checked if key is not None)


def _drop_constant_keys(keys: Sequence[_CheckedKey]) -> tuple[typed_reads.OrderKey, ...]:
    return tuple(key.key for key in keys if not key.is_constant)


def _check_key(keys: _OrderScope, key: ast.OrderKey) -> _CheckedKey | None:
    match key.value:
        case ast.Identifier(name):
            item = keys.by_name.get(name)
            if item is not None:
                return _check_returned_key(keys, key, item)
            _refuse_name(keys, key.value)
            return None
        case ast.Variable() if _is_alias_only(keys, key.value.name):
            _refuse_alias_variable(keys.context, key.value)
            return None
        case ast.Nearest() | ast.Bm25() | ast.Rrf():
            return _check_repeated_score(keys, key, key.value)
        case ast.PropertyAccess() | ast.SystemAccess() if not keys.items.is_aggregated:
            return _check_entity_key(keys, key, key.value)
        case _:
            return _check_equal_key(keys, key)


def _is_alias_only(keys: _OrderScope, name: str) -> bool:
    is_variable = name in keys.context.parameters or keys.scope.find(name) is not None
    return name in keys.by_name and not is_variable


def _refuse_alias_variable(context: CheckContext, variable: ast.Variable) -> None:
    name = variable.name
    hint = f"'{name}' is an alias: write it without '$'"
    context.report_error("T102", variable.span, f"variable '${name}' is not bound", hint=hint)


def _check_entity_key(
    keys: _OrderScope, key: ast.OrderKey, access: ast.PropertyAccess | ast.SystemAccess
) -> _CheckedKey | None:
    value: typed_tree.Expr | None
    if isinstance(access, ast.PropertyAccess):
        value = check_property(keys.context, keys.scope, access)
    else:
        value = check_system(keys.context, keys.scope, access)
    return None if value is None else _build_key(keys, key, value)


def _check_repeated_score(
    keys: _OrderScope, key: ast.OrderKey, call: ast.RankCall
) -> _CheckedKey | None:
    """A rank call after the first key: only one that repeats a returned score can stand there."""
    if any(item.is_score for item in keys.items.all):
        score = check_rank(keys.context, keys.scope, call)
        if score is None:
            return None
        if score in keys.by_value:
            return _check_returned_key(keys, key, keys.by_value[score])
    keys.context.report_error("T42", key.value.span, _FIRST_ONLY)
    return None


def _check_equal_key(keys: _OrderScope, key: ast.OrderKey) -> _CheckedKey | None:
    """A key that must be the same expression as a returned item; the first such item counts.

    A property or a system field may also name the column of an aggregate over it: `count($p.@id)`
    without alias is the column `p.@id`.
    """
    context, scope = keys.context, keys.scope
    if isinstance(key.value, ast.AggregateCall):
        value: typed_tree.Expr | None = check_aggregate(
            context, scope, key.value, keys.items.index_by_alias()
        )
    else:
        value = check_expression(context, key.value, leaf_of(context, scope, _KEY))
    if value is None:
        return None
    item = keys.by_value.get(value)
    if item is None and isinstance(key.value, ast.PropertyAccess | ast.SystemAccess):
        item = keys.by_name.get(default_name_of(key.value) or "")
    is_named = isinstance(key.value, ast.Variable) and isinstance(
        scope.peek(key.value.name), ValueVariable
    )
    is_test = isinstance(key.value, ast.TextPredicate)
    is_computed = isinstance(key.value, ast.Computation | ast.BlockValue) or is_named or is_test
    if item is None and is_computed and not keys.items.is_aggregated:
        return _build_key(keys, key, value)
    if item is None:
        context.report_error(
            "T42",
            key.value.span,
            f"order key '{context.source_text_of(key.value.span)}' is not returned",
            hint="return it, or order by a property"
            if not keys.items.is_aggregated
            else "an aggregated result can only be ordered by what it returns",
        )
        return None
    return _check_returned_key(keys, key, item)


def _check_returned_key(
    keys: _OrderScope, key: ast.OrderKey, item: ReturnItem
) -> _CheckedKey | None:
    value = item.value
    if value is None or item.name is None:
        return None
    if item.is_score:
        return _check_score_key(keys, key, value)
    column = typed_tree.ColumnValue(item.name, value.type) if keys.items.is_aggregated else None
    return _build_key(keys, key, value, column)


def _check_score_key(
    keys: _OrderScope, key: ast.OrderKey, score: typed_tree.Expr
) -> _CheckedKey | None:
    """A returned score after the first key: the leading rank has ordered by it already."""
    if score != keys.rank:
        keys.context.report_error("T42", key.value.span, _FIRST_ONLY)
        return None
    return _CheckedKey(
        typed_reads.OrderKey(score, key.direction is ast.Direction.DESC), is_constant=True
    )


def _build_key(
    keys: _OrderScope,
    key: ast.OrderKey,
    value: typed_tree.Expr,
    column: typed_tree.ColumnValue | None = None,
) -> _CheckedKey | None:
    is_constant = _is_constant(keys, value)
    if not is_constant and not is_sortable(keys.context, key, value):
        return None
    if isinstance(value, typed_tree.NodeValue) and not is_type_set(value.type.type_name):
        # Those of several types are ordered by their types first.
        value = typed_tree.SystemValue(value.variable, typed_tree.SystemName.ID)
    is_descending = key.direction is ast.Direction.DESC
    return _CheckedKey(typed_reads.OrderKey(column or value, is_descending), is_constant)


def _refuse_name(keys: _OrderScope, name: ast.Identifier) -> None:
    hint = keys.context.suggest_similar(name.name, keys.by_name)
    if keys.scope.peek(name.name) is not None:
        hint = f"write '${name.name}.property'"
    keys.context.report_error(
        "T42", name.span, f"nothing returned is called '{name.name}'", hint=hint
    )


def _is_constant(keys: _OrderScope, value: typed_tree.Expr) -> bool:
    """Whether an expression has the same value on every row."""
    match value:
        case (
            typed_tree.Constant()
            | typed_tree.ParameterValue()
            | typed_tree.NowValue()
            | typed_tree.ListOf()
        ):
            return True
        case typed_tree.SystemValue(variable, typed_tree.SystemName.TYPE):
            bound = keys.scope.peek(variable)
            return isinstance(bound, EdgeVariable) and len(bound.edge_types or ()) == 1
        case _:
            return False


def is_sortable(context: CheckContext, key: ast.OrderKey, value: typed_tree.Expr) -> bool:
    """Whether the values of a key have an order."""
    type_ = value.type
    if isinstance(type_, typed_tree.EdgeObject | typed_tree.NodeList):
        context.report_error("T42", key.value.span, f"{type_} values have no order")
        return False
    if isinstance(value, typed_tree.PathValue):
        context.report_error(
            "T42", key.value.span, "paths have no order", hint="order by 'length($p)'"
        )
        return False
    if isinstance(type_, typed_tree.NodeObject):
        return True
    if type_.is_blob:
        context.report_error("T24", key.value.span, "a Blob cannot be ordered")
        return False
    if isinstance(type_.value, ListType | VectorType):
        context.report_error("T7", key.value.span, f"{type_} values have no order")
        return False
    return True
