"""Filters of changes by kind, type and operation, and the change of one entity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph.changes.type_difference import Op
from omnigraph.changes.type_pairs import TypePair, compute_type_id
from omnigraph.engine import arguments
from omnigraph.engine.graph_session import Session
from omnigraph.errors import InvalidArgumentError, TypeNotFoundError
from omnigraph.html_views import HtmlDocument
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.versioning.record import Record, Stream

if TYPE_CHECKING:
    from omnigraph.schema.schema_shape import JsonObject

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
        """A hash of the filters that does not depend on the order in which they were given."""
        return self.digest_of(self.types)

    def digest_of(self, types: Collection[str]) -> str:
        """The digest with something else than names for the types."""
        text = json.dumps([self.kinds, sorted(types), [op.word for op in self.ops]])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]

    def resolve_in_any(self, *views: View) -> BoundFilters:
        """The filters by the names of views: a name means the types that any of them calls so."""
        paths = [_collect_paths_by_name(view) for view in views]
        self._require_known(paths)
        named = (known.get(name, set()) for name in self.types for known in paths)
        return BoundFilters(self, frozenset().union(*named))

    def resolve_in_first(self, *views: View) -> BoundFilters:
        """The filters by the names of views: a name means what the first that knows it does."""
        paths = [_collect_paths_by_name(view) for view in views]
        self._require_known(paths)
        named = (next(known[name] for known in paths if name in known) for name in self.types)
        return BoundFilters(self, frozenset().union(*named))

    def are_known_at(self, view: View) -> bool:
        """Whether a view has types of all the names."""
        return {type_key.name for type_key in view.types}.issuperset(self.types)

    def _require_known(self, paths: Sequence[Mapping[str, object]]) -> None:
        """Refuse a name that nothing has: it would match nothing."""
        names = {name for known in paths for name in known}
        for name in self.types:
            if name not in names:
                raise TypeNotFoundError(name, hint=suggest_similar(name, names) or _RENAMED)


@dataclass(frozen=True, slots=True)
class BoundFilters:
    """Filters, and the tables of the types that they name.

    A type that had another name when a commit was made is still the one that is meant.
    """

    filters: Filters
    paths: frozenset[str]

    @property
    def digest(self) -> str:
        """A hash of the filters that survives renames of the types."""
        return self.filters.digest_of([compute_type_id(path) for path in self.paths])

    def accepts_type(self, pair: TypePair, paths: Collection[str]) -> bool:
        """Whether changes of a type are wanted, by the tables it has in two states."""
        is_type = not self.filters.types or not self.paths.isdisjoint(paths)
        return is_type and pair.kind in self.filters.kinds


def _collect_paths_by_name(view: View) -> dict[str, set[str]]:
    """The tables of the types of each name: a node and an edge type may share one."""
    found: dict[str, set[str]] = {}
    for type_key in view.types:
        found.setdefault(type_key.name, set()).add(view.snapshot.pins[str(type_key)].path)
    return found


def parse_filters(kinds: object, types: object, ops: object) -> Filters:
    """Filters as callers give them; None and no words mean everything."""
    names = arguments.require_optional_texts("types", types) or []
    return Filters(
        _parse_choices("kinds", kinds, _KINDS),
        tuple(sorted(set(names))),
        _parse_choices("ops", ops, _OPS),
    )


def _parse_choices(
    argument: str, given: object, known: Mapping[str, _Choice]
) -> tuple[_Choice, ...]:
    words = arguments.require_optional_texts(argument, given) or list(known)
    for word in words:
        if word not in known:
            choices = ", ".join(f"'{each}'" for each in known)
            raise InvalidArgumentError(argument, f"'{word}' is not one of {choices}")
    return tuple(choice for word, choice in known.items() if word in words)


@dataclass(frozen=True, slots=True)
class EntityChange(HtmlDocument):
    """One entity that was inserted, updated or deleted; `kind` is `node` or `edge`.

    `before` and `after` are its images: all `properties`, spelled as in an export and null where
    they have no value, and for an edge its `endpoints`. What was inserted has no image before, what
    was deleted none after. `type_id` survives a rename of the type; a type that is dropped and
    added again has another one.
    """

    kind: str
    type_id: str
    type_name: str
    id: str
    op: str
    before: JsonObject | None = None
    after: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """The document of a change; an image that does not exist has no member."""
        document: JsonObject = {
            "kind": self.kind,
            "type": {"id": self.type_id, "name": self.type_name},
            "id": self.id,
            "op": self.op,
        }
        if self.before is not None:
            document["before"] = self.before
        if self.after is not None:
            document["after"] = self.after
        return document


@dataclass(frozen=True, slots=True)
class CommitStates:
    """A commit of a stream between two views: the one of its first parent, and its own."""

    stream: Stream
    record: Record
    before: View
    after: View


def load_commit_states(session: Session, stream: Stream, record: Record) -> CommitStates:
    """The two states that a commit of a stream is between."""
    parent = session.resources.log.read_snapshot(stream, record.seq - 1)
    # The parent of the first commit of a branch is one of another stream.
    after = replace(parent.advance(record), stream=stream.owner_of(record.seq))
    return CommitStates(stream, record, session.open_view(parent), session.open_view(after))
