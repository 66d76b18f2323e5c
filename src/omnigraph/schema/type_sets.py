"""Sets of node types: what a variable has whose nodes may be of several types.

A set is named by its types, as in `(Author | Book)`, and a catalog knows it as a node type: it has
the properties of its members, null where a member lacks one. A property that has different types
in two members is not one of the set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from omnigraph.schema.property_types import EnumType, PropertyType, Scalar, ScalarType

_OPENING, _SEPARATOR, _CLOSING = "(", " | ", ")"
# The name of the set of all node types, as texts spell it.
ANY_TYPE: Final = "*"


def name_type_set(types: Iterable[str]) -> str:
    """The name of a set, or of its only type."""
    names = sorted(set(types))
    return names[0] if len(names) == 1 else f"{_OPENING}{_SEPARATOR.join(names)}{_CLOSING}"


def is_type_set(type_name: str) -> bool:
    """Whether a name is one of a set of several types."""
    return type_name.startswith(_OPENING)


def list_member_types(type_name: str) -> tuple[str, ...]:
    """The types of a set, sorted; a type by itself is its only one."""
    if not is_type_set(type_name):
        return (type_name,)
    return tuple(type_name[len(_OPENING) : -len(_CLOSING)].split(_SEPARATOR))


def merge_types(types: Iterable[PropertyType]) -> PropertyType | None:
    """The one type that covers all of them: enum sets are united, an enum and a String make one."""
    distinct = list(dict.fromkeys(types))
    is_nullable = any(each.is_nullable for each in distinct)
    values = list(dict.fromkeys(each.value for each in distinct))
    if len(values) == 1:
        return PropertyType(values[0], is_nullable)
    if any(each.scalar is not Scalar.STRING for each in distinct):
        return None
    if ScalarType(Scalar.STRING) in values:
        return PropertyType(ScalarType(Scalar.STRING), is_nullable)
    united = {word for value in values if isinstance(value, EnumType) for word in value.values}
    return PropertyType(EnumType(tuple(sorted(united))), is_nullable)
