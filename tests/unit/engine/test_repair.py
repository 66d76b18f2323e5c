"""What a repair says of damaged files, and how a damaged index is as good as none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.repair import Action
from omnigraph.errors import CorruptObjectError
from omnigraph.writers.maintain import index_builder

pytestmark = pytest.mark.on_disk

SCHEMA = """
node Person { name: String @key  age: I64? @index }
node Team { name: String @key }
edge In: Person -> Team
"""
COUNT = 300
OLD = "query q() { match { $p: Person { age: 30 } } return { $p.name } order { $p.name } }"
ALL = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of several commits with data files, deletions and indexes."""
    place = tmp_path_factory.mktemp("healthy") / "graph"
    with omnigraph.create(str(place), schema=SCHEMA, durable=False) as graph:
        main = graph.branch()
        main.load([person(number) for number in range(COUNT)], mode="append")
        main.load([person(COUNT), {"type": "Team", "data": {"name": "red"}}], mode="append")
        main.ensure_indices()
        main.mutate('query q() { update Person set { age: 7 } where name = "p0003" }')
    return place


def person(number: int) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": f"p{number:04}", "age": number}}


@pytest.fixture
def place(healthy: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(healthy, tmp_path / "graph"))


@pytest.fixture
def opened(place: Path) -> Iterator[Callable[[], Graph]]:
    """Opens the graph as a process does that has just started."""
    graphs: list[Graph] = []

    def open_again() -> Graph:
        graphs.append(omnigraph.open(str(place), durable=False))
        return graphs[-1]

    yield open_again
    for graph in graphs:
        graph.close()


def flip(path: Path, at: int = 40) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 16
    path.write_bytes(data)


def needed(graph: Graph, type_name: str, part: str) -> list[str]:
    """The files of the newest version of a type, below a folder of its table."""
    pin = graph.branch().snapshot().view.snapshot.pins[f"node:{type_name}"]
    tables = graph._session.resources.storage.tables
    return sorted(path for path in tables.list_references(pin) if f"/{part}" in path)


def whole(graph: Graph, back: int) -> str:
    return list(graph.branch().commits())[back].id


# How many commits before the newest one is the first without the file, of those that need a file.
DAMAGED = {"_versions/d": 1, "_deletions/": 1}


@pytest.mark.parametrize("part", DAMAGED)
def test_a_repair_names_a_damaged_file_and_the_newest_whole_commit(
    place: Path, opened: Callable[[], Graph], part: str
) -> None:
    graph = opened()
    (path,) = needed(graph, "Person", part)
    commit = whole(graph, DAMAGED[part])
    graph.close()
    flip(place / path)
    graph = opened()
    report = graph.repair(confirm=True, force=True)
    (damaged,) = report.damaged
    assert damaged.path == path
    assert "its digest is not the one" in damaged.reason
    assert damaged.advice == "restore it from a copy of the graph"
    (broken,) = report.branches
    assert (broken.branch, broken.types, broken.whole_commit) == ("main", ("node:Person",), commit)
    # What it names can be read, and gone on from.
    rescued = graph.create_branch("rescued", source=commit)
    assert len(rescued.query(ALL).to_pylist()) == COUNT + 1
    rescued.mutate('query q() { delete Person where name = "p0004" }')
    flip(place / path)
    assert opened().repair().damaged == ()


def test_without_a_whole_commit_a_file_has_to_come_from_a_copy(
    place: Path, opened: Callable[[], Graph]
) -> None:
    path = max(needed(opened(), "Person", "data/"), key=lambda each: (place / each).stat().st_size)
    flip(place / path)
    (broken,) = opened().repair().branches
    commits = list(opened().branch().commits())
    # The first commit has no rows yet.
    assert (broken.types, broken.whole_commit) == (("node:Person",), commits[-1].id)


def test_a_missing_file_is_damage_too(place: Path, opened: Callable[[], Graph]) -> None:
    (path,) = needed(opened(), "Team", "data/")
    (place / path).unlink()
    report = opened().repair()
    assert [(each.path, each.reason[:13]) for each in report.damaged] == [(path, "it is missing")]
    assert [each.types for each in report.branches] == [("node:Team",)]


def test_damage_of_older_commits_alone_breaks_no_branch(
    place: Path, opened: Callable[[], Graph]
) -> None:
    graph = opened()
    (path,) = needed(graph, "Person", "_deletions/")
    graph.branch().mutate('query q() { update Person set { age: 8 } where name = "p0005" }')
    graph.close()
    assert path not in needed(opened(), "Person", "_deletions/")
    flip(place / path)
    report = opened().repair()
    assert [each.path for each in report.damaged] == [path]
    assert "only older commits need it" in report.damaged[0].advice
    assert report.branches == ()


