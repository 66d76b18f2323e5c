"""The changes of the constraints of one type.

Whatever holds wherever an old constraint held needs no check of the data; anything else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from omnigraph.schema.catalog import Condition, ConstraintKind
from omnigraph.schema.migration.migration_steps import (
    AddConstraint,
    AddIndex,
    ChangeConstraint,
    DropConstraint,
    Step,
    UnsupportedChange,
)
from omnigraph.schema.migration.type_versions import TypePair, TypeVersion
from omnigraph.schema.migration.written_constraints import (
    MERGE,
    WrittenConstraint,
    is_implied,
    list_constraints,
)

# The kind of a constraint and the identities that it names.
_Subject: TypeAlias = tuple[str, tuple[int | str, ...]]
# Where it is written, its subject, and its other arguments.
ConstraintIdentity: TypeAlias = tuple[str, _Subject, str]


def index_constraints(side: TypeVersion) -> dict[ConstraintIdentity, WrittenConstraint]:
    """Every constraint of a type by what it is, whatever its members are called."""
    found = {}
    for written in list_constraints(side.type):
        place = "body" if written.place is None else "property"
        found[place, _subject_of(side, written), written.detail] = written
    return found


def plan_indexes(pair: TypePair, added: Iterable[WrittenConstraint]) -> Iterator[Step]:
    """A step for the members of each new index, however often it is written."""
    indexes = (written.members for written in added if written.kind is ConstraintKind.INDEX)
    for members in dict.fromkeys(indexes):
        yield AddIndex(pair.key, members)


def plan_dropped_constraints(pair: TypePair) -> Iterator[Step]:
    """The steps for constraints that end; those of a property that is dropped end before it."""
    changes = _ConstraintChanges(pair)
    for written in changes.dropped:
        if written.kind is ConstraintKind.KEY:
            yield UnsupportedChange(
                pair.format_entity(written.place),
                f"removing {written} is not supported, because ids would change",
            )
        else:
            yield DropConstraint(pair.key, written)


def plan_constraints(pair: TypePair) -> Iterator[Step]:
    """The steps for constraints that change, then for those that are new."""
    changes = _ConstraintChanges(pair)
    for old, new in changes.changed:
        is_checked = not changes.is_known(new)
        yield ChangeConstraint(pair.key, old, new, is_checked)
    yield from plan_indexes(pair, changes.added)
    for written in changes.added:
        if written.kind is ConstraintKind.KEY:
            yield UnsupportedChange(
                pair.format_entity(written.place),
                f"adding {written} to an existing type is not supported, because ids would change",
            )
        elif written.kind is not ConstraintKind.INDEX:
            yield AddConstraint(pair.key, written, not changes.is_known(written))


class _ConstraintChanges:
    """The constraints of a type that end, change and begin."""

    def __init__(self, pair: TypePair) -> None:
        old, new = index_constraints(pair.old), index_constraints(pair.new)
        self._pair = pair
        self._old = old
        ended = {identity: each for identity, each in old.items() if identity not in new}
        self.changed: list[tuple[WrittenConstraint, WrittenConstraint]] = []
        self.added: list[WrittenConstraint] = []
        for identity, written in new.items():
            if identity in old:
                continue
            former = _find_former(identity[1], ended)
            if former is None:
                self.added.append(written)
            else:
                self.changed.append((ended.pop(former), written))
        self.dropped = tuple(ended.values())

    def is_known(self, written: WrittenConstraint) -> bool:
        """Whether existing entities obey a constraint, whatever they are."""
        subject = _subject_of(self._pair.new, written)
        if written.kind in (ConstraintKind.INDEX, ConstraintKind.TOGETHER, MERGE):
            # None of them says anything about the entities that there are.
            return True
        old = self._pair.old.index_properties()
        new = self._pair.new.index_properties()
        added = [each for each in subject[1] if isinstance(each, int) and each not in old]
        is_null = any(new[each].type.is_nullable for each in added)
        if is_null and not isinstance(written.bound, Condition):
            # A property that is new is null, and a null obeys.
            return True
        return is_implied(
            written, (each for (_, of, _), each in self._old.items() if of == subject)
        )


def _find_former(
    subject: _Subject, ended: Mapping[ConstraintIdentity, WrittenConstraint]
) -> ConstraintIdentity | None:
    return next((identity for identity in ended if identity[1] == subject), None)


def _subject_of(side: TypeVersion, written: WrittenConstraint) -> _Subject:
    # The members keep their order by name, which a rename may change.
    members = sorted((side.member_id_of(name) for name in written.members), key=str)
    return str(written.kind), tuple(members)
