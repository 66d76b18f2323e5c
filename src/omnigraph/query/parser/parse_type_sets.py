"""Types of a variable: one, several, or all of them; and tests of them."""

from __future__ import annotations

from omnigraph.query.ast import Expr, NullTest, TypeTest, Variable
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.schema.ast import Name
from omnigraph.schema.type_sets import ANY_TYPE

_TYPE = "a node type name after ':'"


def parse_type_set(cursor: QueryCursor) -> tuple[Name, tuple[Name, ...]]:
    """What stands after `$v:`, and the types of `(A | B)` one by one."""
    token = cursor.token
    if cursor.is_at("*"):
        cursor.require_lenient(cursor.advance().span, "'*' for every node type")
        return Name(ANY_TYPE, token.span), ()
    if not cursor.is_at("("):
        return cursor.expect_type_name(_TYPE), ()
    members = _parse_types(cursor)
    span = cursor.build_span(token.start)
    cursor.require_lenient(span, "a binding of several types")
    return Name(f"({' | '.join(each.text for each in members)})", span), members


def parse_is(cursor: QueryCursor, left: Expr, start: int) -> NullTest | TypeTest:
    """Read what follows `is`."""
    is_negated = cursor.accept("not")
    token = cursor.token
    if not (cursor.is_at("(") or token.text[:1].isupper()):
        cursor.expect("null", what="'null'" if is_negated else "'null' or 'not null'")
        return NullTest(left, is_negated, cursor.build_span(start))
    cursor.require_lenient(token.span, "a test of the type")
    types = _parse_types(cursor) if cursor.is_at("(") else (cursor.expect_type_name(_TYPE),)
    span = cursor.build_span(start)
    if not isinstance(left, Variable):
        cursor.refuse(span, "only a variable has a type", hint="write '$v is Type'")
    return TypeTest(left, types, is_negated, span)


def _parse_types(cursor: QueryCursor) -> tuple[Name, ...]:
    """`(A | B)`."""
    cursor.expect("(")
    types = [cursor.expect_type_name("a type name")]
    while cursor.accept("|"):
        types.append(cursor.expect_type_name("a type name after '|'"))
    cursor.expect(")", what="'|' or ')'")
    return tuple(types)
