"""The answers of a function to the conflicts of a merge, as the lines of a resolution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from omnigraph.errors import EntityConflict
from omnigraph.writers.merge.conflict_decisions import (
    JsonObject,
    Resolver,
    Take,
    iter_named_parts,
    name_entity,
)
from omnigraph.writers.merge.conflict_kinds import PREFERABLE

# Each round may bring up conflicts, which a function could answer with new ones for ever.
_ROUNDS_MAX: Final = 100
_SIDES: Final = (Take.OURS, Take.THEIRS)


class ResolverAnswers:
    """What a function answered so far; it is asked about each conflict once.

    It returns what a line has as `take`, or an object of that by property, or None. An answer
    about a rule that another answer broke amends that one.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._rounds = 0
        self._asked: set[tuple[str | None, ...]] = set()
        self._takes: dict[tuple[str, str, str | None], _EntityTakes] = {}

    def ask(self, conflicts: Iterable[EntityConflict]) -> bool:
        """Ask about the conflicts that are new; whether any of them got an answer."""
        self._rounds += 1
        is_answered = False
        for each in conflicts:
            entity = each.entity_kind, each.type_name, each.entity_id
            asked = (*entity, each.kind, each.message)
            if asked in self._asked or self._rounds > _ROUNDS_MAX:
                continue
            self._asked.add(asked)
            for name, take in _iter_takes(each, self._resolver(each)):
                is_answered = True
                self._takes.setdefault(entity, _EntityTakes(each)).add(each, name, take)
        return is_answered

    def iter_lines(self) -> Iterator[dict[str, object]]:
        """The lines that decide as the answers do."""
        for each in self._takes.values():
            yield from each.iter_lines()


class _EntityTakes:
    """The answers about one entity: one for all of it, or some for its properties."""

    def __init__(self, conflict: EntityConflict) -> None:
        self._named = name_entity(conflict)
        self._takes: dict[str | None, Any] = {}  # Any: what a function returned
        # Whether the side that was taken has the entity.
        self._is_kept = False

    def add(self, conflict: EntityConflict, name: str | None, take: object) -> None:
        """Add an answer to what is known."""
        whole = self._takes.get(None)
        if whole == Take.DELETE:
            return
        if name is None:
            if take == Take.DELETE:
                self._takes.clear()
            self._is_kept = take in _SIDES and getattr(conflict, str(take)) is not None
            self._takes[None] = take
        elif isinstance(take, Mapping) and isinstance(whole, Mapping):
            self._takes[None] = {"value": {**whole["value"], name: take["value"]}}
        elif isinstance(take, Mapping) and self._is_kept:
            # A value starts from the side that has the entity.
            self._takes[None] = {"value": {name: take["value"]}}
        else:
            self._takes[name] = take

    def iter_lines(self) -> Iterator[dict[str, object]]:
        """The answers as lines."""
        for name, take in self._takes.items():
            property_ = {} if name is None else {"property": name}
            yield {**self._named, **property_, "take": take}


def _iter_takes(conflict: EntityConflict, answer: Any) -> Iterator[tuple[str | None, object]]:
    """What an answer is for the entity, or for each of its properties."""
    if answer is None:
        return
    if not isinstance(answer, Mapping):
        yield from _repeat_take(conflict, answer)
    elif set(answer) != {"value"}:
        yield from ((name, take) for name, take in answer.items() if take is not None)
    elif conflict.kind not in PREFERABLE and isinstance(answer["value"], Mapping):
        yield from ((name, {"value": value}) for name, value in answer["value"].items())
    else:
        yield from _repeat_take(conflict, answer)


def _repeat_take(conflict: EntityConflict, take: JsonObject | str) -> Iterator[Any]:
    for named in iter_named_parts(conflict):
        yield named.get("property"), take
