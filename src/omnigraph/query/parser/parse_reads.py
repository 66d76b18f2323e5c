"""Reads: stages, what is returned, how that is ordered and cut, and how reads are combined."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.query.ast import (
    Clause,
    OrderKey,
    Projection,
    ReadBody,
    SetOperation,
    SetOperator,
)
from omnigraph.query.parser.parse_aggregates import parse_count, parse_having, parse_order
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.parse_literals import expect_expr
from omnigraph.query.parser.parse_pages import parse_after, parse_total
from omnigraph.query.parser.parse_patterns import parse_block
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor
from omnigraph.query.query_dialect_hints import CLAUSE_HINTS

# A read is checked and run stage by stage, each inside the call for the one after it.
STAGES_MAX = 32
SECTION_ORDER = (
    "the sections of a query are match, return, having, order, limit, offset or after, total,"
    " in this order"
)
# What a read may begin with.
READ_STARTS = frozenset({"match", "with", "return", "{"})
_SET_WORDS = frozenset({"union", "intersect", "except"})


@dataclass(frozen=True, slots=True)
class Stages:
    """What stands before a `return`: the last stage that ended in `with`, and clauses after it."""

    input: ReadBody | None = None
    clauses: tuple[Clause, ...] = ()
    match_span: Span = NO_SPAN


def parse_read(cursor: QueryCursor, stages: Stages | None = None) -> ReadBody:
    """Read reads that are combined, or a single one; its stages may have been read before."""
    first = _parse_term(cursor) if stages is None else _parse_return(cursor, stages)
    terms, operators, spans = [first], [], []
    while cursor.is_at(*_SET_WORDS):
        operator, span = _parse_operator(cursor)
        operators.append(operator)
        spans.append(span)
        if len(terms) == STAGES_MAX:
            cursor.refuse(span, f"more than {STAGES_MAX} reads are combined")
        terms.append(_parse_term(cursor))
    is_braced = first.braces_span is not NO_SPAN
    if is_braced and not operators and not _is_at_tail(cursor):
        return first
    body = replace(first, braces_span=NO_SPAN) if is_braced else first
    if operators or (is_braced and first.needs_braces):
        body = ReadBody((), (), input=SetOperation(tuple(terms), tuple(operators), tuple(spans)))
    return _parse_tail(cursor, body)


def parse_stages(cursor: QueryCursor) -> Stages:
    """Read what stands before a `return` or an action."""
    found = Stages()
    count = 0
    while cursor.is_at("match", "with"):
        if cursor.is_at("match"):
            found = _parse_match(cursor, found)
            continue
        count += 1
        if count > STAGES_MAX:
            cursor.refuse(cursor.token.span, f"a query has more than {STAGES_MAX} stages")
        cursor.require_lenient(cursor.token.span, "'with'")
        found = Stages(_parse_tail(cursor, _parse_section(cursor, found, "with")))
    return found


def _parse_match(cursor: QueryCursor, before: Stages) -> Stages:
    """A `match` right after another one adds to its conditions."""
    word = cursor.advance()
    start = word.start
    if before.match_span is not NO_SPAN:
        cursor.require_lenient(word.span, "a second 'match'")
        start = before.match_span.start
    clauses = (*before.clauses, *parse_block(cursor, "'match'"))
    return Stages(before.input, clauses, cursor.build_span(start))


def _parse_term(cursor: QueryCursor) -> ReadBody:
    """A read without a tail, or one in braces."""
    if not cursor.is_at("{"):
        return _parse_return(cursor, parse_stages(cursor))
    opening = cursor.advance()
    cursor.require_lenient(opening.span, "a read in braces")
    with cursor.enter_nesting():
        body = parse_read(cursor)
    cursor.expect("}", what="'}' after the read")
    return replace(body, braces_span=cursor.build_span(opening.start))


def _parse_operator(cursor: QueryCursor) -> tuple[SetOperator, Span]:
    word = cursor.advance()
    cursor.require_lenient(word.span, f"'{word.text}'")
    is_all = word.text == "union" and cursor.accept("all")
    name = "union all" if is_all else word.text
    return SetOperator(name), cursor.build_span(word.start)


def _parse_return(cursor: QueryCursor, stages: Stages) -> ReadBody:
    if not cursor.is_at("return"):
        cursor.fail("'return'", hint=cursor.find_dialect_hint(CLAUSE_HINTS) or SECTION_ORDER)
    if stages.match_span is NO_SPAN:
        cursor.require_lenient(cursor.token.span, "'return' without 'match'")
    return _parse_section(cursor, stages, "return")


def _parse_section(cursor: QueryCursor, stages: Stages, word: str) -> ReadBody:
    """`return { … }` or `with { … }`."""
    start = cursor.advance().start
    is_distinct = cursor.is_at("distinct") and cursor.is_mark_at(1, "{")
    if is_distinct:
        cursor.require_lenient(cursor.advance().span, "'distinct'")
    is_graph = word == "return" and cursor.is_at("graph") and cursor.is_mark_at(1, "{")
    if is_graph:
        cursor.require_lenient(cursor.advance().span, "'graph'")
    return ReadBody(
        stages.clauses,
        _parse_projections(cursor, f"'{word}'"),
        is_distinct=is_distinct,
        is_graph=is_graph,
        input=stages.input,
        match_span=stages.match_span,
        return_span=cursor.build_span(start),
    )


# ---- tails ----


def _is_at_tail(cursor: QueryCursor) -> bool:
    return cursor.is_at("having", "order", "limit", "offset", "after", "total")


def _parse_tail(cursor: QueryCursor, body: ReadBody) -> ReadBody:
    if not _is_at_tail(cursor):
        return body
    having, having_span = parse_having(cursor, parse_expr)
    order: tuple[OrderKey, ...] = ()
    order_span = NO_SPAN
    if cursor.is_at("order"):
        order_start = cursor.advance().start
        order = parse_order(cursor, parse_expr)
        order_span = cursor.build_span(order_start)
    limit, limit_span = parse_count(cursor, "limit")
    offset, offset_span = parse_count(cursor, "offset")
    after, after_span = parse_after(cursor)
    total_span = parse_total(cursor)
    return replace(
        body,
        having=having,
        order=order,
        limit=limit,
        offset=offset,
        after=after,
        has_total=total_span is not NO_SPAN,
        limit_span=limit_span,
        offset_span=offset_span,
        after_span=after_span,
        total_span=total_span,
        having_span=having_span,
        order_span=order_span,
    )


def _parse_projections(cursor: QueryCursor, owner: str) -> tuple[Projection, ...]:
    opening = cursor.token
    errors_before = cursor.error_count
    projections = cursor.parse_members(owner, _parse_projection)
    if not projections and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), f"{owner} needs at least one item")
    return projections


def _parse_projection(cursor: QueryCursor) -> Projection:
    start = cursor.token.start
    if cursor.is_at("-") and cursor.previous.text not in ("{", ","):
        cursor.fail("an item or '}'", hint="here '-' is a subtraction: put ',' before the item")
    expect_expr(cursor, "an item or '}'")
    value = parse_expr(cursor)
    alias = None
    if cursor.accept("as"):
        alias = cursor.expect_ident("an alias after 'as'")
        if alias.text in RESERVED:
            cursor.report_reserved(alias.span, alias.text, role="an alias")
    span = cursor.build_span(start)
    cursor.accept(",")
    return Projection(value, alias, span)
