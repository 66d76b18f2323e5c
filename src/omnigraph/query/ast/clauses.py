"""The clauses of a `match` block."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics.source import NO_SPAN, Span
from omnigraph.query.ast.expressions import AggregateFunction, CompareOp, Expr, Variable
from omnigraph.schema.ast import Name


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`p: value` inside a binding."""

    property: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$v: Type { p: value }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class EdgeName:
    """An edge in a traversal; `is_quoted` when written as a string."""

    text: str
    is_quoted: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class NamedEdges:
    """One name, or an alternation of several."""

    names: tuple[EdgeName, ...]


@dataclass(frozen=True, slots=True)
class AnyEdge:
    """The wildcard `*`."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class HopBounds:
    """`{minimum,maximum}`; a missing maximum is refused by the checker."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$source [$edge:] edges [{m,n}] $target`, or with `<edges>` in both directions."""

    source: Variable
    edge_variable: Variable | None
    edges: NamedEdges | AnyEdge
    is_undirected: bool
    bounds: HopBounds | None
    target: Variable
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """A Boolean expression that must be true."""

    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class NotBlock:
    """`not { … }`: no inner match may exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ExistsBlock:
    """`exists { … }`: some inner match must exist."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateBlock:
    """`count { … } op value` or `sum(e) { … } op value`."""

    function: AggregateFunction
    argument: Expr | None
    clauses: tuple[Clause, ...]
    op: CompareOp
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


Clause = Binding | Traversal | Filter | NotBlock | ExistsBlock | AggregateBlock
