"""The constraints of a type as steps name them, and which of them hold if others do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from omnigraph.lang.text_printer import quote_string
from omnigraph.schema.accepted_schema import DeclaredType, properties_of
from omnigraph.schema.catalog import (
    Cardinality,
    Check,
    Condition,
    ConstraintKind,
    EdgeType,
    InterfaceType,
    MergeRule,
    Range,
)
from omnigraph.schema.schema_shape import (
    JsonObject,
    encode_check,
    encode_condition,
    encode_member_constraint,
    encode_range,
)

CARD: Literal["card"] = "card"
MERGE: Literal["merge"] = "merge"

# What a constraint says beyond its members; None for a key, a uniqueness or an index.
Bound: TypeAlias = Range | Check | Condition | Cardinality | MergeRule | None


@dataclass(frozen=True, slots=True)
class WrittenConstraint:
    """A constraint of a type; `place` is the property that it is written on, if any."""

    kind: ConstraintKind | Literal["card", "merge"]
    members: tuple[str, ...] = ()
    bound: Bound = None
    place: str | None = None

    @property
    def detail(self) -> str:
        """The arguments after the members, as a schema spells them."""
        match self.bound:
            case None:
                return ""
            case Range(_, low, high):
                return format_bounds(low, high)
            case Check(_, pattern):
                return quote_string(pattern)
            case Condition(text):
                return text
            case Cardinality(low, high):
                return format_bounds(low, high)
            case MergeRule():
                return str(self.bound)
            case _:
                assert_never(self.bound)

    def __str__(self) -> str:
        if isinstance(self.bound, MergeRule):
            return f"'merge {self.bound}'"
        if isinstance(self.bound, Condition):
            return f"@{self.kind}({self.bound.text})"
        return f"@{self.kind}({', '.join((*self.members, *filter(None, (self.detail,))))})"

    def to_json(self) -> JsonObject:
        """The form of a constraint in the document of a plan."""
        match self.bound:
            case None:
                return encode_member_constraint(ConstraintKind(self.kind), self.members)
            case Range():
                return encode_range(self.bound)
            case Check():
                return encode_check(self.bound)
            case Condition():
                return encode_condition(self.bound)
            case Cardinality(low, high):
                return {"Card": {"min": low, "max": high}}
            case MergeRule():
                return {"Merge": {"property": self.members[0], "rule": str(self.bound)}}
            case _:
                assert_never(self.bound)


def list_constraints(type_: DeclaredType) -> Iterator[WrittenConstraint]:
    """Every constraint of a type; an interface has only those on its properties."""
    for declared in properties_of(type_):
        for kind in sorted(declared.property_constraints):
            yield WrittenConstraint(kind, (declared.name,), place=declared.name)
        if declared.merge is not None:
            yield WrittenConstraint(MERGE, (declared.name,), declared.merge, declared.name)
    if isinstance(type_, InterfaceType):
        return
    for kind, members in type_.constraints.body:
        yield WrittenConstraint(kind, members)
    for bounds in type_.constraints.ranges:
        yield WrittenConstraint(ConstraintKind.RANGE, (bounds.property,), bounds)
    for check in type_.constraints.checks:
        yield WrittenConstraint(ConstraintKind.CHECK, (check.property,), check)
    for condition in type_.constraints.conditions:
        yield WrittenConstraint(ConstraintKind.CHECK, condition.members, condition)
    if isinstance(type_, EdgeType) and type_.cardinality != Cardinality():
        yield WrittenConstraint(CARD, bound=type_.cardinality)


def is_implied(new: WrittenConstraint, known: Iterable[WrittenConstraint]) -> bool:
    """Whether a constraint holds wherever others of its kind and members do."""
    return any(_is_bound_implied(old.bound, new.bound) for old in known)


def _is_bound_implied(old: Bound, new: Bound) -> bool:
    match old, new:
        case None, None:
            return True
        case Range(_, low, high), Range(_, new_low, new_high):
            return _contains(new_low, new_high, low, high)
        case Cardinality(low, high), Cardinality(new_low, new_high):
            return _contains(new_low, new_high, low, high)
        case Check(_, pattern), Check(_, new_pattern):
            return pattern == new_pattern
        case Condition(text), Condition(new_text):
            return text == new_text
        case _:
            return False


def _contains(
    low: float | None, high: float | None, inner_low: float | None, inner_high: float | None
) -> bool:
    return (low is None or (inner_low is not None and low <= inner_low)) and (
        high is None or (inner_high is not None and inner_high <= high)
    )


def format_bounds(low: float | None, high: float | None) -> str:
    """Two bounds as a schema spells them, without those that are open."""
    return "..".join("" if bound is None else repr(bound) for bound in (low, high))
