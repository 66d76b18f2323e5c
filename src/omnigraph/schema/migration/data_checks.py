"""What existing entities must obey before the steps of a plan can be applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import (
    Cardinality,
    Check,
    Condition,
    ConstraintKind,
    MergeRule,
    Range,
)
from omnigraph.schema.migration.migration_steps import (
    CONSTRAINT,
    DEFAULT,
    AddConstraint,
    AddProperty,
    ChangeConstraint,
    ConvertProperty,
    Step,
    TightenProperty,
    WidenProperty,
)
from omnigraph.schema.migration.written_constraints import WrittenConstraint
from omnigraph.schema.property_types import EnumType
from omnigraph.schema.schema_shape import JsonObject

# So many entities that contradict a step are named; all of them are counted.
EXAMPLES_MAX: Final = 20
# So many of them fit into one line.
_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Required:
    """No entity lacks a value of the property."""

    property: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Every value of the property is one of an enum."""

    property: str
    enum: EnumType


@dataclass(frozen=True, slots=True)
class Convertible:
    """Every value of the property survives a conversion to its new type, and the way back."""

    property: str


@dataclass(frozen=True, slots=True)
class Unique:
    """No two entities share the values of the members."""

    members: tuple[str, ...]


DataRule: TypeAlias = (
    Required | OneOf | Convertible | Range | Check | Condition | Unique | Cardinality
)


@dataclass(frozen=True, slots=True)
class DataCheck:
    """A rule for the entities of a type, by its new name, and the step that asks for it."""

    code: str
    owner: TypeKey
    rule: DataRule
    step: Step

    def format_count(self, count: int) -> str:
        """So many of what contradicts the step."""
        match self.rule:
            case Unique():
                one, many = "shared value", "shared values"
            case Cardinality():
                one, many = "source", "sources"
            case _:
                one, many = "entity", "entities"
        return f"{count} {one if count == 1 else many}"


@dataclass(frozen=True, slots=True)
class Example:
    """An entity that contradicts a step, and what it has that does."""

    id: str
    value: str | None = None

    def __str__(self) -> str:
        return f"'{self.id}'" if self.value is None else f"'{self.id}' ({self.value})"


@dataclass(frozen=True, slots=True)
class DataViolation:
    """How much contradicts a step: entities, values that several share, or sources of edges."""

    check: DataCheck
    count: int
    examples: tuple[Example, ...]

    @property
    def message(self) -> str:
        """What an attempt to apply the step fails with."""
        shown = ", ".join(map(str, self.examples[:_SHOWN_MAX]))
        more = "" if len(self.examples) <= _SHOWN_MAX and self.count <= _SHOWN_MAX else ", …"
        verb = "contradicts" if self.count == 1 else "contradict"
        found = f"{self.check.format_count(self.count)} {verb} '{self.check.step}'"
        shown = f": {shown}{more}" if shown else ""
        return f"[{self.check.code}] {self.check.owner}: {found}{shown}"

    def to_json(self) -> JsonObject:
        """The violation in the document of a plan."""
        return {
            "code": self.check.code,
            "entity": str(self.check.owner),
            "step": str(self.check.step),
            "total": self.count,
            "examples": [{"id": each.id, "value": each.value} for each in self.examples],
        }


def list_data_checks(steps: Iterable[Step]) -> tuple[DataCheck, ...]:
    """The checks of some steps, in their order; an interface has no entities of its own.

    A rule that several steps ask for is checked once.
    """
    found: dict[tuple[TypeKey, DataRule], DataCheck] = {}
    for check in _iter_checks(steps):
        if check.owner.kind != TypeKind.INTERFACE:
            found.setdefault((check.owner, check.rule), check)
    return tuple(found.values())


def _iter_checks(steps: Iterable[Step]) -> Iterator[DataCheck]:
    for step in steps:
        match step:
            case AddProperty() | TightenProperty():
                yield from _iter_value_checks(step)
            case ConvertProperty(owner, name, _, EnumType() as enum):
                yield DataCheck(step.code or "", owner, OneOf(name, enum), step)
            case WidenProperty(owner, name) | ConvertProperty(owner, name):
                if step.code is not None:
                    yield DataCheck(step.code, owner, Convertible(name), step)
                for condition in step.conditions:
                    yield DataCheck(CONSTRAINT, owner, condition, step)
            case AddConstraint(owner, constraint, True) | ChangeConstraint(
                owner, _, constraint, True
            ):
                yield DataCheck(step.code or "", owner, _rule_of(constraint), step)
            case _:
                pass


def _iter_value_checks(step: AddProperty | TightenProperty) -> Iterator[DataCheck]:
    """That no entity lacks a value, and what else is said about values that are filled."""
    owner, name = step.owner, step.name
    if isinstance(step, TightenProperty):
        if step.filled is None or not step.filled.is_literal:
            yield DataCheck(step.code, owner, Required(name), step)
        for constraint in step.constraints:
            yield DataCheck(CONSTRAINT, owner, _rule_of(constraint), step)
    elif step.filled is not None and not step.filled.is_literal:
        yield DataCheck(DEFAULT, owner, Required(name), step)
        if isinstance(step.type.value, EnumType):
            yield DataCheck(DEFAULT, owner, OneOf(name, step.type.value), step)


def _rule_of(constraint: WrittenConstraint) -> DataRule:
    if constraint.bound is not None and not isinstance(constraint.bound, MergeRule):
        return constraint.bound
    assert constraint.kind is ConstraintKind.UNIQUE, "nothing else is checked"
    return Unique(constraint.members)
