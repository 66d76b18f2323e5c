"""Which changes somebody wants to hear of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from omnigraph.diagnostics import did_you_mean
from omnigraph.engine import arguments
from omnigraph.errors import InvalidArgument, TypeNotFound
from omnigraph.execution.changes import Op, TypePair, type_id
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKind

_Choice = TypeVar("_Choice")
_KINDS: Final[Mapping[str, TypeKind]] = {str(kind): kind for kind in (TypeKind.NODE, TypeKind.EDGE)}
_OPS: Final[Mapping[str, Op]] = {op.word: op for op in Op}
_DIGEST_DIGITS: Final = 32
_RENAMED: Final = "a type that was renamed has its new name only"


@dataclass(frozen=True, slots=True)
class Filters:
    """Kinds, names of types and operations; no names mean all types."""

    kinds: tuple[TypeKind, ...] = tuple(_KINDS.values())
    types: tuple[str, ...] = ()
    ops: tuple[Op, ...] = tuple(_OPS.values())

    @property
    def digest(self) -> str:
        """What tells these filters from others, in whatever order they were given."""
        return self.digest_of(self.types)

    def digest_of(self, types: Collection[str]) -> str:
        """The digest with something else than names for the types."""
        text = json.dumps([self.kinds, sorted(types), [op.word for op in self.ops]])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]

    def at(self, *views: View) -> Wanted:
        """The filters by the names of views: a name means the types that any of them calls so."""
        paths = [_paths_by_name(view) for view in views]
        self._require_known(paths)
        named = (known.get(name, set()) for name in self.types for known in paths)
        return Wanted(self, frozenset().union(*named))

    def first_at(self, *views: View) -> Wanted:
        """The filters by the names of views: a name means what the first that knows it does."""
        paths = [_paths_by_name(view) for view in views]
        self._require_known(paths)
        named = (next(known[name] for known in paths if name in known) for name in self.types)
        return Wanted(self, frozenset().union(*named))

    def are_known_at(self, view: View) -> bool:
        """Whether a view has types of all the names."""
        return {type_key.name for type_key in view.types}.issuperset(self.types)

    def _require_known(self, paths: Sequence[Mapping[str, object]]) -> None:
        """Refuse a name that nothing has: it would match nothing."""
        names = {name for known in paths for name in known}
        for name in self.types:
            if name not in names:
                raise TypeNotFound(name, hint=did_you_mean(name, names) or _RENAMED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters, and the tables of the types that they name.

    A type that had another name when a commit was made is still the one that is meant.
    """

    filters: Filters
    paths: frozenset[str]

    @property
    def digest(self) -> str:
        """What tells these filters from others; it outlives the names of the types."""
        return self.filters.digest_of([type_id(path) for path in self.paths])

    def wants(self, pair: TypePair, paths: Collection[str]) -> bool:
        """Whether changes of a type are wanted, by the tables it has in two states."""
        is_type = not self.filters.types or not self.paths.isdisjoint(paths)
        return is_type and pair.kind in self.filters.kinds


def _paths_by_name(view: View) -> dict[str, set[str]]:
    """The tables of the types of each name: a node and an edge type may share one."""
    found: dict[str, set[str]] = {}
    for type_key in view.types:
        found.setdefault(type_key.name, set()).add(view.snapshot.pins[str(type_key)].path)
    return found


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
