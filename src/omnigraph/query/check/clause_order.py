"""The order in which the clauses of a block are checked: what a condition reads is bound first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from omnigraph.query import ast

_READERS = ast.Filter | ast.Let | ast.ForEach


def sort_clauses(
    clauses: Sequence[ast.Clause], is_bound: Callable[[str], bool]
) -> list[ast.Clause]:
    """The clauses, with filters and values after the clauses that bind what they read.

    `is_bound` states whether a variable of an outer block has a name. What no clause binds, or
    only one that waits for it in turn, is left for the end: checking it reports the variable.
    """
    binders = [frozenset(iter_bound(each)) for each in clauses]
    unplaced = Counter(name for names in binders for name in names)
    ready: set[str] = set()
    ordered: list[int] = []
    # The clauses that wait for each variable; a clause waits for one at a time.
    blocked: defaultdict[str, list[int]] = defaultdict(list)

    def find_missing(at: int) -> str | None:
        clause = clauses[at]
        names = iter_read(clause) if isinstance(clause, _READERS) else ()
        for name in names:
            if name not in ready and unplaced[name] > (name in binders[at]) and not is_bound(name):
                return name
        return None

    for first in range(len(clauses)):
        waiting = [first]
        while waiting:
            at = waiting.pop(0)
            missing = find_missing(at)
            if missing is not None:
                blocked[missing].append(at)
                continue
            ordered.append(at)
            unplaced.subtract(binders[at])
            for name in binders[at] - ready:
                waiting += blocked.pop(name, ())
            ready |= binders[at]
    left = sorted(at for waiting in blocked.values() for at in waiting)
    return [clauses[at] for at in (*ordered, *left)]


def iter_bound(clause: ast.Clause) -> Iterator[str]:
    """The variables that a clause binds, if nothing has bound them before."""
    match clause:
        case ast.Binding(variable) | ast.Let(variable) | ast.PathClause(variable):
            yield variable.name
        case ast.Traversal(source, edge_variable):
            yield from (source.name, clause.target.name)
            if edge_variable is not None:
                yield edge_variable.name
        case ast.ForEach(variable, position):
            yield from (each.name for each in (variable, position) if each is not None)
        case ast.ForTable(variables):
            yield from (each.name for each in variables)
        case ast.LateralBlock(clauses=clauses):
            for each in clauses:
                yield from iter_bound(each)


def iter_read(clause: _READERS) -> Iterator[str]:
    """The variables that a clause reads, other than inside of a block."""
    match clause:
        case ast.Filter(condition):
            waiting: list[object] = [condition]
        case ast.Let(value=value):
            waiting = [value]
        case ast.ForEach(items=items):
            waiting = [items]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Variable):
            yield part.name
        elif isinstance(part, tuple):
            waiting += part
        elif not isinstance(part, ast.BlockValue):
            waiting += (getattr(part, name) for name in getattr(part, "__slots__", ()))
