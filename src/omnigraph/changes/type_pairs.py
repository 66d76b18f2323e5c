"""Pairs the types and columns of two views that are the same, whatever their names.

Identity decides; of what two lines of commits added separately, the name does. A type that was
dropped and added again is another one, and so is a property.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.identity_map import IdentityMap, map_identities
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.lineage import Lineage

_ID_DIGITS = 16
_Named = TypeVar("_Named", str, TypeKey)


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """One property or end in the tables of two views; `old` is None for a property that is new.

    Heavy columns hold vectors and blobs: reading one costs more than all others together.
    """

    old: str | None
    new: str
    is_heavy: bool = False


@dataclass(frozen=True, slots=True)
class TypePair:
    """A type at two views; None where it does not exist."""

    old: TypeKey | None
    new: TypeKey | None
    # What both tables hold, ends included, and what only the new one does.
    columns: tuple[ColumnPair, ...] = ()
    # Opaque: survives renames, and differs between two types that had one name in turn.
    type_id: str = ""

    @property
    def type_key(self) -> TypeKey:
        """What the type is called at the new view, or was called at the old one."""
        found = self.new or self.old
        assert found is not None, "a pair has at least one side"
        return found

    @property
    def kind(self) -> TypeKind:
        """Whether its entities are nodes or edges."""
        return self.type_key.kind


def compute_type_id(path: str) -> str:
    """The opaque id of the type whose table is at a path, which must not be shown itself."""
    return hashlib.sha256(f"type:{path}".encode()).hexdigest()[:_ID_DIGITS]


def pair_types(old: View, new: View, lineage: Lineage) -> list[TypePair]:
    """Every type of two views: nodes before edges, then by the opaque id."""
    shared = lineage.read_schema(lineage.find_last_shared(old.snapshot, new.snapshot)).accepted
    pairs = list(_TypePairing(old, new, shared).iter_pairs())
    return sorted(pairs, key=lambda pair: (pair.kind is TypeKind.EDGE, pair.type_id))


class _TypePairing:
    """Two views, and the schema of the commit at which their lines part."""

    def __init__(self, old: View, new: View, shared: AcceptedSchema) -> None:
        self._old = old
        self._new = new
        self._same = map_identities(old.accepted, new.accepted)
        self._in_old = map_identities(shared, old.accepted)
        self._in_new = map_identities(shared, new.accepted)

    def iter_pairs(self) -> Iterator[TypePair]:
        """Every type that has a table at one of the views."""
        both = {key: now for key, now in self._same.types.items() if key in self._old.types}
        both |= _pair_by_name(
            [key for key in self._old.types if key not in both],
            [key for key in self._new.types if key not in both.values()],
            {*self._in_old.types.values(), *self._in_new.types.values()},
        )
        for key, now in both.items():
            columns = tuple(self._iter_columns(key, now))
            yield TypePair(key, now, columns, _type_id_of(self._new, now))
        for key in self._old.types:
            if key not in both:
                yield TypePair(key, None, type_id=_type_id_of(self._old, key))
        for key in self._new.types.keys() - both.values():
            yield TypePair(None, key, type_id=_type_id_of(self._new, key))

    def _iter_columns(self, key: TypeKey, now: TypeKey) -> Iterator[ColumnPair]:
        old, new = self._old.get_shape(key), self._new.get_shape(now)
        if now.kind is TypeKind.EDGE:
            yield ColumnPair(SOURCE_COLUMN, SOURCE_COLUMN)
            yield ColumnPair(TARGET_COLUMN, TARGET_COLUMN)
        kept = self._same.properties_of(key)
        both = dict(kept)
        gone, added = (
            _older_properties_of(self._in_old, key),
            _older_properties_of(self._in_new, now),
        )
        both |= _pair_by_name(
            [name for name in old.columns if name not in both],
            [name for name in new.columns if name not in both.values()],
            {*gone, *added},
        )
        before = {after: name for name, after in both.items()}
        for name, column in new.columns.items():
            field = new.schema.field(column)
            same = old.columns.get(before[name]) if name in before else None
            is_kept = name in before and before[name] in kept
            if same is not None and not _is_alike(old.schema.field(same), field, is_kept=is_kept):
                same = None
            # What the other line has dropped is a change of the schema, not of every entity.
            if same is not None or name not in added:
                yield ColumnPair(same, column, is_heavy(field))


def _pair_by_name(
    gone: Iterable[_Named], added: Iterable[_Named], known: set[_Named]
) -> dict[_Named, _Named]:
    """What both lines have added under one name after they parted."""
    new = set(added)
    return {name: name for name in gone if name in new and name not in known}


def _older_properties_of(since: IdentityMap, key: TypeKey) -> frozenset[str]:
    """The properties of a type that are older than the line, by their names now."""
    older = next((old for old, now in since.types.items() if now == key), None)
    return frozenset() if older is None else frozenset(since.properties_of(older).values())


def _type_id_of(view: View, key: TypeKey) -> str:
    return compute_type_id(view.snapshot.pins[str(key)].path)


def _is_alike(left: pa.Field, right: pa.Field, *, is_kept: bool) -> bool:
    """Whether values can be compared: those of one property also after a conversion."""
    if is_blob(left) or is_blob(right):
        return is_blob(left) and is_blob(right)
    return bool(left.type == right.type) or is_kept


def is_heavy(field: pa.Field) -> bool:
    """Whether a column holds vectors or blobs: reading it costs more than all others together."""
    return is_blob(field) or bool(pa.types.is_fixed_size_list(field.type))
