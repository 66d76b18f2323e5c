"""The steps of a migration plan, as data; the text of a step is its line for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import AnnotationValue
from omnigraph.schema.migration.lint_codes import LINT_CODES
from omnigraph.schema.types import PropertyType
from omnigraph.syntax.printing import quote_string


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
        return f"update the metadata of {self.owner}.{self.name}: {_format_annotations(self.annotations)}"


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
