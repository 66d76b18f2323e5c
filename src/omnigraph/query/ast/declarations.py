"""Query declarations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.diagnostics.source import NO_SPAN, Span
from omnigraph.query.ast.clauses import Clause
from omnigraph.query.ast.expressions import Expr
from omnigraph.schema.ast import Name
from omnigraph.schema.types import PropertyType


@dataclass(frozen=True, slots=True)
class Projection:
    """An item of `return`."""

    value: Expr
    alias: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


class Direction(StrEnum):
    """A written sort direction."""

    ASC = "asc"
    DESC = "desc"


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An item of `order`; no direction means ascending."""

    value: Expr
    direction: Direction | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ReadBody:
    """`match`, `return`, `order`, `limit`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    limit_span: Span = field(default=NO_SPAN, compare=False)
    match_span: Span = field(default=NO_SPAN, compare=False)
    return_span: Span = field(default=NO_SPAN, compare=False)
    order_span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`p: value` in `insert` or `set`."""

    property: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    condition: Expr
    span: Span = field(default=NO_SPAN, compare=False)


Mutation = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationBody:
    """One or more mutations, done together."""

    mutations: tuple[Mutation, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: Type`; `name` has no `$`."""

    name: Name
    type: PropertyType
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A `query` declaration."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: ReadBody | MutationBody
    description: str | None = None
    instruction: str | None = None
    span: Span = field(default=NO_SPAN, compare=False)
    header_span: Span = field(default=NO_SPAN, compare=False)
    parameters_span: Span = field(default=NO_SPAN, compare=False)
    description_span: Span = field(default=NO_SPAN, compare=False)
    instruction_span: Span = field(default=NO_SPAN, compare=False)
