"""The steps of a migration plan, as data, and the codes that classify risky changes.

The text of a step is its line for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Severity
from omnigraph.lang.text_printer import quote_string
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import AnnotationValue, Condition, Default, MergeRule
from omnigraph.schema.migration.written_constraints import WrittenConstraint
from omnigraph.schema.property_types import EnumType, PropertyType, ValueType
from omnigraph.schema.type_conversions import may_lose_values

EMPTY_SCHEMA = "OG-DS-106"
REQUIRED_PROPERTY = "OG-MF-103"
NULLS = "OG-MF-104"
TYPE_CHANGE = "OG-MF-106"
CONSTRAINT = "OG-MF-107"
VALUES = "OG-MF-108"
DEFAULT = "OG-MF-109"


class Family(StrEnum):
    """What a change puts at risk; the two letters stand in the code."""

    DESTRUCTIVE = "DS"
    MAYBE_FAIL = "MF"
    CONSTRAINT_DELETION = "CD"
    BACKWARD_INCOMPATIBLE = "BC"
    NAMING = "NM"
    OWNERSHIP = "OW"
    NON_LINEAR = "NL"
    VECTOR_EMBEDDING = "VE"
    EDGE_TOPOLOGY = "ED"
    LOCK_COST = "LK"


class Tier(StrEnum):
    """How a change could be applied: at once, after a check of the data, or with loss of data."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class LintCode:
    """A code of the register, and how the change it names is classified."""

    code: str
    tier: Tier
    severity: Severity = Severity.ERROR
    # A reserved code names a change that the planner reports in another way.
    is_reserved: bool = True

    @property
    def family(self) -> Family:
        """The family in the middle of the code."""
        return Family(self.code.split("-")[1])

    @property
    def meaning(self) -> str:
        """What the code means, in one line."""
        return CODES[self.code].title


LINT_CODES = {
    found.code: found
    for found in (
        LintCode("OG-DS-101", Tier.DESTRUCTIVE),
        LintCode("OG-DS-102", Tier.DESTRUCTIVE),
        LintCode("OG-DS-103", Tier.DESTRUCTIVE),
        LintCode("OG-DS-104", Tier.DESTRUCTIVE),
        LintCode("OG-DS-105", Tier.DESTRUCTIVE),
        LintCode(EMPTY_SCHEMA, Tier.DESTRUCTIVE, is_reserved=False),
        LintCode(REQUIRED_PROPERTY, Tier.VALIDATED, is_reserved=False),
        LintCode(NULLS, Tier.VALIDATED, is_reserved=False),
        LintCode(TYPE_CHANGE, Tier.DESTRUCTIVE, is_reserved=False),
        LintCode(CONSTRAINT, Tier.VALIDATED, is_reserved=False),
        LintCode(VALUES, Tier.VALIDATED, is_reserved=False),
        LintCode(DEFAULT, Tier.VALIDATED, is_reserved=False),
    )
}


@dataclass(frozen=True, slots=True)
class AddType:
    """A new interface, node or edge type with all that belongs to it."""

    type: TypeKey

    def __str__(self) -> str:
        return f"add {self.type}"


@dataclass(frozen=True, slots=True)
class RenameType:
    """A node or edge type gets another name; `type` is the new one."""

    type: TypeKey
    old_name: str

    def __str__(self) -> str:
        return f"rename {self.type.kind}:{self.old_name} to {self.type.name}"


@dataclass(frozen=True, slots=True)
class AddProperty:
    """A new property: null in every entity, or `filled` with its default where it is required."""

    owner: TypeKey
    name: str
    type: PropertyType
    filled: Default | None = None

    @property
    def code(self) -> str | None:
        """The code of an entity that contradicts the step; None if none can."""
        return None if self.filled is None else DEFAULT

    def __str__(self) -> str:
        filled = "" if self.filled is None else f" = {self.filled.text}"
        return f"add {self.owner}.{self.name}: {self.type}{filled}"


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """A property gets another name; `owner` carries the new name of its type."""

    owner: TypeKey
    old_name: str
    name: str

    def __str__(self) -> str:
        return f"rename {self.owner}.{self.old_name} to {self.name}"


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """An enum gets more values; `name` is the new name of the property."""

    owner: TypeKey
    name: str
    added_values: tuple[str, ...]

    def __str__(self) -> str:
        return f"extend the enum of {self.owner}.{self.name} with {', '.join(self.added_values)}"


