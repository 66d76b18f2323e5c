"""Rows of one branch in the shape of the merged schema."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.schema.merging import WrittenSchema
from omnigraph.versioning.schema_store import StoredSchema
from omnigraph.writers.merge.merged_schema import (
    NewNumbers,
    SideType,
    conform_rows,
    merge_schemas,
)
from unit.schema.merges import first, migrated

CITY = "node City { name: String @key  size: I32? }"


def stored(written: WrittenSchema) -> StoredSchema:
    return StoredSchema(f"sha256:{written.source}", written.source, written.accepted)


def test_rows_get_the_columns_of_the_merged_table_and_nulls_where_a_side_has_none() -> None:
    start = first(CITY)
    ours = migrated(start, CITY.replace("I32?", "I32?  a: I32?"), numbers_from=200)
    theirs = migrated(start, CITY.replace("I32?", "I32?  b: I32?"), numbers_from=100)
    merged = merge_schemas(*map(stored, (start, ours, theirs)), numbers=NewNumbers(300))
    (type_,) = merged.types.values()
    columns = type_.shape.columns
    # Their number is below what ours has counted to, so the property has another column now.
    assert columns == {"a": "c200", "b": "c300", "name": "c2", "size": "c3"}
    assert type_.theirs == SideType(type_.key, {"c2": "c2", "c3": "c3", "c300": "c100"})
    assert not type_.is_adoptable
    rows = pa.table({"__id": ["x"], "c100": pa.array([7], pa.int32()), "c2": ["n"], "_rowid": [5]})
    shaped = conform_rows(rows, type_.theirs, type_.shape)
    assert shaped.to_pylist() == [
        {"__id": "x", "c2": "n", "c3": None, "c200": None, "c300": 7, "_rowid": 5}
    ]


def test_a_table_of_theirs_can_be_adopted_if_every_column_lies_where_it_is_looked_for() -> None:
    start = first(CITY)
    theirs = migrated(start, CITY.replace("I32?", "I32?  b: I32?"), numbers_from=100)
    merged = merge_schemas(*map(stored, (start, start, theirs)))
    (type_,) = merged.types.values()
    assert type_.is_adoptable
    assert merged.accepted == theirs.accepted
    assert [str(step) for step in merged.steps] == ["add node:City.b: I32?"]


def test_equal_schemas_and_old_ones_of_theirs_leave_ours_as_it_is() -> None:
    start = first(CITY)
    ours = migrated(start, CITY.replace("I32?", "I32?  a: I32?"), numbers_from=100)
    for theirs in (ours, start):
        merged = merge_schemas(*map(stored, (start, ours, theirs)))
        assert merged.is_ours
        assert (merged.source, merged.accepted) == (ours.source, ours.accepted)
        assert merged.steps == ()
