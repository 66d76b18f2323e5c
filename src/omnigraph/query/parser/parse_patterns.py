"""Clauses of `match`: bindings, traversals, filters and blocks.

A clause has no keyword of its own, so a few tokens of lookahead decide which one starts here.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.query.ast import (
    AggregateBlock,
    AggregateCall,
    AggregateFunction,
    AllRows,
    AnyEdge,
    Binding,
    BlockValue,
    Clause,
    Comparison,
    EdgeName,
    ExistsBlock,
    Filter,
    ForEach,
    ForTable,
    LateralBlock,
    Let,
    Literal,
    NamedEdges,
    NotBlock,
    Now,
    OrderKey,
    PropertyMatch,
    Traversal,
    Variable,
)
from omnigraph.query.parser.parse_aggregates import (
    AGGREGATES,
    BLOCK_AGGREGATES,
    parse_count,
    parse_having,
    parse_order,
)
from omnigraph.query.parser.parse_edges import parse_bounds, parse_edge_name
from omnigraph.query.parser.parse_expressions import (
    ARITHMETIC,
    BLOCK_WORDS,
    COMPARE_OPS,
    parse_expr,
)
from omnigraph.query.parser.parse_literals import expect_expr, parse_variable
from omnigraph.query.parser.parse_paths import is_path, parse_path
from omnigraph.query.parser.parse_table_calls import is_table_call, parse_for_table
from omnigraph.query.parser.parse_type_sets import parse_type_set
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor
from omnigraph.query.query_dialect_hints import CLAUSE_HINTS, TARGET_HINTS

_CLAUSE = "a clause or '}'"
_MINUS_HINT = "here '-' is a subtraction: put ';' before the clause, or parentheses around it"
# What only an expression can go on with.
_CONTINUATIONS = frozenset({*COMPARE_OPS, *ARITHMETIC, ".", "and", "or", "in", "is"})
_OPERATOR_WORDS = frozenset({"contains", "starts_with"})
# An item and its position.
_ITEM_VARIABLES = 2
# Before a brace these begin an expression or a block.
_LATERAL_WORDS = frozenset({"optional", "each"})
_CONDITION_WORDS = frozenset({"and", "or", "=", "!="})
_VALUE_WORDS = frozenset({"let", "for"})
_BRACED_WORDS = BLOCK_WORDS | _LATERAL_WORDS | {"case"}
# After a variable these continue its expression, or start the next one.
_OPERAND_WORDS = RESERVED | _OPERATOR_WORDS | {"true", "false"}
# Between two variables these cannot be operators, so 0.10 texts meant an edge.
_NEVER_INFIX = frozenset({"is", "null"})
_NAME_KINDS = (TokenKind.WORD, TokenKind.STRING)


def parse_block(cursor: QueryCursor, owner: str) -> tuple[Clause, ...]:
    """Read `{ clause … }` with at least one clause."""
    opening = cursor.token
    errors_before = cursor.error_count
    clauses = cursor.parse_members(owner, _parse_clause)
    if not clauses and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), f"{owner} needs at least one clause")
    return clauses


def _parse_clause(cursor: QueryCursor) -> Clause:
    if cursor.is_at("-") and cursor.previous.text not in ("{", ";"):
        cursor.fail(_CLAUSE, hint=cursor.find_dialect_hint() or _MINUS_HINT)
    clause = _parse_clause_body(cursor)
    cursor.accept(";")
    return clause


def _parse_clause_body(cursor: QueryCursor) -> Clause:
    token = cursor.token
    if token.kind is TokenKind.VARIABLE:
        if cursor.is_mark_at(1, ":"):
            return _parse_binding(cursor)
        if _is_traversal(cursor):
            return _parse_traversal(cursor)
    elif token.kind is TokenKind.WORD:
        if cursor.is_mark_at(1, "{") and (block := _BLOCKS.get(token.text)) is not None:
            return block(cursor)
        if is_path(cursor):
            return parse_path(cursor)
        if token.text in _VALUE_WORDS and cursor.peek().kind is TokenKind.VARIABLE:
            return _parse_value_clause(cursor)
        if token.text in BLOCK_AGGREGATES and _is_aggregate_block(cursor):
            return _parse_compared_block(cursor)
    if token.text in CLAUSE_HINTS:
        cursor.fail(_CLAUSE, hint=CLAUSE_HINTS[token.text])
    expect_expr(cursor, _CLAUSE)
    condition = parse_expr(cursor)
    return Filter(condition, cursor.build_span(token.start))


# ---- bindings and blocks ----


def _parse_binding(cursor: QueryCursor) -> Binding:
    variable = parse_variable(cursor)
    cursor.expect(":")
    type_name, members = parse_type_set(cursor)
    matches: tuple[PropertyMatch, ...] = ()
    if cursor.is_at("{"):
        matches = cursor.parse_members(f"'{type_name.text}'", _parse_property_match)
    span = cursor.build_span(variable.span.start)
    return Binding(variable, type_name, matches, members, span)


def _parse_property_match(cursor: QueryCursor) -> PropertyMatch:
    name = cursor.expect_ident("a property name or '}'")
    cursor.expect(":")
    value = parse_expr(cursor)
    span = cursor.build_span(name.span.start)
    if not cursor.is_at("}"):
        cursor.expect(",", what="',' or '}'")
    return PropertyMatch(name, value, span)


def _parse_not(cursor: QueryCursor) -> NotBlock:
    start = cursor.advance().start
    clauses = parse_block(cursor, "'not'")
    return NotBlock(clauses, cursor.build_span(start))


def _parse_exists(cursor: QueryCursor) -> ExistsBlock | Filter:
    start = cursor.token.start
    closer = cursor.closer_of(cursor.at + 1)
    if closer is not None and cursor.mode is Mode.LENIENT:
        after = cursor.peek(closer + 1 - cursor.at).text
        if after in _CONDITION_WORDS:
            return Filter(parse_expr(cursor), cursor.build_span(start))
    cursor.advance()
    clauses = parse_block(cursor, "'exists'")
    return ExistsBlock(clauses, cursor.build_span(start))


def _parse_lateral(cursor: QueryCursor) -> LateralBlock:
    word = cursor.advance()
    cursor.require_lenient(word.span, f"'{word.text}'")
    clauses = parse_block(cursor, f"'{word.text}'")
    block_span = cursor.build_span(word.start)
    having, _ = parse_having(cursor, parse_expr)
    order: tuple[OrderKey, ...] = ()
    if cursor.is_at("order") and cursor.is_mark_at(1, "{"):
        cursor.advance()
        order = parse_order(cursor, parse_expr)
    limit, _ = parse_count(cursor, "limit")
    offset, _ = parse_count(cursor, "offset")
    is_optional = word.text == "optional"
    span = cursor.build_span(word.start)
    return LateralBlock(clauses, is_optional, order, limit, offset, having, span, block_span)


_BLOCKS: dict[str, Callable[[QueryCursor], Clause]] = {
    "not": _parse_not,
    "exists": _parse_exists,
    "optional": _parse_lateral,
    "each": _parse_lateral,
}


def _parse_value_clause(cursor: QueryCursor) -> Let | ForEach | ForTable:
    word = cursor.advance()
    cursor.require_lenient(word.span, f"'{word.text}'")
    variable = parse_variable(cursor)
    if word.text == "let":
        cursor.expect("=", what="'=' and the value")
        expect_expr(cursor, "a value")
        value = parse_expr(cursor)
        return Let(variable, value, cursor.build_span(word.start))
    variables = [variable]
    while cursor.accept(","):
        variables.append(parse_variable(cursor, "the next variable"))
    cursor.expect("in", what="'in' and a list, or a table function")
    if is_table_call(cursor):
        return parse_for_table(cursor, word.start, tuple(variables))
    if len(variables) > _ITEM_VARIABLES:
        span = variables[_ITEM_VARIABLES].span
        cursor.refuse(span, "the items of a list have a position, and nothing more")
    expect_expr(cursor, "a list")
    items = parse_expr(cursor)
    position = None if len(variables) == 1 else variables[1]
    return ForEach(variable, position, items, cursor.build_span(word.start))


def _is_value_clause(cursor: QueryCursor) -> bool:
    """`$flag let $x = …`, `$flag for $x in …`: after a filter the next clause begins."""
    if is_path(cursor, 1):
        return True
    marks = {"let": ("=",), "for": ("in", ",")}.get(cursor.peek().text, ())
    return cursor.peek(2).kind is TokenKind.VARIABLE and cursor.peek(3).text in marks


def _is_aggregate_block(cursor: QueryCursor) -> bool:
    if cursor.is_mark_at(1, "{"):
        return True
    closer = cursor.closer_of(cursor.at + 1) if cursor.is_mark_at(1, "(") else None
    return closer is not None and cursor.is_mark_at(closer + 1 - cursor.at, "{")


def _parse_compared_block(cursor: QueryCursor) -> AggregateBlock | Filter:
    """A block that is compared with a constant, or any other condition that begins with one."""
    if cursor.mode is Mode.STRICT:
        return _parse_aggregate_block(cursor)
    start = cursor.token.start
    condition = parse_expr(cursor)
    span = cursor.build_span(start)
    if isinstance(condition, BlockValue):
        cursor.fail("a comparison such as '>= 1' after the block")
    match condition:
        case Comparison(op, BlockValue(AggregateFunction() as function, call, clauses), value) if (
            _is_plain(call) and isinstance(value, Literal | Variable | Now)
        ):
            argument = None if call is None else call.argument
            return AggregateBlock(function, argument, clauses, op, value, span)
        case _:
            return Filter(condition, span)


def _is_plain(call: AggregateCall | None) -> bool:
    """Whether the reference language has an aggregate in this form."""
    return call is None or (
        call.function in BLOCK_AGGREGATES
        and not (call.is_distinct or isinstance(call.argument, AllRows))
    )


def _parse_aggregate_block(cursor: QueryCursor) -> AggregateBlock:
    word = cursor.advance()
    argument = None
    if cursor.accept("("):
        with cursor.enter_nesting():
            argument = parse_expr(cursor)
        cursor.expect(")")
    clauses = parse_block(cursor, f"'{word.text}'")
    op = COMPARE_OPS.get(cursor.token.text)
    if op is None:
        cursor.fail("a comparison such as '>= 1' after the block")
    cursor.advance()
    value = parse_expr(cursor)
    function = AGGREGATES[word.text]
    return AggregateBlock(function, argument, clauses, op, value, cursor.build_span(word.start))


# ---- traversals ----


def _is_traversal(cursor: QueryCursor) -> bool:
    second = cursor.peek()
    match second.kind:
        case TokenKind.VARIABLE:
            # `$flag $x: Person` is a filter and a binding: an edge name is never upper-case.
            return cursor.is_mark_at(2, ":") and not cursor.peek(3).text[:1].isupper()
        case TokenKind.PUNCTUATION:
            return _is_selection(cursor, second.text)
        case TokenKind.STRING:
            return cursor.peek(_find_after_bounds(cursor)).kind is TokenKind.VARIABLE
        case TokenKind.WORD:
            return _is_edge_word(cursor, second.text)
        case _:
            return False


def _is_selection(cursor: QueryCursor, mark: str) -> bool:
    if mark == "*":
        return not _is_product(cursor)
    name = cursor.peek(2)
    if mark == "(":
        return name.kind in _NAME_KINDS and (cursor.is_mark_at(3, "|") or _is_lone_name(cursor))
    if mark == "<":
        is_name = name.kind in _NAME_KINDS or name.text == "*"
        return is_name and (cursor.is_mark_at(3, ">", "|") or _is_unclosed_name(cursor))
    return False


def _is_product(cursor: QueryCursor) -> bool:
    """`$a * 2`, `$a * $b.n`, `$a * $b > 2`: all other forms of it are a wildcard."""
    factor = cursor.peek(2)
    if factor.kind is not TokenKind.VARIABLE:
        return factor.text != "{"
    after = cursor.peek(3).text
    is_infix = after in _OPERATOR_WORDS and not cursor.is_mark_at(4, "(")
    return after in _CONTINUATIONS or is_infix


def _is_lone_name(cursor: QueryCursor) -> bool:
    """`$a (edge) $b`: no value is called by a bare name, so an alternation was begun."""
    is_value = cursor.peek(2).text in ("true", "false")
    return not is_value and cursor.is_mark_at(3, ")") and cursor.peek(4).kind is TokenKind.VARIABLE


def _is_unclosed_name(cursor: QueryCursor) -> bool:
    """`$a <edge $b`: no value is called by a bare name, so the bracket was not closed."""
    name = cursor.peek(2)
    is_bare = name.kind is TokenKind.WORD and name.text not in _OPERAND_WORDS
    return is_bare and cursor.peek(3).kind is TokenKind.VARIABLE


def _is_edge_word(cursor: QueryCursor, word: str) -> bool:
    if _is_value_clause(cursor):
        return False
    target = _find_after_bounds(cursor)
    is_bounded = target > 2
    if cursor.peek(target).kind is not TokenKind.VARIABLE:
        # Nothing else starts like this, so a traversal is what was meant.
        is_call = cursor.is_mark_at(2, "(") or (cursor.is_mark_at(2, "{") and word in _BRACED_WORDS)
        return not is_call and word not in _OPERAND_WORDS
    if word in RESERVED:
        is_edge = word in _NEVER_INFIX and not cursor.is_mark_at(target + 1, ".")
        return is_edge or (is_bounded and word != "not")
    if word in _OPERATOR_WORDS and not is_bounded:
        after = cursor.peek(target + 1)
        return after.text not in (".", "and", "or")
    return True


def _find_after_bounds(cursor: QueryCursor) -> int:
    """How far ahead the token after an edge name and its optional bounds is."""
    starts = (
        cursor.is_mark_at(2, "{")
        and cursor.peek(3).kind is TokenKind.INTEGER
        and cursor.is_mark_at(4, ",")
    )
    if not starts:
        return 2
    closing = 6 if cursor.peek(5).kind is TokenKind.INTEGER else 5
    return closing + 1 if cursor.is_mark_at(closing, "}") else 2


def _parse_traversal(cursor: QueryCursor) -> Traversal:
    source = parse_variable(cursor)
    edge_variable = None
    if cursor.token.kind is TokenKind.VARIABLE:
        edge_variable = parse_variable(cursor)
        cursor.expect(":")
    edges, is_undirected = _parse_edges(cursor)
    bounds = parse_bounds(cursor) if cursor.is_at("{") else None
    target = _parse_target(cursor)
    span = cursor.build_span(source.span.start)
    return Traversal(source, edge_variable, edges, is_undirected, bounds, target, span)


def _parse_target(cursor: QueryCursor) -> Variable:
    what = "the variable the traversal leads to"
    if cursor.token.text in TARGET_HINTS:
        cursor.fail(what, hint=TARGET_HINTS[cursor.token.text])
    target = parse_variable(cursor, what)
    if cursor.is_at("."):
        cursor.refuse(
            cursor.token.span,
            "a traversal leads to a variable, not to a property",
            hint=f"end the traversal with ${target.name} and filter in a clause of its own",
        )
    return target


def _parse_edges(cursor: QueryCursor) -> tuple[NamedEdges | AnyEdge, bool]:
    if cursor.is_at("*"):
        return AnyEdge(cursor.advance().span), False
    if cursor.accept("<"):
        if cursor.is_at("*"):
            edges: NamedEdges | AnyEdge = AnyEdge(cursor.advance().span)
        else:
            edges = NamedEdges(_parse_alternatives(cursor))
        cursor.expect(">", what="'|' or '>' after the edge name")
        return edges, True
    if cursor.accept("("):
        names = _parse_alternatives(cursor)
        if len(names) == 1:
            cursor.fail("'|' and another edge name", hint="a single edge name stands bare")
        cursor.expect(")", what="'|' or ')' after the edge name")
        return NamedEdges(names), False
    return NamedEdges((parse_edge_name(cursor),)), False


def _parse_alternatives(cursor: QueryCursor) -> tuple[EdgeName, ...]:
    names = [parse_edge_name(cursor)]
    while cursor.accept("|"):
        names.append(parse_edge_name(cursor))
    return tuple(names)
