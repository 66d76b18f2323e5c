"""Clauses that the grammar reads in one way and the schema may mean in another.

An edge may be named by a reserved word, or by an operator of texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from omnigraph.lang.source_text import Span
from omnigraph.query import ast
from omnigraph.query.check.check_context import CheckContext


def resolve_ambiguities(
    context: CheckContext, clauses: Sequence[ast.Clause], outer_values: Collection[str]
) -> list[ast.Clause]:
    """The clauses as they are meant, given the edges of the schema and the names of values."""
    own = (_list_value_names(clause) for clause in clauses)
    values = frozenset(chain(context.parameters, outer_values, *own))
    meant: list[ast.Clause] = []
    for clause in clauses:
        traversal = _merge_around_not(context, meant[-1], clause, values) if meant else None
        if traversal is None:
            meant.append(_resolve_clause(context, clause, values))
        else:
            meant[-1] = traversal
    return meant


def _list_value_names(clause: ast.Clause) -> tuple[str, ...]:
    match clause:
        case ast.Let(variable) | ast.ForEach(variable, None):
            return (variable.name,)
        case ast.ForEach(variable, ast.Variable() as position):
            return variable.name, position.name
        case ast.ForTable(variables):
            return tuple(each.name for each in variables[1:])
        case _:
            return ()


def _merge_around_not(
    context: CheckContext, before: ast.Clause, clause: ast.Clause, values: frozenset[str]
) -> ast.Traversal | None:
    """`$a not $b`, two filters for the grammar, where an edge is named by that word."""
    match before, clause:
        case (
            ast.Filter(ast.Variable() as source),
            ast.Filter(ast.Not(ast.Variable() as target)),
        ) if _is_edge(context, "not", (source, target), values):
            span = _find_word_span(context, "not", (source, target))
            message = "'not' is a reserved word; the edge of that name must be quoted"
            context.report_error("T7", span, message, hint='write "not" in quotes')
            edges = ast.NamedEdges((ast.EdgeName("not", span=span),))
            return ast.Traversal(source, None, edges, False, None, target, before.span)
        case _:
            return None


def _is_edge(
    context: CheckContext,
    word: str,
    ends: tuple[ast.Variable, ast.Variable],
    values: frozenset[str],
) -> bool:
    """Whether a word between two variables names an edge: not between values."""
    is_value = any(end.name in values for end in ends)
    return not is_value and context.catalog.find_edge(word) is not None


def _resolve_clause(
    context: CheckContext, clause: ast.Clause, values: frozenset[str]
) -> ast.Clause:
    match clause:
        case ast.Filter(condition):
            return _as_traversal(context, clause, condition, values)
        case ast.Traversal():
            return _as_filter(context, clause, values)
        case _:
            return clause


def _as_traversal(
    context: CheckContext, clause: ast.Filter, condition: ast.Expr, values: frozenset[str]
) -> ast.Clause:
    """An edge named by a reserved word, between two variables that are not parameters."""
    match condition:
        case ast.Membership(ast.Variable() as source, ast.Variable() as target):
            word = "in"
        case ast.And((ast.Variable() as source, ast.Variable() as target)):
            word = "and"
        case ast.Or((ast.Variable() as source, ast.Variable() as target)):
            word = "or"
        case _:
            return clause
    if not _is_edge(context, word, (source, target), values):
        return clause
    span = _find_word_span(context, word, (source, target))
    context.report_deprecated(
        ("T7", "L310"),
        span,
        f"'{word}' is a reserved word; the edge of that name should be quoted",
        hint=f'write "{word}" in quotes',
    )
    edges = ast.NamedEdges((ast.EdgeName(word, span=span),))
    return ast.Traversal(source, None, edges, False, None, target, clause.span)


def _as_filter(
    context: CheckContext, traversal: ast.Traversal, values: frozenset[str]
) -> ast.Clause:
    """A text test of a value, when no edge has the name of the operator."""
    match traversal:
        case ast.Traversal(
            source=source,
            edge_variable=None,
            edges=ast.NamedEdges((ast.EdgeName(text=text, is_quoted=False) as word,)),
            is_undirected=False,
            bounds=None,
            target=target,
        ) if text in set(ast.TextOp) and source.name in values:
            if context.is_strict or context.catalog.find_edge(text) is not None:
                return traversal
            context.collector.report_warning(
                "L317",
                word.span,
                f"there is no edge '{text}', so this is read as a filter",
                hint=f"put the filter in parentheses: '(${source.name} {text} ${target.name})'",
            )
            test = ast.TextTest(ast.TextOp(text), source, target, span=traversal.span)
            return ast.Filter(test, traversal.span)
        case _:
            return traversal


def _find_word_span(
    context: CheckContext, word: str, ends: tuple[ast.Variable, ast.Variable]
) -> Span:
    """Where the word stands between the variables, or all of it if comments stand there too."""
    start, end = ends[0].span.end, ends[1].span.start
    between = context.collector.source.text[start:end]
    if between.strip() != word:
        return ends[0].span.join(ends[1].span)
    at = start + between.index(word)
    return Span(at, at + len(word))
