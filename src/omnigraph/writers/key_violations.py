"""The messages about invalid ids and keys of records, the same for every kind of load."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.errors.write_errors import format_earlier
from omnigraph.lang.quoting import sanitize_text
from omnigraph.rows.columns import TableShape
from omnigraph.rows.entity_ids import format_canonical_texts
from omnigraph.schema.catalog import EdgeType, NodeType

ID_MISMATCH: Final = "does not match its canonical @key id '{new}'"
ID_AMBIGUOUS: Final = "is ambiguous: it names two entities"
MISSING_HINT: Final = "load it with missing 'insert' to make it, or 'skip' to leave it out"
OWN_ID_HINT: Final = "give every record an id of its own, or none"


def build_id_mismatch(
    type_name: str, *, given: str, derived: str, problem: str, place: str | None
) -> Violation:
    """A given id that cannot stand for what the key says."""
    return Violation(
        "id",
        f"id '{sanitize_text(given)}' {problem.format(new=sanitize_text(derived))}",
        type_name=type_name,
        value=sanitize_text(given),
        entity_id=derived,
        place=place,
    )


def build_unusable_key(type_name: str, member: str, value: str, *, place: str | None) -> Violation:
    """A member of a key whose value cannot identify an entity."""
    return Violation(
        "key",
        f"{type_name}.{member}: {value} cannot identify an entity",
        type_name=type_name,
        property=member,
        value=value,
        place=place,
    )


def build_duplicate_key(
    type_: NodeType | EdgeType, shape: TableShape, row: pa.Table, *, places: tuple[str, str]
) -> Violation:
    """A record, with its columns and its id, whose key an earlier one has; the earlier one first.

    `places` are where the two are.
    """
    members = type_.key or ()
    name = members[0] if len(members) == 1 else f"({', '.join(members)})"
    texts = [
        format_canonical_texts(row[shape.key[member]].combine_chunks())[0].as_py()
        for member in members
    ]
    value = sanitize_text(", ".join(texts))
    earlier, place = places
    return Violation(
        "unique",
        f"@unique violation on {type_.name}.{name}: {value}{format_earlier(earlier)}",
        type_name=type_.name,
        property=name,
        value=value,
        entity_id=row[0][0].as_py(),
        place=place,
        earlier=earlier,
    )


def build_missing_entity(type_name: str, entity_id: str, *, place: str | None) -> Violation:
    """A record of a patch whose entity does not exist."""
    return Violation(
        "id",
        f"{type_name} '{sanitize_text(entity_id)}' does not exist",
        type_name=type_name,
        entity_id=entity_id,
        place=place,
    )


def build_duplicate_id(type_name: str, given: str, *, places: tuple[str, str]) -> Violation:
    """A record whose given id an earlier one has; `places` are where the two are."""
    earlier, place = places
    return Violation(
        "id",
        f"{type_name} '{sanitize_text(given)}' is there twice{format_earlier(earlier)}",
        type_name=type_name,
        value=sanitize_text(given),
        entity_id=given,
        place=place,
        earlier=earlier,
    )
