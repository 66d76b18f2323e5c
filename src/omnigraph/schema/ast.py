"""The syntax tree of a `.pg` file. Spans do not take part in equality."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.tree_nodes import tree_node
from omnigraph.schema.property_types import Scalar


@tree_node(frozen=True, slots=True)
class Name:
    """A word and its place."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: `value` is decoded; `text` is how it was spelled, or the value of a string."""

    value: str | int | float | bool
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SystemField:
    """`@src` or `@dst` (or another word) inside a constraint; `name` has no `@`."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class RangeBounds:
    """`lo..hi`; a missing side is open. Values are int when they fit 64 bits, else float."""

    low: int | float | None
    high: int | float | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """An expression as one text, and the words in it that may be properties.

    `labels` stand before colons: options of calls, or conditions of a `case`.
    """

    text: str
    names: tuple[str, ...]
    labels: tuple[str, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


ConstraintArgument = RangeBounds | Literal | SystemField | Name | ExpressionText


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, key=value)`."""

    name: Name
    value: Literal | Name | None = None
    options: tuple[tuple[Name, Literal], ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A body constraint such as `@unique(a, b)`; `name` is one of the five constraint names."""

    name: Name
    arguments: tuple[ConstraintArgument, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ScalarSyntax:
    """A base type."""

    scalar: Scalar


@dataclass(frozen=True, slots=True)
class ListSyntax:
    """`[T]`."""

    element: Scalar


@dataclass(frozen=True, slots=True)
class VectorSyntax:
    """`Vector(n)`; the dimension is not checked yet."""

    dimension: int


@dataclass(frozen=True, slots=True)
class EnumSyntax:
    """`enum(a, b)` in source order, duplicates included."""

    values: tuple[Name, ...]


TypeCore = ScalarSyntax | ListSyntax | VectorSyntax | EnumSyntax


@dataclass(frozen=True, slots=True)
class TypeSyntax:
    """A written type."""

    core: TypeCore
    is_nullable: bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Property:
    """`name: type = default merge rule @annotations`."""

    name: Name
    type: TypeSyntax
    annotations: tuple[Annotation, ...] = ()
    merge: Name | None = None
    default: ExpressionText | None = None
    span: Span = field(default=NO_SPAN, compare=False)


Member = Property | Constraint


@dataclass(frozen=True, slots=True)
class Interface:
    """An `interface` declaration."""

    name: Name
    properties: tuple[Property, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Node:
    """A `node` declaration."""

    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    members: tuple[Member, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Cardinality:
    """`@card(minimum..maximum)`; no maximum means unbounded."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Edge:
    """An `edge` declaration."""

    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None
    annotations: tuple[Annotation, ...]
    members: tuple[Member, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Declaration = Interface | Node | Edge


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole file."""

    declarations: tuple[Declaration, ...]