@dataclass(frozen=True, slots=True)
class AddIndex:
    """An index is declared, on a property or in the body."""

    owner: TypeKey
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"add @index({', '.join(self.members)}) to {self.owner}"


@dataclass(frozen=True, slots=True)
class RelaxProperty:
    """A required property becomes nullable."""

    owner: TypeKey
    name: str

    def __str__(self) -> str:
        return f"make {self.owner}.{self.name} nullable"


@dataclass(frozen=True, slots=True)
class TightenProperty:
    """A nullable property becomes required: no entity may lack it, or nulls are `filled`.

    `constraints` name the property and stay as they are: what is filled may contradict them.
    """

    owner: TypeKey
    name: str
    filled: Default | None = None
    constraints: tuple[WrittenConstraint, ...] = ()

    @property
    def code(self) -> str:
        """The code of an entity that contradicts the step."""
        return NULLS if self.filled is None else DEFAULT

    def __str__(self) -> str:
        filled = "" if self.filled is None else f", filled with {self.filled.text}"
        return f"make {self.owner}.{self.name} required{filled}"


@dataclass(frozen=True, slots=True)
class ChangeDefault:
    """A property gets a default, another one, or none; entities that exist stay as they are."""

    owner: TypeKey
    name: str
    old: Default | None
    new: Default | None

    def __str__(self) -> str:
        place = f"{self.owner}.{self.name}"
        if self.new is None:
            return f"drop the default of {place}"
        if self.old is None:
            return f"add the default {self.new.text} to {place}"
        return f"change the default of {place} from {self.old.text} to {self.new.text}"


