"""The types of property values, in both languages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

VECTOR_DIMENSION_MAX = 2**31 - 1


class Scalar(StrEnum):
    """A base type; its value is its spelling in `.pg` and `.gq`."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATETIME = "DateTime"
    DATE = "Date"
    # Of expressions alone: nothing is declared so.
    DURATION = "Duration"

    # That of an enum calls Python code, and compilers look types up all the time.
    __hash__ = str.__hash__


DECLARED_SCALARS = tuple(scalar for scalar in Scalar if scalar is not Scalar.DURATION)
INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMERIC = INTEGERS | FLOATS

# Inclusive bounds of the integer types.
INTEGER_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One base value."""

    scalar: Scalar

    def __str__(self) -> str:
        return str(self.scalar)


@dataclass(frozen=True, slots=True)
class EnumType:
    """A string from a closed set; `values` are sorted and unique."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"enum({', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class VectorType:
    """A fixed number of 32-bit floats."""

    dimension: int

    def __str__(self) -> str:
        return f"Vector({self.dimension})"


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of base values."""

    element: Scalar

    def __str__(self) -> str:
        return f"[{self.element}]"


ValueType = ScalarType | EnumType | VectorType | ListType


@dataclass(frozen=True, slots=True)
class PropertyType:
    """A value type and whether it may be null."""

    value: ValueType
    is_nullable: bool = False

    def __str__(self) -> str:
        return f"{self.value}?" if self.is_nullable else str(self.value)

    @property
    def scalar(self) -> Scalar | None:
        """The base type of a scalar (an enum is a String); None for lists and vectors."""
        value = self.value
        if isinstance(value, ScalarType):
            return value.scalar
        return Scalar.STRING if isinstance(value, EnumType) else None

    @property
    def is_blob(self) -> bool:
        """Whether values are blobs."""
        return self.scalar is Scalar.BLOB

    @property
    def is_numeric(self) -> bool:
        """Whether values are single numbers."""
        return self.scalar in NUMERIC

    def as_nullable(self, is_nullable: bool = True) -> PropertyType:
        """The same type with another nullability."""
        if self.is_nullable is is_nullable:
            return self
        value = self.value
        if isinstance(value, ScalarType):
            return make_scalar_type(value.scalar, is_nullable=is_nullable)
        return PropertyType(value, is_nullable)


@cache
def make_scalar_type(scalar: Scalar, *, is_nullable: bool = False) -> PropertyType:
    """The property type of one base value."""
    return PropertyType(ScalarType(scalar), is_nullable)


def arrow_name_of(scalar: Scalar) -> str:
    """What messages call a base type: its name in Arrow where it has one."""
    return scalar.replace("I", "Int").replace("U", "UInt").replace("F", "Float")
