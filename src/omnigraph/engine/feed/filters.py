"""Which changes somebody wants to hear of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from omnigraph.diagnostics import did_you_mean
from omnigraph.engine import arguments
from omnigraph.errors import InvalidArgument, TypeNotFound
from omnigraph.execution.changes import Op, TypePair
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKind

_Choice = TypeVar("_Choice")
_KINDS: Final[Mapping[str, TypeKind]] = {str(kind): kind for kind in (TypeKind.NODE, TypeKind.EDGE)}
_OPS: Final[Mapping[str, Op]] = {op.word: op for op in Op}
_DIGEST_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Filters:
    """Kinds, names of types and operations; no names mean all types."""

    kinds: tuple[TypeKind, ...] = tuple(_KINDS.values())
    types: tuple[str, ...] = ()
    ops: tuple[Op, ...] = tuple(_OPS.values())

    @property
    def digest(self) -> str:
        """What tells these filters from others, in whatever order they were given."""
        text = json.dumps([self.kinds, self.types, [op.word for op in self.ops]])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]

    def at(self, *views: View) -> Wanted:
        """The filters by the names of views; one that they do not know would match nothing.

        A type that had another name when a commit was made is still the one that is meant.
        """
        names = {type_key.name for view in views for type_key in view.types}
        for name in self.types:
            if name not in names:
                raise TypeNotFound(name, hint=did_you_mean(name, names))
        paths = {
            view.snapshot.pins[str(type_key)].path
            for view in views
            for type_key in view.types
            if type_key.name in self.types
        }
        return Wanted(self, frozenset(paths))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters, and the tables of the types that they name."""

    filters: Filters
    paths: frozenset[str]

    def wants(self, pair: TypePair, paths: Collection[str]) -> bool:
        """Whether changes of a type are wanted, by the names and tables it has in two states."""
        if pair.kind not in self.filters.kinds:
            return False
        names = {key.name for key in (pair.old, pair.new) if key is not None}
        return (
            not self.filters.types
            or not names.isdisjoint(self.filters.types)
            or not self.paths.isdisjoint(paths)
        )


def filters_of(kinds: object, types: object, ops: object) -> Filters:
    """Filters as callers give them; None and no words mean everything."""
    names = arguments.texts_or_none("types", types) or []
    return Filters(
        _chosen("kinds", kinds, _KINDS), tuple(sorted(set(names))), _chosen("ops", ops, _OPS)
    )


def _chosen(argument: str, given: object, known: Mapping[str, _Choice]) -> tuple[_Choice, ...]:
    words = arguments.texts_or_none(argument, given) or list(known)
    for word in words:
        if word not in known:
            choices = ", ".join(f"'{each}'" for each in known)
            raise InvalidArgument(argument, f"'{word}' is not one of {choices}")
    return tuple(choice for word, choice in known.items() if word in words)