def test_a_damaged_newest_record_leads_to_the_commit_before(
    place: Path, opened: Callable[[], Graph]
) -> None:
    graph = opened()
    commit, version = whole(graph, 1), graph.branch().head.version
    graph.close()
    flip(place / f"__manifest/main.0/{version:020}.json", 60)
    report = opened().repair()
    assert any(each.path.endswith(f"{version:020}.json") for each in report.damaged)
    assert [(each.branch, each.whole_commit) for each in report.branches] == [("main", commit)]


def indexes_of(place: Path) -> list[Path]:
    return sorted(place.glob("t/*/_indices/*/*"))


def answers(graph: Graph) -> list[Any]:
    main = graph.branch()
    return [main.query(OLD).to_pylist(), main.query(ALL).to_pylist(), b"".join(main.export())]


def damage_indexes(place: Path) -> None:
    for path in indexes_of(place):
        flip(path, -20)


def test_reads_answer_without_a_damaged_index(place: Path, opened: Callable[[], Graph]) -> None:
    right = answers(opened())
    damage_indexes(place)
    assert answers(opened()) == right


WRITES: dict[str, Callable[[Graph], object]] = {
    "update": lambda graph: graph.branch().mutate(
        'query q() { update Person set { age: 30 } where name = "p0031" }'
    ),
    "delete": lambda graph: graph.branch().mutate(
        'query q() { delete Person where name = "p0032" }'
    ),
    "insert": lambda graph: graph.branch().mutate(
        'query q() { insert Person { name: "new", age: 30 } }'
    ),
    "merge load": lambda graph: graph.branch().load(
        [{"type": "Person", "data": {"name": "p0033", "age": 30}}], mode="merge"
    ),
    "edge": lambda graph: graph.branch().load(
        [{"edge": "In", "from": "p0001", "to": "red"}], mode="append"
    ),
    "index build": lambda graph: graph.branch().ensure_indices(),
    "optimize": lambda graph: graph.branch().optimize(),
    "repair": lambda graph: graph.repair(confirm=True),
    "clean-up": lambda graph: graph.cleanup(keep=1, dry_run=False, grace=0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_succeeds_beside_a_damaged_index(
    place: Path, tmp_path: Path, write: Callable[[Graph], object]
) -> None:
    other = shutil.copytree(place, tmp_path / "other")
    damage_indexes(place)
    found = []
    for each in (place, other):
        with omnigraph.open(str(each), durable=False) as graph:
            write(graph)
        with omnigraph.open(str(each), durable=False) as graph:
            found.append(answers(graph)[:2])
    assert found[0] == found[1]


@pytest.mark.parametrize("healing", ["index build", "optimize", "repair"])
def test_a_damaged_index_is_built_anew(
    place: Path, opened: Callable[[], Graph], healing: str
) -> None:
    right = answers(opened())
    damage_indexes(place)
    graph = opened()
    kinds = {problem.kind for problem in graph.check().problems}
    assert kinds == {"index"}
    found = [each.action for each in graph.repair().derived]
    assert found == [Action.PREVIEW] * len(found)
    assert len(found) >= 3
    WRITES[healing](graph)
    graph.close()
    graph = opened()
    assert graph.check(deep=True).problems == ()
    assert graph.repair().derived == ()
    assert answers(graph) == right
    assert {each.state for each in graph.index_status() if each.total_rows} == {"fresh"}


def test_a_write_to_a_large_table_has_its_damaged_indexes_built_anew(
    place: Path, opened: Callable[[], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_indexes(place)
    monkeypatch.setattr(index_builder, "TAIL_ROWS_MIN", 10)
    graph = opened()
    WRITES["update"](graph)
    graph._session.resources.background.submit(lambda: None).result(timeout=60)
    graph.close()
    assert [each for each in opened().repair().derived if "Person" in each.path] == []


def test_a_damaged_index_of_damaged_rows_is_left(place: Path, opened: Callable[[], Graph]) -> None:
    path = max(needed(opened(), "Person", "data/"), key=lambda each: (place / each).stat().st_size)
    damage_indexes(place)
    flip(place / path)
    graph = opened()
    report = graph.repair(confirm=True)
    actions = {each.path.split("/")[1].partition("-")[0]: each.action for each in report.derived}
    assert actions == {"Person": Action.NONE, "Team": Action.HEALED}
    with pytest.raises(CorruptObjectError, match=Path(path).name):
        graph.branch().query(ALL)
