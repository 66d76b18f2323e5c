"""Mappings as data: which nodes and edges a record becomes, and how each value is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from omnigraph.pipelines.places import Place


@dataclass(frozen=True, slots=True)
class Expression:
    """A Spark SQL expression over the record."""

    sql: str
    place: Place


@dataclass(frozen=True, slots=True)
class Phrase:
    """Texts and expressions in turn: the text of all of them together."""

    # Texts at even places, expressions at odd ones.
    parts: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every record."""

    value: Any  # Any: a value of YAML
    place: Place


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of a text, made by the embedder of the process."""

    sql: str
    place: Place


Value: TypeAlias = Expression | Phrase | Constant | Embedded


@dataclass(frozen=True, slots=True)
class End:
    """An end of an edge: one value, or a value for each member of a key (`members`)."""

    value: Value | None
    members: Mapping[str, Value]
    place: Place


@dataclass(frozen=True, slots=True)
class Explode:
    """One record for each element of an array."""

    sql: str
    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Chunk:
    """One record for each piece of a text."""

    sql: str
    words: int
    overlap: int
    place: Place


@dataclass(frozen=True, slots=True)
class Rule:
    """What a record gives of one type; an edge has two ends, a node has none."""

    type_name: str
    place: Place
    values: Mapping[str, Value]
    source: str | None = None
    where: str | None = None
    explode: tuple[Explode, ...] = ()
    chunk: Chunk | None = None
    is_distinct: bool = False
    id: Value | None = None
    ends: tuple[End, End] | None = None
    # Of its fields by their names, and of each property by `set.` and its name.
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)

    def place_of(self, name: str) -> Place:
        """Where a field is written, or where the rule starts."""
        return self.places.get(name, self.place)

    @property
    def is_edge(self) -> bool:
        """Whether it gives edges."""
        return self.ends is not None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping: its rules, the file they are in, and the text the digest is made of.

    `paths` lead to the rules through the document, by place.
    """

    file: str
    rules: tuple[Rule, ...]
    text: str
    paths: Mapping[Place, str] = field(default_factory=dict, repr=False, compare=False)
