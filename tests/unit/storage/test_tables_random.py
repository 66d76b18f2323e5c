"""Random histories of one table, compared with a dictionary after every step."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import people as world
from omnigraph.storage.tables.lance_tables import Compacted, Pin, Tables

STEPS = 60


class History:
    """One table and what should be in it; a compaction may be left open across other steps."""

    def __init__(self, tables: Tables, choice: random.Random) -> None:
        self.tables = tables
        self.choice = choice
        self.pin: Pin = world.start(tables, range(1500))
        self.expected = {n: n for n in range(1500)}
        self.pending: Compacted | None = None
        self.next = 10_000
        self._index("__id")
        self._index("age")
        self._index("bio")

    def insert(self) -> None:
        numbers = range(self.next, self.next + self.choice.choice([1, 1, 1, 7, 300]))
        self.next = numbers.stop
        self.pin = world.add(self.tables, self.pin, numbers)
        self.expected |= {n: n for n in numbers}

    def insert_many_times(self) -> None:
        for _ in range(self.choice.randrange(40)):
            self.insert()

    def update(self) -> None:
        numbers = self._some()
        age = self.choice.randrange(100_000, 999_999)
        self.pin = world.update(self.tables, self.pin, numbers, age=age)
        self.expected |= dict.fromkeys(numbers, age)

    def delete(self) -> None:
        numbers = self._some()
        self.pin = world.delete(self.tables, self.pin, numbers)
        for number in numbers:
            del self.expected[number]

    def delete_newest(self) -> None:
        """Often whole fragments, so that the highest id goes out of use."""
        newest = sorted(self.expected)[-self.choice.randrange(1, 320) :]
        self.pin = world.delete(self.tables, self.pin, newest)
        for number in newest:
            del self.expected[number]

    def plan(self) -> None:
        found = self.tables.plan_compaction(self.pin)
        self.pending = self.pending if found is None else self.tables.compact(found)

    def replay(self) -> None:
        if self.pending is not None:
            self.pin = self.tables.replay(self.pending, self.pin) or self.pin
            self.pending = None

    def extend(self) -> None:
        self._index(self.choice.choice(["__id", "age", "bio"]))

    def overwrite(self) -> None:
        if self.choice.random() < 0.9:
            return
        indexes = self.tables.open(self.pin).indexes
        staged = self.tables.write(self.pin, world.people(range(400)))
        self.pin = self.tables.overwrite(self.pin, [staged])
        self.expected = {n: n for n in range(400)}
        for index in indexes:
            self._index(index.column)

    def check(self) -> None:
        assert world.ages(self.tables, self.pin) == {f"p{n}": a for n, a in self.expected.items()}
        assert self.pin.rows == len(self.expected)
        table = self.tables.open(self.pin)
        sample = self.choice.sample(sorted(self.expected), min(3, len(self.expected)))
        for number in [*sample, 77_777]:
            age = self.expected.get(number, number)
            owners = sorted(f"p{n}" for n, a in self.expected.items() if a == age)
            assert sorted(table.scan(filter=f"age = {age}")["__id"].to_pylist()) == owners
            found = table.find("__id", pa.array([f"p{number}"]))
            assert len(found) == (number in self.expected)
            bio = world.people([number], age=age)["bio"][0].as_py()
            assert sorted(table.scan(filter=f"bio = '{bio}'")["__id"].to_pylist()) == owners

    def _index(self, column: str) -> None:
        self.pin = world.with_index(self.tables, self.pin, column, name=f"by_{column}")

    def _some(self) -> list[int]:
        count = min(len(self.expected), self.choice.choice([1, 1, 2, 20, 250]))
        return self.choice.sample(sorted(self.expected), count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_history_shows_what_was_written(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    history = History(Tables(str(tmp_path / "graph"), is_durable=False), choice)
    moves = [
        history.insert,
        history.insert_many_times,
        history.update,
        history.update,
        history.delete,
        history.delete_newest,
        history.plan,
        history.plan,
        history.replay,
        history.extend,
        history.overwrite,
    ]
    high_water = 0
    for _ in range(STEPS):
        choice.choice(moves)()
        history.check()
        assert history.pin.high_water >= high_water
        high_water = history.pin.high_water
