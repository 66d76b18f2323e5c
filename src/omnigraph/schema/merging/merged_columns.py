"""The columns of a merged schema: where the tables of ours have what was converted on a side.

A property keeps the column of ours as long as that holds values of the merged type. Otherwise it
gets the column of theirs, whose table may then be adopted, unless ours has come as far by itself:
then the name may stand in a table of ours, with other values, and the property gets another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.schema.accepted_schema import (
    AcceptedSchema,
    TypeKind,
    properties_of,
    types_of,
)
from omnigraph.schema.catalog import Property
from omnigraph.schema.converted_columns import (
    count_columns,
    name_first_column,
    name_next_column,
    name_next_vector_column,
)
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.property_types import ValueType
from omnigraph.schema.schema_identity import index_embeds
from omnigraph.schema.type_conversions import are_stored_alike, is_filled


@dataclass(frozen=True, slots=True)
class _Place:
    """A property on one side: its number there, its type and its column."""

    number: int
    declared: Property
    column: str
    embed: tuple[int, str] | None = None

    def holds(self, value: ValueType, embed: tuple[int, str] | None) -> bool:
        """Whether its column has values of a type; vectors, by one model of one text."""
        if embed is not None and self.embed is not None and embed != self.embed:
            return False
        return are_stored_alike(self.type, value)

    @property
    def type(self) -> ValueType:
        """The type of its values."""
        return self.declared.type.value


def merge_columns(
    merged: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> dict[int, str]:
    """The converted columns of a merged schema that has its numbers already."""
    mine, others = _index_places(ours, merged), _index_places(theirs, merged)
    columns = {}
    embeds = index_embeds(merged)
    for number, value in _iter_types(merged):
        wanted = (number, value, embeds.get(number))
        column = _choose_column(wanted, mine.get(number), others.get(number))
        if column != name_first_column(number):
            columns[number] = column
    return columns


def _choose_column(
    wanted: tuple[int, ValueType, tuple[int, str] | None],
    mine: _Place | None,
    other: _Place | None,
) -> str:
    number, value, embed = wanted
    has_values = other is not None and other.number == number and other.holds(value, embed)
    if mine is not None and mine.holds(value, embed):
        is_filled_there = other is not None and is_filled(mine.declared, other.declared)
        if other is None or not (has_values and is_filled_there and _is_ahead(other, mine)):
            return mine.column
    if other is not None and has_values and _is_ahead(other, mine):
        return other.column
    if mine is None:
        return name_first_column(number)
    if mine.embed is not None and embed is not None:
        return name_next_vector_column(
            number, mine.column, *([] if other is None else [other.column])
        )
    return name_next_column(number, value, mine.column, *([] if other is None else [other.column]))


def _is_ahead(other: _Place, mine: _Place | None) -> bool:
    """Whether no table of ours has the column of theirs."""
    return mine is None or count_columns(mine.column) < count_columns(other.column)


def _index_places(side: AcceptedSchema, merged: AcceptedSchema) -> dict[int, _Place]:
    """Every property of a side that the merged schema has, by its number there."""
    known, found = map_identities(side, merged), {}
    embeds, numbers = index_embeds(side), dict[int, int]()
    for key, type_ in types_of(side.catalog):
        now = known.types.get(key)
        if now is None or key.kind is TypeKind.INTERFACE:
            continue
        before, after = side.identities[key].property_ids, merged.identities[now].property_ids
        for old, new in known.properties_of(key).items():
            place = _Place(before[old], type_.properties[old], side.find_column(before[old]))
            found[after[new]] = place
            numbers[before[old]] = after[new]
    for number, (source, model) in embeds.items():
        if number in numbers and source in numbers:
            place = found[numbers[number]]
            found[numbers[number]] = replace(place, embed=(numbers[source], model))
    return found


def _iter_types(merged: AcceptedSchema) -> Iterator[tuple[int, ValueType]]:
    for key, type_ in types_of(merged.catalog):
        ids = merged.identities[key].property_ids
        if key.kind is not TypeKind.INTERFACE:
            yield from ((ids[each.name], each.type.value) for each in properties_of(type_))
