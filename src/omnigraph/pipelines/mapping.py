"""Mappings as data: which nodes and edges a record becomes, and how each value is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from omnigraph.pipelines.places import Position


@dataclass(frozen=True, slots=True)
class Expression:
    """A Spark SQL expression over the record."""

    sql: str
    position: Position


@dataclass(frozen=True, slots=True)
class Template:
    """Texts and expressions in turn: the text of all of them together."""

    # Texts at even places, expressions at odd ones.
    parts: tuple[str, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every record."""

    value: Any  # Any: a value of YAML
    position: Position


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """The vector of a text, made by the embedder of the process."""

    sql: str
    position: Position


Value: TypeAlias = Expression | Template | Constant | EmbeddedText


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An end of an edge: one value, or a value for each member of a key (`members`)."""

    value: Value | None
    members: Mapping[str, Value]
    position: Position


@dataclass(frozen=True, slots=True)
class Explode:
    """One record for each element of an array."""

    sql: str
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Chunk:
    """One record for each piece of a text."""

    sql: str
    words: int
    overlap: int
    position: Position


@dataclass(frozen=True, slots=True)
class MappingRule:
    """What a record gives of one type; an edge has two ends, a node has none."""

    type_name: str
    position: Position
    values: Mapping[str, Value]
    source: str | None = None
    where: str | None = None
    explode: tuple[Explode, ...] = ()
    chunk: Chunk | None = None
    is_distinct: bool = False
    id: Value | None = None
    ends: tuple[Endpoint, Endpoint] | None = None
    # Of its fields by their names, and of each property by `set.` and its name.
    positions: Mapping[str, Position] = field(default_factory=dict, repr=False, compare=False)

    def position_of(self, name: str) -> Position:
        """Where a field is written, or where the rule starts."""
        return self.positions.get(name, self.position)

    @property
    def is_edge(self) -> bool:
        """Whether it gives edges."""
        return self.ends is not None


@dataclass(frozen=True, slots=True)
class RecordMapping:
    """A mapping: its rules, the file they are in, and the text the digest is made of.

    `paths` lead to the rules through the document, by place.
    """

    file: str
    rules: tuple[MappingRule, ...]
    text: str
    paths: Mapping[Position, str] = field(default_factory=dict, repr=False, compare=False)
