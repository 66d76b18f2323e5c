"""Changes of constraints: an index may be added, every other change is unsupported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.schema.catalog import ConstraintKind, Range
from omnigraph.schema.migration.pairing import TypePair, TypeVersion
from omnigraph.schema.migration.steps import AddIndex, Step, UnsupportedChange
from omnigraph.syntax.printing import quote_string

# Where a constraint was written, its kind, the identities it names, and its other arguments.
_Identity = tuple[str, ConstraintKind, tuple[int | str, ...], str]


@dataclass(frozen=True, slots=True)
class _PrintedConstraint:
    """A constraint as people read it; `property` when it stands on a property."""

    kind: ConstraintKind
    members: tuple[str, ...]
    detail: str = ""
    property: str | None = None

    def __str__(self) -> str:
        return f"@{self.kind}({', '.join((*self.members, *filter(None, (self.detail,))))})"


def plan_constraints(pair: TypePair) -> Iterator[Step]:
    """The steps for the constraints of a type: removed ones, then added ones."""
    old, new = _index_by_identity(pair.old), _index_by_identity(pair.new)
    for identity, written in old.items():
        if identity not in new:
            yield UnsupportedChange(
                pair.format_entity(written.property), f"removing {written} is not supported"
            )
    added = [written for identity, written in new.items() if identity not in old]
    indexes = dict.fromkeys(
        written.members for written in added if written.kind is ConstraintKind.INDEX
    )
    for members in indexes:
        yield AddIndex(pair.key, members)
    for written in added:
        if written.kind is not ConstraintKind.INDEX:
            yield UnsupportedChange(
                pair.format_entity(written.property),
                f"adding {written} to an existing type is not supported",
            )


def _index_by_identity(side: TypeVersion) -> dict[_Identity, _PrintedConstraint]:
    found = {}
    for written in _iter_constraints(side):
        place = "body" if written.property is None else "property"
        # The members keep their order by name, which a rename may change.
        members = sorted((side.member_id_of(name) for name in written.members), key=str)
        found[place, written.kind, tuple(members), written.detail] = written
    return found


def _iter_constraints(side: TypeVersion) -> Iterator[_PrintedConstraint]:
    for declared in side.index_properties().values():
        for kind in sorted(declared.property_constraints):
            yield _PrintedConstraint(kind, (declared.name,), property=declared.name)
    for kind, members in side.constraints.body:
        yield _PrintedConstraint(kind, members)
    for bounds in side.constraints.ranges:
        yield _PrintedConstraint(ConstraintKind.RANGE, (bounds.property,), _format_range(bounds))
    for check in side.constraints.checks:
        yield _PrintedConstraint(
            ConstraintKind.CHECK, (check.property,), quote_string(check.pattern)
        )


def _format_range(bounds: Range) -> str:
    low, high = ("" if bound is None else repr(bound) for bound in (bounds.minimum, bounds.maximum))
    return f"{low}..{high}"
