"""Walks without a maximum between nodes that nothing narrows down: they may visit every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from omnigraph.query import ast
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.clause_order import iter_bound, iter_read


def warn_of_open_walks(
    context: CheckContext, clauses: Sequence[ast.Clause], is_bound: Callable[[str], bool]
) -> None:
    """Warn of each path or traversal of a block with no maximum and no narrow end."""
    walks = [each for each in clauses if _is_open(each)]
    if not walks:
        return
    narrow = {name for each in clauses for name in _iter_narrow(each)}
    narrow |= {name for each in clauses for name in iter_bound(each) if is_bound(name)}
    hops = [each for each in clauses if isinstance(each, ast.Traversal) and each not in walks]
    for each in walks:
        ends = frozenset({each.source.name, each.target.name})
        if narrow.isdisjoint(_find_connected(ends, hops)):
            context.collector.report_warning(
                "L324",
                each.span,
                "this walks between all pairs of nodes, over any number of edges",
                hint="narrow down one of its ends, or give it a maximum",
            )


def _is_open(clause: ast.Clause) -> TypeGuard[ast.Traversal | ast.PathClause]:
    if not isinstance(clause, ast.Traversal | ast.PathClause):
        return False
    return clause.bounds is not None and clause.bounds.maximum is None


def _iter_narrow(clause: ast.Clause) -> Iterator[str]:
    """The variables that a clause other than a traversal says something about."""
    match clause:
        case ast.Binding(variable, matches=matches):
            if matches:
                yield variable.name
        case ast.Filter() | ast.Let() | ast.ForEach():
            yield from iter_read(clause)
        case ast.ForTable() | ast.LateralBlock():
            yield from iter_bound(clause)


def _find_connected(ends: frozenset[str], hops: Sequence[ast.Traversal]) -> frozenset[str]:
    """The variables that traversals connect with the ends."""
    found: frozenset[str] = frozenset()
    while found != ends:
        found = ends
        pairs = ({each.source.name, each.target.name} for each in hops)
        ends = found.union(*(pair for pair in pairs if pair & found))
    return found
