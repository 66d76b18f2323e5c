"""What a page of the feed reads: what it shows, however many commits lie behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from omnigraph import Branch
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Storage, open_storage
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects
from places import fresh_uri, options
from unit.engine.company import company, person


class CountingObjects:
    """Objects that count how often they are read and listed."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.reads: list[str] = []

    @property
    def uri(self) -> str:
        return self._objects.uri

    def get(self, path: str) -> bytes | None:
        self.reads.append(path)
        return self._objects.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        self.reads.append(path)
        return self._objects.get_range(path, start, length)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        self.reads.append(prefix)
        return self._objects.list(prefix, after=after)

    def put_new(self, path: str, data: bytes) -> bool:
        return self._objects.put_new(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._objects.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._objects.replace(path, data)

    def delete(self, paths: Iterable[str]) -> None:
        self._objects.delete(paths)


@contextmanager
def counted(uri: str) -> Iterator[tuple[Branch, CountingObjects]]:
    """A branch in a process that knows nothing but the head, and what is read from then on."""
    storage = open_storage(uri, is_durable=False, options=options(uri))
    objects = CountingObjects(storage.objects)
    with open_on(Storage(objects, storage.tables)) as graph:
        main = graph.branch()
        main.changes()
        objects.reads.clear()
        yield main, objects


@pytest.fixture(scope="module")
def cursors() -> Iterator[dict[int, tuple[str, str]]]:
    """Graphs with few and with many commits, and the cursor before their newest one."""
    found = {}
    graphs = []
    for commits in (5, 80):
        graph = company(fresh_uri())
        graphs.append(graph)
        main = graph.branch()
        for number in range(commits):
            main.load([person(f"p{number}")], mode="append")
        cursor = main.changes().cursor
        main.load([person("late"), person("Ada", 1)], mode="merge")
        assert cursor is not None
        found[commits] = graph.uri, cursor
    yield found
    for graph in graphs:
        graph.close()


def test_a_poll_with_nothing_new_is_one_look_for_the_next_record(
    cursors: dict[int, tuple[str, str]],
) -> None:
    for uri, _ in cursors.values():
        with counted(uri) as (main, objects):
            assert main.changes().caught_up
            assert len(objects.reads) == 1


def test_a_page_reads_its_own_records_and_no_older_ones(
    cursors: dict[int, tuple[str, str]],
) -> None:
    reads = {}
    for commits, (uri, cursor) in cursors.items():
        with counted(uri) as (main, objects):
            [block] = main.changes(cursor=cursor).blocks
            assert [change.id for change in block.changes] == ["Ada", "late"]
            reads[commits] = len(objects.reads)
    assert reads[5] == reads[80] <= 4


def test_a_poll_of_a_long_backlog_reads_no_more_records_than_it_may(
    cursors: dict[int, tuple[str, str]],
) -> None:
    uri, _ = cursors[80]
    with counted(uri) as (main, objects):
        page = main.changes(start="beginning", commits_max=3)
        assert (len(page.blocks), page.caught_up) == (3, False)
        records = {path for path in objects.reads if path.endswith(".json")}
        # The three, the one before them, and the look for the next one.
        assert len(records) <= 5