@dataclass(frozen=True, slots=True)
class WidenProperty:
    """A property gets a type that holds its values, which are written to another column.

    `conditions` name the property and stay as they are: of other values they may be false.
    """

    owner: TypeKey
    name: str
    old: ValueType
    new: ValueType
    conditions: tuple[Condition, ...] = ()

    @property
    def code(self) -> str | None:
        """The code of an entity that contradicts the step; None if none can."""
        return VALUES if may_lose_values(self.old, self.new) else None

    def __str__(self) -> str:
        return f"widen {self.owner}.{self.name} from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class ConvertProperty:
    """The values of a property stay and get another type, nullability aside.

    Texts stay where they are, other values are written to another column. `conditions` name the
    property and stay as they are: of other values they may be false.
    """

    owner: TypeKey
    name: str
    old: ValueType
    new: ValueType
    conditions: tuple[Condition, ...] = ()

    @property
    def code(self) -> str | None:
        """The code of an entity that contradicts the step; None if none can."""
        is_enum = isinstance(self.old, EnumType) and not isinstance(self.new, EnumType)
        return None if is_enum else VALUES

    def __str__(self) -> str:
        return f"convert {self.owner}.{self.name} from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class ReembedProperty:
    """The vectors of a property are made anew of their texts: by another model, or of others.

    All of them are null at first. Older commits keep the vectors that they have.
    """

    owner: TypeKey
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"make the vectors of {self.owner}.{self.name} anew: {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """A constraint is declared; `is_checked` says that existing entities may contradict it."""

    owner: TypeKey
    constraint: WrittenConstraint
    is_checked: bool = True

    @property
    def code(self) -> str | None:
        """The code of an entity that contradicts the step; None if none can."""
        return CONSTRAINT if self.is_checked else None

    def __str__(self) -> str:
        place = self.constraint.place if isinstance(self.constraint.bound, MergeRule) else None
        return f"add {self.constraint} to {self.owner}{'' if place is None else f'.{place}'}"


@dataclass(frozen=True, slots=True)
class ChangeConstraint:
    """A constraint gets other bounds or another place in the text."""

    owner: TypeKey
    old: WrittenConstraint
    constraint: WrittenConstraint
    is_checked: bool = True

    @property
    def code(self) -> str | None:
        """The code of an entity that contradicts the step; None if none can."""
        return CONSTRAINT if self.is_checked else None

    def __str__(self) -> str:
        old, new = (_format_place(self.owner, each) for each in (self.old, self.constraint))
        place = "" if old == new else f" of {new}"
        return f"change {self.old} of {old} to {self.constraint}{place}"


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """A constraint leaves the schema; `owner` carries the new name of its type."""

    owner: TypeKey
    constraint: WrittenConstraint

    def __str__(self) -> str:
        return f"drop {self.constraint} of {_format_place(self.owner, self.constraint)}"


@dataclass(frozen=True, slots=True)
class ChangeImplements:
    """A node implements other interfaces, or writes what an interface gave, or the reverse."""

    type: TypeKey
    old: tuple[str, ...]
    new: tuple[str, ...]
    # The properties that another interface, or the node itself, declares now.
    properties: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.old != self.new:
            old, new = (f"({', '.join(names)})" for names in (self.old, self.new))
            return f"change the interfaces of {self.type} from {old} to {new}"
        return f"change which interfaces declare {', '.join(self.properties)} of {self.type}"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """The description or instruction of a type changes; `annotations` are all that remain."""

    type: TypeKey
    annotations: tuple[AnnotationValue, ...]

    def __str__(self) -> str:
        return f"update the metadata of {self.type}: {_format_annotations(self.annotations)}"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """The description of a property changes; `annotations` are all that remain."""

    owner: TypeKey
    name: str
    annotations: tuple[AnnotationValue, ...]

    def __str__(self) -> str:
        annotations = _format_annotations(self.annotations)
        return f"update the metadata of {self.owner}.{self.name}: {annotations}"


@dataclass(frozen=True, slots=True)
class DropProperty:
    """A property leaves the schema; older versions of the graph still show it."""

    owner: TypeKey
    name: str
    mode: Literal["soft"] = "soft"

    def __str__(self) -> str:
        return f"drop {self.owner}.{self.name} ({self.mode})"


@dataclass(frozen=True, slots=True)
class DropType:
    """A node or edge type leaves the schema; older versions of the graph still show it."""

    type: TypeKey
    mode: Literal["soft"] = "soft"

    def __str__(self) -> str:
        return f"drop {self.type} ({self.mode})"


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A change that cannot be applied; `entity` is `node:City`, `node:City.size` or `schema`."""

    entity: str
    reason: str
    code: str | None = None

    def __str__(self) -> str:
        return f"unsupported change on {self.entity}{self._format_class()}: {self.reason}"

    @property
    def message(self) -> str:
        """What an attempt to apply the change fails with: the code, if any, place and reason."""
        prefix = "" if self.code is None else f"[{self.code}] "
        return f"{prefix}{self.entity}: {self.reason}"

    def _format_class(self) -> str:
        if self.code is None:
            return ""
        known = LINT_CODES.get(self.code)
        return f" [{self.code}]" if known is None else f" [{self.code}, {known.tier}]"


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | ExtendEnum
    | RelaxProperty
    | TightenProperty
    | ChangeDefault
    | WidenProperty
    | ConvertProperty
    | ReembedProperty
    | AddIndex
    | AddConstraint
    | ChangeConstraint
    | DropConstraint
    | ChangeImplements
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropProperty
    | DropType
    | UnsupportedChange
)


def _format_annotations(annotations: tuple[AnnotationValue, ...]) -> str:
    written = [f"@{found.name}({quote_string(found.value or '')})" for found in annotations]
    return " ".join(written) or "none"


def _format_place(owner: TypeKey, constraint: WrittenConstraint) -> str:
    return str(owner) if constraint.place is None else f"{owner}.{constraint.place}"
