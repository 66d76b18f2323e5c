"""A small table of people, for tests of tables and of the substrate below them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from omnigraph.storage.tables.lance_tables import IndexSpec, Pin, Tables

SCHEMA = pa.schema(
    [
        pa.field("__id", pa.string(), nullable=False),
        pa.field("age", pa.int64()),
        pa.field("bio", pa.string()),
    ]
)
PATH = "t/Person-1a2b3c4d.lance"


def with_index(tables: Tables, pin: Pin, column: str, *, name: str) -> Pin:
    """The version whose index of a column covers all its rows."""
    work = tables.build_indexes(pin, [IndexSpec(name, column)])
    found = pin if work is None else tables.replay(work, pin)
    assert found is not None
    return found


def people(numbers: Iterable[int], *, age: int | None = None) -> pa.Table:
    """One row per number: id `p7`, age 7 unless given, a bio that names the age."""
    wanted = list(numbers)
    ages = [number if age is None else age for number in wanted]
    columns = [[f"p{n}" for n in wanted], ages, [f"aged year{n}" for n in ages]]
    return pa.table(columns, schema=SCHEMA)


def start(tables: Tables, *numbers: Iterable[int]) -> Pin:
    """A new table with one fragment per group of people."""
    pin = tables.create(PATH, SCHEMA)
    for group in numbers:
        pin = add(tables, pin, group)
    return pin


def add(tables: Tables, pin: Pin, numbers: Iterable[int]) -> Pin:
    return tables.append(pin, [tables.write(pin, people(numbers))])


def row_ids(tables: Tables, pin: Pin, numbers: Iterable[int]) -> pa.Array:
    found = tables.open(pin).find("__id", pa.array([f"p{n}" for n in numbers], pa.string()))
    return found["_rowid"].combine_chunks()


def update(tables: Tables, pin: Pin, numbers: Iterable[int], *, age: int) -> Pin:
    wanted = list(numbers)
    staged = tables.write(pin, people(wanted, age=age))
    return tables.replace(pin, dead=row_ids(tables, pin, wanted), staged=[staged])


def delete(tables: Tables, pin: Pin, numbers: Iterable[int]) -> Pin:
    return tables.replace(pin, dead=row_ids(tables, pin, numbers))


def ages(tables: Tables, pin: Pin) -> dict[str, int]:
    """Every person's age; a person who is there twice fails the test."""
    rows = tables.open(pin).scan(columns=["__id", "age"])
    found = dict(zip(rows["__id"].to_pylist(), rows["age"].to_pylist(), strict=True))
    assert len(found) == len(rows), "an id is in the table twice"
    return found


def compact(tables: Tables, pin: Pin) -> Pin:
    """Run compactions until none is useful."""
    for _ in range(10):
        plan = tables.plan_compaction(pin)
        if plan is None:
            return pin
        done = tables.replay(tables.compact(plan), pin)
        assert done is not None
        pin = done
    raise AssertionError("compaction does not come to an end")


def dataset_of(tables: Tables, pin: Pin) -> Any:
    """Lance's own view of a version, to look behind the gateway."""
    return tables._handles.get(pin)
