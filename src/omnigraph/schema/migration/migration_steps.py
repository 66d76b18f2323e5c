"""The steps of a migration plan, as data, and the codes that classify risky changes.

The text of a step is its line for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, assert_never

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Severity
from omnigraph.lang.text_printer import quote_string
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import AnnotationValue, ConstraintKind
from omnigraph.schema.property_types import PropertyType
from omnigraph.schema.schema_shape import (
    JsonObject,
    encode_annotations,
    encode_member_constraint,
    encode_type,
)

REQUIRED_PROPERTY = "OG-MF-103"
TYPE_CHANGE = "OG-MF-106"


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
        LintCode(REQUIRED_PROPERTY, Tier.VALIDATED, is_reserved=False),
        LintCode("OG-MF-104", Tier.VALIDATED),
        LintCode(TYPE_CHANGE, Tier.DESTRUCTIVE, is_reserved=False),
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
    """A new nullable property."""

    owner: TypeKey
    name: str
    type: PropertyType

    def __str__(self) -> str:
        return f"add {self.owner}.{self.name}: {self.type}"


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
    | AddIndex
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropProperty
    | DropType
    | UnsupportedChange
)


def _format_annotations(annotations: tuple[AnnotationValue, ...]) -> str:
    written = [f"@{found.name}({quote_string(found.value or '')})" for found in annotations]
    return " ".join(written) or "none"


def describe_step(step: Step) -> JsonObject:
    """One step with its `kind` and fields in snake case."""
    match step:
        case AddType() | RenameType() | UpdateTypeMetadata() | DropType():
            return _describe_type_step(step)
        case AddProperty() | RenameProperty() | ExtendEnum():
            return _describe_property_step(step)
        case UpdatePropertyMetadata(owner, name, annotations):
            return _describe_owner("update_property_metadata", owner, name) | _describe_annotations(
                annotations
            )
        case DropProperty(owner, name, mode):
            return _describe_owner("drop_property", owner, name) | {"mode": mode}
        case AddIndex(owner, members):
            constraint = encode_member_constraint(ConstraintKind.INDEX, members)
            return _describe_owner("add_constraint", owner) | {"constraint": constraint}
        case UnsupportedChange(entity, reason, code):
            document = {"kind": "unsupported_change", "entity": entity, "reason": reason}
            return document if code is None else document | {"code": code}
        case _:
            assert_never(step)


def _describe_type_step(step: AddType | RenameType | UpdateTypeMetadata | DropType) -> JsonObject:
    kind = str(step.type.kind)
    name = step.type.name
    match step:
        case AddType():
            return {"kind": "add_type", "type_kind": kind, "name": name}
        case RenameType(_, old_name):
            return {"kind": "rename_type", "type_kind": kind, "from": old_name, "to": name}
        case UpdateTypeMetadata(_, annotations):
            document = {"kind": "update_type_metadata", "type_kind": kind, "name": name}
            return document | _describe_annotations(annotations)
        case DropType(_, mode):
            return {"kind": "drop_type", "type_kind": kind, "name": name, "mode": mode}
        case _:
            assert_never(step)


def _describe_property_step(step: AddProperty | RenameProperty | ExtendEnum) -> JsonObject:
    match step:
        case AddProperty(owner, name, type_):
            return _describe_owner("add_property", owner, name) | {
                "property_type": encode_type(type_)
            }
        case RenameProperty(owner, old_name, name):
            return _describe_owner("rename_property", owner) | {"from": old_name, "to": name}
        case ExtendEnum(owner, name, added_values):
            return _describe_owner("extend_enum", owner, name) | {
                "added_values": list(added_values)
            }
        case _:
            assert_never(step)


def _describe_owner(kind: str, owner: TypeKey, name: str | None = None) -> JsonObject:
    document = {"kind": kind, "type_kind": str(owner.kind), "type_name": owner.name}
    return document if name is None else document | {"property_name": name}


def _describe_annotations(annotations: tuple[AnnotationValue, ...]) -> JsonObject:
    return {"annotations": encode_annotations(annotations)}
