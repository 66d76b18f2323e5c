"""The catalog: a checked schema, resolved for queries, writers and planners.

Built from a syntax tree by `omnigraph.schema.schema_compiler`. Properties of a node include the
ones it gets from its interfaces. Everything here is plain frozen data in declaration order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final

from omnigraph.schema.property_types import PropertyType, VectorType
from omnigraph.schema.type_sets import is_type_set, list_member_types, merge_types

# The endpoints of an edge as they appear in the property tuples of keys, uniques and indexes.
SOURCE = "@src"
TARGET = "@dst"
_LITERAL: Final = re.compile(r'-?[0-9]+(\.[0-9]+)?|true|false|"([^"\\]|\\.)*"')


class ConstraintKind(StrEnum):
    """What a constraint demands; its value is its spelling after the `@`."""

    KEY = "key"
    UNIQUE = "unique"
    INDEX = "index"
    RANGE = "range"
    CHECK = "check"
    TOGETHER = "together"


class MergeRule(StrEnum):
    """What a merge makes of a value that both sides changed; its value is its spelling.

    A set keeps what either side added and loses what either removed, a counter adds up what both
    counted, and the greater or the lesser of two values wins.
    """

    SET = "set"
    COUNTER = "counter"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class AnnotationValue:
    """An annotation as data: strings decoded, numbers, Booleans and words as spelled."""

    name: str
    value: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """Where the text of a stored vector comes from, and the model that made it."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Default:
    """The expression whose value a new entity gets that is given none, and what it reads."""

    text: str
    members: tuple[str, ...] = ()

    @property
    def is_literal(self) -> bool:
        """Whether it is one literal, which is the same for every entity and never null."""
        return _LITERAL.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class Property:
    """A property in effect on a type."""

    name: str
    type: PropertyType
    # Every annotation but `@rename_from`, `@embed`, `@key`, `@unique` and `@index`, in source
    # order.
    annotations: tuple[AnnotationValue, ...] = ()
    # The keys, uniques and indexes written on the property itself.
    property_constraints: frozenset[ConstraintKind] = frozenset()
    embed: Embed | None = None
    rename_from: str | None = None
    # The interfaces this property satisfies, sorted; `is_injected` when the node does not write it.
    interfaces: tuple[str, ...] = ()
    is_injected: bool = False
    merge: MergeRule | None = None
    default: Default | None = None

    @property
    def must_be_given(self) -> bool:
        """Whether a new entity needs a value that nothing else gives it."""
        return not self.type.is_nullable and self.default is None


def may_reembed(old: Property, new: Property) -> bool:
    """Whether models make the vectors of a property, before a change and after it."""
    return all(
        isinstance(each.type.value, VectorType)
        and each.embed is not None
        and each.embed.model is not None
        for each in (old, new)
    )


@dataclass(frozen=True, slots=True)
class Range:
    """`@range`: inclusive numeric bounds, None where open."""

    property: str
    minimum: int | float | None
    maximum: int | float | None


@dataclass(frozen=True, slots=True)
class Check:
    """`@check`: an unanchored RE2 pattern."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Condition:
    """`@check` of an expression over properties of the entity, which is never false."""

    text: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of a type; tuples name properties, or `@src` and `@dst` on edges."""

    # Sorted by name in the tuple of a node key; an edge key starts with `@src`, `@dst`.
    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    # The constraints with members written in the body (not on a property), with their members.
    body: tuple[tuple[ConstraintKind, tuple[str, ...]], ...] = ()
    # Properties that a merge takes as one value.
    together: tuple[tuple[str, ...], ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class InterfaceType:
    """A checked interface."""

    name: str
    properties: Mapping[str, Property]


@dataclass(frozen=True)
class NodeType:
    """A checked node type."""

    name: str
    properties: Mapping[str, Property]
    constraints: Constraints = Constraints()
    annotations: tuple[AnnotationValue, ...] = ()
    implements: tuple[str, ...] = ()
    rename_from: str | None = None

    @property
    def key(self) -> tuple[str, ...] | None:
        """The key properties, or None for a keyless type."""
        return self.constraints.key


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges a source may have; no maximum means unbounded."""

    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True)
class EdgeType:
    """A checked edge type; `source` and `target` are node type names."""

    name: str
    source: str
    target: str
    properties: Mapping[str, Property]
    cardinality: Cardinality = Cardinality()
    constraints: Constraints = Constraints()
    annotations: tuple[AnnotationValue, ...] = ()
    rename_from: str | None = None

    @property
    def key(self) -> tuple[str, ...] | None:
        """The key members, `@src` and `@dst` first, or None for a keyless type."""
        return self.constraints.key

    @property
    def is_symmetric(self) -> bool:
        """Whether both ends have the same type, so that hops can be chained."""
        return self.source == self.target


class NodeTypes(dict[str, NodeType]):
    """Node types by name; a set of them is found by its name too, and is not listed."""

    def __missing__(self, name: str) -> NodeType:
        if not is_type_set(name):
            raise KeyError(name)
        return _build_set([self[each] for each in list_member_types(name)], name)


def _build_set(members: Sequence[NodeType], name: str) -> NodeType:
    """The properties that the members have, in the order of their names."""
    properties: dict[str, Property] = {}
    for each in sorted({own for member in members for own in member.properties}):
        found = [member.properties[each] for member in members if each in member.properties]
        merged = merge_types(own.type for own in found)
        if merged is not None:
            is_whole = len(found) == len(members)
            properties[each] = Property(each, merged if is_whole else merged.as_nullable())
    return NodeType(name, properties)


@dataclass(frozen=True)
class Catalog:
    """Every type of a schema, by name, in declaration order."""

    interfaces: Mapping[str, InterfaceType] = field(default_factory=dict)
    nodes: Mapping[str, NodeType] = field(default_factory=dict)
    edges: Mapping[str, EdgeType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", NodeTypes(self.nodes))

    @cached_property
    def _edges_folded(self) -> dict[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    def find_edge(self, name: str) -> EdgeType | None:
        """The edge type of a name in any case."""
        return self._edges_folded.get(name.lower())
