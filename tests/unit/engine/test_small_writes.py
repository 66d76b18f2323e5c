"""What small writes read of a large table that nobody has given an index: little."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.writers.maintain.index_builder import TAIL_ROWS_MIN

SCHEMA = """
node Person { name: String @key  email: String @unique  age: I32? }
edge Knows: Person -> Person
"""
QUERIES = """
query age($name: String) { update Person set { age: 7 } where name = $name }
query leave($name: String) { delete Person where name = $name }
query meet($a: String, $b: String) { insert Knows { from: $a, to: $b } }
"""
ROWS = 4 * TAIL_ROWS_MIN
# A name is 64 hexadecimal digits, so a column of them takes at least half of that on the disk.
COLUMN_BYTES = 32 * ROWS


def upsert(main: Branch) -> object:
    return main.load(people([ROWS // 2]), type="Person", mode="merge")


def update(main: Branch) -> object:
    return main.mutate(QUERIES, name="age", params={"name": name_of(77)})


def insert_edge(main: Branch) -> object:
    return main.mutate(QUERIES, name="meet", params={"a": name_of(5), "b": name_of(6)})


def delete_node(main: Branch, number: int = ROWS // 3) -> object:
    return main.mutate(QUERIES, name="leave", params={"name": name_of(number)})


def merge(main: Branch) -> object:
    return main.merge("review")


WRITES = (upsert, update, insert_edge, delete_node, merge)


@pytest.fixture(params=["in one process", "in units"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA, durable=False) as made:
        bulk: dict[str, Any] = {"on_error": "quarantine"} if request.param == "in units" else {}
        main = made.branch()
        main.load(people(range(ROWS)), type="Person", mode="append", **bulk)
        ends = [name_of(number) for number in range(ROWS)]
        knows = pa.table({"from": ends, "to": ends[1:] + ends[:1]})
        main.load(knows, type="Knows", mode="append", **bulk)
        settle(made)
        yield made


def test_they_look_up_and_do_not_scan(graph: Graph) -> None:
    assert {status.state.value for status in graph.index_status()} == {"fresh"}
    main, review = graph.branch(), graph.create_branch("review")
    chosen = np.random.default_rng(3).choice(ROWS, 50, replace=False)
    review.load(people(chosen.tolist()), type="Person", mode="merge")
    # What a process reads once: the ids in memory, the roots of indexes, files to verify them.
    for write in (upsert, update, insert_edge, insert_edge, insert_edge):
        write(main)
    delete_node(main, ROWS // 4)
    settle(graph)
    read = {write.__name__: bytes_read(graph, write) for write in WRITES}
    assert {name: count for name, count in read.items() if count > COLUMN_BYTES / 2} == {}
    assert graph.check().problems == ()


def people(numbers: Iterable[int]) -> pa.Table:
    names = [name_of(number) for number in numbers]
    ages = pa.array(range(len(names)), pa.int32())
    return pa.table({"name": names, "email": [f"{name}@x" for name in names], "age": ages})


def name_of(number: int) -> str:
    """Names that cannot be compressed to little."""
    return hashlib.sha256(str(number).encode()).hexdigest()


def bytes_read(graph: Graph, write: Callable[[Branch], object]) -> int:
    settle(graph)
    before = _read_so_far()
    write(graph.branch())
    return _read_so_far() - before


def _read_so_far() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def settle(graph: Graph) -> None:
    """Wait for everything that was to be done after the commits so far."""
    graph._session.resources.background.submit(lambda: None).result(timeout=120)
