"""Calls of table functions: `pagerank(nodes: Author, edges: <follows>, damping: 0.9)`."""

from __future__ import annotations

from omnigraph.lang.lexer import TokenKind
from omnigraph.query.ast import (
    EdgeMember,
    EdgeSelection,
    EdgeWay,
    Expr,
    ForTable,
    Name,
    NodeSelection,
    TableArgument,
    TableCall,
    Variable,
)
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.parse_literals import expect_expr
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.query.table_functions import EDGES_OPTION, NODES_OPTION, TableFunction

_FUNCTIONS = frozenset(map(str, TableFunction))
_EDGE = "an edge name"


def is_table_call(cursor: QueryCursor) -> bool:
    """Whether a call of a table function starts here: no other call begins with an option."""
    if cursor.token.kind is not TokenKind.WORD or not cursor.is_mark_at(1, "("):
        return False
    is_option = cursor.is_word_at(2) and cursor.is_mark_at(3, ":")
    return cursor.token.text in _FUNCTIONS or is_option


def parse_for_table(cursor: QueryCursor, start: int, variables: tuple[Variable, ...]) -> ForTable:
    """Read the call after `for $a, $s in`."""
    word = cursor.advance()
    function = Name(word.text, word.span)
    cursor.expect("(")
    arguments: list[TableArgument] = []
    with cursor.enter_arguments():
        while not cursor.is_at(")"):
            arguments.append(_parse_argument(cursor))
            if not cursor.accept(","):
                break
        cursor.expect(")", what=f"',' or ')' to close '{function.text}('")
    call = TableCall(function, tuple(arguments), cursor.build_span(word.start))
    return ForTable(variables, call, cursor.build_span(start))


def _parse_argument(cursor: QueryCursor) -> TableArgument:
    hint = "options have names, as in: edges: knows"
    if not cursor.is_word_at(0) or not cursor.is_mark_at(1, ":"):
        cursor.fail("an option", hint=hint)
    name = cursor.expect_ident("an option")
    cursor.expect(":")
    value: Expr | NodeSelection | EdgeSelection
    if name.text == NODES_OPTION:
        value = _parse_nodes(cursor)
    elif name.text == EDGES_OPTION:
        value = parse_edge_selection(cursor)
    else:
        expect_expr(cursor, "a value")
        value = parse_expr(cursor)
    return TableArgument(name, value, cursor.build_span(name.span.start))


def _parse_nodes(cursor: QueryCursor) -> NodeSelection:
    start = cursor.token.start
    if cursor.accept("*"):
        return NodeSelection((), cursor.build_span(start))
    if not cursor.accept("("):
        name = cursor.expect_type_name("a node type, '(' or '*'")
        return NodeSelection((name,), name.span)
    names = [cursor.expect_type_name("a node type")]
    while cursor.accept("|"):
        names.append(cursor.expect_type_name("a node type"))
    cursor.expect(")", what="'|' or ')' after the node type")
    return NodeSelection(tuple(names), cursor.build_span(start))


def parse_edge_selection(cursor: QueryCursor) -> EdgeSelection:
    """Read the edges of a graph or of a path."""
    start = cursor.token.start
    if cursor.is_at("("):
        cursor.advance()
        members = _parse_members(cursor)
        while cursor.accept("|"):
            members += _parse_members(cursor)
        cursor.expect(")", what="'|' or ')' after the edge name")
    else:
        members = _parse_members(cursor)
    return EdgeSelection(members, cursor.build_span(start))


def _parse_members(cursor: QueryCursor) -> tuple[EdgeMember, ...]:
    """`edge`, `^edge`, `*`, or the edges of `<a | b>`."""
    if cursor.accept("^"):
        return (_parse_edge(cursor, EdgeWay.BACKWARD),)
    if not cursor.accept("<"):
        return (_parse_edge(cursor, EdgeWay.FORWARD),)
    members = [_parse_edge(cursor, EdgeWay.BOTH)]
    while cursor.accept("|"):
        members.append(_parse_edge(cursor, EdgeWay.BOTH))
    cursor.expect(">", what="'|' or '>' after the edge name")
    return tuple(members)


def _parse_edge(cursor: QueryCursor, way: EdgeWay) -> EdgeMember:
    token = cursor.token
    if cursor.accept("*"):
        return EdgeMember("*", way, span=token.span)
    if token.kind is TokenKind.STRING:
        text, span = cursor.expect_string(_EDGE)
        return EdgeMember(text, way, True, span)
    name = cursor.expect_ident(_EDGE)
    return EdgeMember(name.text, way, span=name.span)
