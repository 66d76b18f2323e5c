"""Every connected group of traversals needs a declared variable to start from."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.query import typed
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.scope import ANONYMOUS, Scope
from omnigraph.query.check.traversals import CheckedTraversal


def check_anchors(
    context: CheckContext, scope: Scope, walks: Mapping[int, CheckedTraversal]
) -> dict[int, typed.Binding]:
    """The scans to add before clauses, by clause index: one for each group without an anchor.

    A group is anchored by a binding of its block or by a variable of an outer one. A group with a
    wrong traversal is taken as anchored, because what it was meant to touch is unknown.
    """
    groups = _UnionFind()
    for walk in walks.values():
        groups.join(walk.source, walk.target)
    anchored = {
        groups.find(name)
        for walk in walks.values()
        for name in (walk.source, walk.target)
        if walk.typed is None or name in scope.declared or name not in scope.own
    }
    scans: dict[int, typed.Binding] = {}
    for index, walk in walks.items():
        group = groups.find(walk.source)
        if walk.typed is not None and group not in anchored:
            anchored.add(group)
            scans[index] = _build_scan(context, walk, walk.typed)
    return scans


def _build_scan(
    context: CheckContext, walk: CheckedTraversal, traversal: typed.Traversal
) -> typed.Binding:
    variable = walk.syntax.source
    context.report_deprecated(
        ("T104", "L314"),
        walk.syntax.source.span.join(walk.syntax.target.span),
        f"neither end is declared, so every {traversal.source_type} is scanned"
        if not context.is_strict
        else "the traversal touches no declared variable",
        hint="declare the type of an end"
        if variable.name == ANONYMOUS
        else f"add '${variable.name}: {traversal.source_type}'",
    )
    return typed.Binding(walk.source, traversal.source_type)


class _UnionFind:
    """Names joined into groups, each known by one of its names."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def find(self, name: str) -> str:
        parents = self._parents
        parents.setdefault(name, name)
        while parents[name] != name:
            parents[name] = parents[parents[name]]
            name = parents[name]
        return name

    def join(self, left: str, right: str) -> None:
        self._parents[self.find(left)] = self.find(right)
