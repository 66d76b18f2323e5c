"""Mappings as data: which nodes and edges a record becomes, and how each value is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Expression:
    """A Spark SQL expression over the record."""

    sql: str
    line: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """Texts and expressions in turn: the text of all of them together."""

    # Texts at even places, expressions at odd ones.
    parts: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every record."""

    value: Any  # Any: a value of YAML
    line: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of a text, made by the embedder of the process."""

    sql: str
    line: int


Value: TypeAlias = Expression | Phrase | Constant | Embedded


@dataclass(frozen=True, slots=True)
class End:
    """An end of an edge: one value, or a value for each member of a key (`members`)."""

    value: Value | None
    members: Mapping[str, Value]
    line: int


@dataclass(frozen=True, slots=True)
class Explode:
    """One record for each element of an array."""

    sql: str
    name: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """One record for each piece of a text."""

    sql: str
    words: int
    overlap: int


@dataclass(frozen=True, slots=True)
class Rule:
    """What a record gives of one type; an edge has two ends, a node has none."""

    type_name: str
    line: int
    values: Mapping[str, Value]
    source: str | None = None
    where: str | None = None
    explode: tuple[Explode, ...] = ()
    chunk: Chunk | None = None
    is_distinct: bool = False
    id: Value | None = None
    ends: tuple[End, End] | None = None

    @property
    def is_edge(self) -> bool:
        """Whether it gives edges."""
        return self.ends is not None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping: its rules, the file they are in, and the text the digest is made of.

    `paths` lead to the rules through the document, by line.
    """

    file: str
    rules: tuple[Rule, ...]
    text: str
    paths: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False)
