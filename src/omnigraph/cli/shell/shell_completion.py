"""The words that may follow a text in the shell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog

_WORD: Final = re.compile(r"[\\$@]?\w*$")
_BINDING: Final = re.compile(r"(\$\w+)\s*:\s*(\w+)")
_VARIABLE: Final = re.compile(r"\$\w+")
_AFTER_DOT: Final = re.compile(r"(\$\w+)\.\w*$")
_AFTER_COLON: Final = re.compile(r"\$\w+\s*:\s*\w*$")
_AFTER_VERB: Final = re.compile(r"\b(?:insert|update|delete|create|upsert|replace)\s+\w*$")
_INSIDE_TYPE: Final = re.compile(r"(?:\$\w+\s*:|\binsert|\bupsert|\bcreate)\s+(\w+)\s*\{[^{}]*$")
_AFTER_VARIABLE: Final = re.compile(r"\$\w+\s+<?\w*$")
_KEYWORDS: Final = (
    *("query", "match", "with", "return", "union", "intersect", "except", "having"),
    *("order", "limit", "offset", "distinct", "not", "and", "or", "as", "is"),
    *("in", "null", "desc", "asc", "insert", "update", "delete", "set", "where", "case", "else"),
)
_AGGREGATES: Final = ("count", "sum", "avg", "min", "max")
_STATEMENTS: Final = ("branch", "show", "explain")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that texts may use: those of a schema, of branches, commands and parameters."""

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def types(self) -> dict[str, tuple[str, ...]]:
        """The properties of each type."""
        return {**self.nodes, **self.edges}


def read_names(catalog: Catalog) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """The types of a schema with their properties, as a vocabulary has them."""
    return {
        "nodes": {name: tuple(each.properties) for name, each in catalog.nodes.items()},
        "edges": {name: tuple(each.properties) for name, each in catalog.edges.items()},
    }


def list_completions(text: str, known: Vocabulary) -> list[str]:
    """The words that may stand at the end of a text, given what is typed of them."""
    found = _WORD.search(text)
    typed = "" if found is None else found[0]
    words = dict.fromkeys(_choose_words(text, typed, known))
    start = typed.lower()
    return [each for each in words if each.lower().startswith(start) and each != typed]


def measure_typed(text: str) -> int:
    """How many characters of the last word stand there already."""
    found = _WORD.search(text)
    return 0 if found is None else len(found[0])


def _choose_words(text: str, typed: str, known: Vocabulary) -> Iterable[str]:
    line = text.lstrip()
    if line.startswith("\\"):
        return _list_command_words(line, known)
    if dotted := _AFTER_DOT.search(text):
        return _list_properties(text, dotted[1], known)
    if typed.startswith("$"):
        return dict.fromkeys([*_VARIABLE.findall(text[: -len(typed)]), *known.parameters])
    if _AFTER_COLON.search(text):
        return known.nodes
    if _AFTER_VERB.search(text):
        return known.types
    if inside := _INSIDE_TYPE.search(text):
        return known.types.get(inside[1], ())
    if _AFTER_VARIABLE.search(text):
        return [*map(spell_edge, known.edges), "as", "and", "or", "is", "in"]
    return [*_KEYWORDS, *_AGGREGATES, *known.functions, *_STATEMENTS, *known.types]


def spell_edge(name: str) -> str:
    """How a traversal spells the name of an edge type."""
    return name[:1].lower() + name[1:]


def _list_command_words(line: str, known: Vocabulary) -> Iterator[str]:
    name, space, _ = line.partition(" ")
    arguments = {
        "\\branch": known.branches,
        "\\at": known.branches,
        "\\format": known.formats,
        "\\schema": tuple(known.types),
        "\\timing": ("on", "off"),
        "\\set": tuple(each.removeprefix("$") for each in known.parameters),
    }
    yield from arguments.get(name, ()) if space else known.commands


def _list_properties(text: str, variable: str, known: Vocabulary) -> Iterable[str]:
    bound = dict(_BINDING.findall(text))
    if bound.get(variable) in known.types:
        return [*known.types[bound[variable]], "@id"]
    return [*dict.fromkeys(each for names in known.types.values() for each in names), "@id"]
