"""Variables, and which of them can be seen where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.query import ast, typed
from omnigraph.query.check.context import CheckContext

ANONYMOUS = "_"
_RESERVED_PREFIX = "__"


@dataclass(frozen=True, slots=True)
class NodeVariable:
    """A node variable; it has no type when the clause that gives it one is wrong."""

    name: str
    type_name: str | None


@dataclass(frozen=True, slots=True)
class EdgeVariable:
    """An edge variable and the types its edges may have, or None when its clause is wrong."""

    name: str
    edge_types: tuple[str, ...] | None


Bound = NodeVariable | EdgeVariable


class Scope:
    """The variables of one block, in order of appearance, inside those of the blocks around it.

    `declared` are the node types of the bindings of the whole block, known before its clauses are
    read; None where the type is unknown. A variable of an outer block can be seen only if a clause
    before this block has bound it.
    """

    def __init__(self, declared: Mapping[str, str | None], outer: Scope | None = None) -> None:
        self.declared = declared
        self.outer = outer
        self.mentions_outer = False
        self.own: dict[str, Bound] = {}

    def find(self, name: str) -> Bound | None:
        """The variable of a name, if a clause has bound it; remembers a look at outer blocks."""
        if name in self.own:
            return self.own[name]
        found = self.outer.peek(name) if self.outer else None
        self.mentions_outer = self.mentions_outer or found is not None
        return found

    def peek(self, name: str) -> Bound | None:
        """The variable of a name, without counting as a mention."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.outer
        return None

    def bind(self, variable: Bound) -> None:
        """Add a variable to this block."""
        self.own[variable.name] = variable

    def is_declared(self, name: str) -> bool:
        """Whether a binding gives the name its type, in this block or in one around it."""
        scope: Scope | None = self
        while scope is not None:
            # A binding of an outer block counts only once its variable can be seen.
            if name in scope.declared and (scope is self or name in scope.own):
                return True
            if name in scope.own:
                return False
            scope = scope.outer
        return False

    def list_nodes(self) -> tuple[tuple[str, str], ...]:
        """The node variables of this block with their types."""
        return tuple(
            (variable.name, variable.type_name)
            for variable in self.own.values()
            if isinstance(variable, NodeVariable) and variable.type_name is not None
        )

    def list_edges(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The edge variables of this block with the types they may have."""
        return tuple(
            (variable.name, variable.edge_types)
            for variable in self.own.values()
            if isinstance(variable, EdgeVariable) and variable.edge_types is not None
        )

    def iter_names(self) -> Iterator[str]:
        """Every name that can be seen from here and that a text can spell."""
        scope: Scope | None = self
        while scope is not None:
            yield from (name for name in scope.own if not name.startswith(typed.ANONYMOUS_PREFIX))
            scope = scope.outer


def check_new_name(context: CheckContext, variable: ast.Variable) -> None:
    """Report a variable name that is reserved, or that a parameter has too."""
    check_reserved(context, variable)
    name = variable.name
    if name in context.parameters and context.is_first("clash", name):
        context.report_deprecated(
            ("T106", "L315"),
            variable.span,
            f"'${name}' is a parameter and a variable; expressions mean the parameter",
            hint="rename one of them",
        )


def check_reserved(context: CheckContext, variable: ast.Variable) -> None:
    """Report a variable name that is reserved."""
    name = variable.name
    if name.startswith(_RESERVED_PREFIX) and context.is_first("reserved", name):
        context.report_error(
            "T100",
            variable.span,
            f"variable '${name}' is reserved: names starting with '__' belong to the system",
        )
