"""Clean-up beside branches: merges that need old commits, and everything a table may consist of."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from faults.world import MUTATIONS, person, problems
from omnigraph import Graph, errors
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import MAIN
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.log import STALE_S_MAX, Log
from omnigraph.versioning.ref_events import RefEvents
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.tags import NewName
from unit.engine.aging_graph import Aging, add, numbered, people, versions

PHOTO = "base64:" + base64.b64encode(bytes(range(256)) * 2_000).decode()
MANY = 1_200
BULK = 100_000


@pytest.fixture
def aging(tmp_path: Path) -> Aging:
    return Aging(tmp_path / "g.omni")


def _exported(graph: Graph, branch: str = "main") -> list[bytes]:
    return sorted(b"".join(graph.branch(branch).export()).splitlines())


def _cleaned(aging: Aging, graph: Graph, keep: int = 1) -> Graph:
    """The graph as a new process has it, after a clean-up two days later."""
    aging.later()
    assert graph.cleanup(keep=keep, dry_run=False).bytes > 0
    return aging.open()


@pytest.mark.parametrize("way", ["review into main", "main into review", "both"])
def test_branches_that_parted_long_ago_can_still_be_merged(aging: Aging, way: str) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 3))
    review = graph.create_branch("review")
    add(review, "r1", "r2")
    add(graph.branch(), *numbered(4, 9))
    graph.branch().mutate(MUTATIONS, name="leave", params={"name": "p001"})
    other = _cleaned(aging, graph)
    merged = ["r1", "r2", *numbered(2, 9)]
    if way != "review into main":
        assert other.branch("review").merge("main").outcome == "merged"
        assert sorted(people(other.branch("review"))) == sorted(merged)
    if way != "main into review":
        other.branch().merge("review")
        assert sorted(people(other.branch())) == sorted(merged)
    assert list(problems(aging.open())) == []


def test_a_large_load_since_two_branches_parted_can_still_be_merged(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    graph.create_branch("review").load([person("r")], mode="append")
    names = pa.array(range(BULK), pa.int32()).cast(pa.string())
    graph.branch().load(pa.table({"name": names}), type="Team", mode="append")
    graph.branch().load([person(f"m{n}") for n in range(MANY)], mode="append")
    graph.branch().optimize()
    other = _cleaned(aging, graph)
    other.branch("review").merge("main")
    assert other.branch("review").count("Team") == BULK
    assert other.branch("review").count("Person") == MANY + 2
    assert list(problems(aging.open())) == []


def test_branches_that_were_merged_many_times_keep_only_their_last_base(aging: Aging) -> None:
    graph = aging.create()
    main, review = graph.branch(), graph.create_branch("review")
    for number in range(6):
        add(main, f"m{number}")
        review.merge("main")
        add(review, f"r{number}")
    other = _cleaned(aging, graph)
    manifests = [name for name in aging.files() if "Person" in name and "/_versions/d" in name]
    # The heads of both, where they parted, and the commit that was merged last.
    assert len(manifests) <= 4
    other.branch().merge("review")
    assert people(other.branch()) == people(other.branch("review"))
    assert list(problems(aging.open())) == []


def test_what_a_deleted_branch_was_merged_for_stays(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    review = graph.create_branch("review")
    add(review, "bob")
    other = graph.create_branch("other", source="review")
    add(other, "cem")
    graph.branch().load([person("dia")], mode="append")
    graph.branch().merge("review", delete_branch=True)
    cleaned = _cleaned(aging, graph)
    assert cleaned.branch().merge("other").outcome == "merged"
    assert people(cleaned.branch()) == ["ada", "bob", "cem", "dia"]
    cleaned.delete_branch("other")
    again = _cleaned(aging, cleaned)
    # The second parent of the kept merge is gone with its branch, which is as it should be.
    assert list(problems(again)) == []


def test_blobs_indexes_deletions_and_renamed_types_survive(aging: Aging) -> None:
    graph = aging.create()
    main = graph.branch()
    main.load([person("ada", photo=PHOTO, age=36), person("bob", age=5)], mode="append")
    main.load([person(f"m{n}", age=n % 100) for n in range(MANY)], mode="append")
    main.ensure_indices()
    main.load([{"edge": "Knows", "from": "ada", "to": "bob"}], mode="append")
    main.mutate(MUTATIONS, name="leave", params={"name": "m7"})
    main.mutate(MUTATIONS, name="birthday", params={"age": 50})
    main.optimize()
    main.mutate(MUTATIONS, name="age", params={"name": "ada", "age": 37})
    before = _exported(graph)
    other = _cleaned(aging, graph)
    assert _exported(other) == before
    assert other.branch().blob("node", "Person", "ada", "photo").read() == base64.b64decode(
        PHOTO.removeprefix("base64:")
    )
    assert all(status.covered_rows for status in other.index_status() if status.total_rows)
    assert list(problems(other)) == []
    add(other.branch(), "next")
    other.branch().optimize()
    assert list(problems(aging.open())) == []


def test_a_repair_brings_back_the_first_checkpoint_of_a_branch(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), "ada")
    graph.create_branch("review")
    [path] = [name for name in aging.files() if "/review." in name and "/checkpoints/" in name]
    (aging.folder / path).unlink()
    other = aging.open()
    assert [found.path for found in other.repair(confirm=True).derived] == [path]
    assert path in aging.files()
    assert other.repair(confirm=True).derived == ()


def test_the_table_of_a_dropped_type_goes_whole(aging: Aging) -> None:
    graph = aging.create()
    graph.branch().load([{"type": "Note", "data": {"text": "x"}}], mode="append")
    less = aging.schema.replace("node Note {\n  text: String\n}\n", "")
    graph.branch().apply_schema(less)
    assert any("/Note-" in f"/{name}" for name in aging.files())
    other = _cleaned(aging, graph)
    assert not any("/Note-" in f"/{name}" for name in aging.files())
    assert list(problems(other)) == []


def test_a_graph_of_many_types_can_be_folded_from_where_its_history_begins(tmp_path: Path) -> None:
    types = "".join(f"node T{n:02} {{ name: String @key }}\n" for n in range(70))
    aging = Aging(tmp_path / "wide.omni", schema=types)
    graph = aging.create()
    for number in range(80):
        record = {"type": f"T{number % 70:02}", "data": {"name": f"n{number}"}}
        graph.branch().load([record], mode="append")
        if number == 40:
            graph.create_branch("review").load(
                [{"type": "T00", "data": {"name": "r"}}], mode="append"
            )
    states = {seq: graph.snapshot(seq).at.pins for seq in (75, 78, 80)}
    other = _cleaned(aging, graph, keep=6)
    assert versions(other.branch()) == [80, 79, 78, 77, 76, 75]
    assert {seq: other.snapshot(seq).at.pins for seq in states} == states
    assert other.branch("review").count("T00") == 2
    for hint in aging.folder.rglob("latest.json"):
        hint.unlink()
    again = aging.open()
    again.branch().load([{"type": "T01", "data": {"name": "last"}}], mode="append")
    assert list(problems(again)) == []


def test_a_process_that_slept_through_a_clean_up_goes_on_at_the_newest_commit(
    tmp_path: Path,
) -> None:
    aging = Aging(tmp_path / "g.omni", grace_s=0.0)
    graph = aging.create()
    sleepers = [aging.open() for _ in range(2)]
    for sleeper in sleepers:
        assert people(sleeper.branch()) == []
    graph.tag("first", graph.snapshot(0))
    add(graph.branch(), *numbered(1, 30))
    graph.cleanup(keep=1, dry_run=False)
    time.sleep(STALE_S_MAX)
    assert people(sleepers[0].branch()) == list(numbered(1, 30))
    add(sleepers[1].branch(), "woken")
    assert people(graph.branch()) == [*numbered(1, 30), "woken"]
    assert list(problems(aging.open())) == []


class LettingGo:
    """A store on which a collector that saw no lease lets go of everything once one is put."""

    def __init__(self, inner: Objects) -> None:
        self.uri = inner.uri
        self._inner = inner

    def get(self, path: str) -> bytes | None:
        return self._inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return self._inner.get_range(path, start, length)

    def put_new(self, path: str, data: bytes) -> bool:
        is_new = self._inner.put_new(path, data)
        if path.startswith(layout.LEASES):
            Floors(self._inner).put(MAIN.id, 5)
        return is_new

    def put(self, path: str, data: bytes) -> None:
        self._inner.put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._inner.replace(path, data)

    def list(self, prefix: str, *, after: str | None = None) -> Iterable[Entry]:
        return self._inner.list(prefix, after=after)

    def delete(self, paths: Iterable[str]) -> None:
        self._inner.delete(paths)


@pytest.mark.parametrize("is_tag", [False, True])
def test_a_commit_that_is_let_go_before_it_gets_a_name_does_not_get_it(
    aging: Aging, *, is_tag: bool
) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    at = graph.snapshot(2).at
    objects = LettingGo(graph._session.resources.storage.objects)
    branches = Branches(Committer(Log(objects), graph._session.resources.storage.tables))  # type: ignore[arg-type]
    names = branches.tags if is_tag else branches
    with pytest.raises(errors.SnapshotGoneError):
        names.create("late", at=at)
    assert aging.open().branches() == ["main"]
    assert aging.open().tags() == []


@contextmanager
def _cleaned_up_before_an_event(aging: Aging, keep: int) -> Iterator[None]:
    """A clean-up right before the event of the next name is put."""
    put = RefEvents.put
    oldest: list[int] = []

    def overtaken(self: RefEvents, *args: object, **options: object) -> bool:
        if not oldest:
            oldest.append(aging.open().cleanup(keep=keep, dry_run=False).oldest["main"])
        return put(self, *args, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RefEvents, "put", overtaken)
        yield
    assert oldest > [2]


@pytest.mark.parametrize(("keep", "expected"), [(1, [2]), (4, [2, 1, 0])])
def test_a_clean_up_treats_a_branch_that_is_being_created_as_if_it_were_there(
    aging: Aging, keep: int, expected: list[int]
) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    at = graph.snapshot(2)
    aging.later()
    with _cleaned_up_before_an_event(aging, keep):
        graph.create_branch("late", source=at)
    late = aging.open().branch("late")
    assert versions(late) == expected
    assert people(late) == list(numbered(1, 2))
    add(late, "other")
    assert aging.open().branch().merge("late").outcome == "merged"
    aging.later()
    aging.open().cleanup(keep=1, dry_run=False)
    assert people(aging.open().branch()) == ["other", *numbered(1, 6)]
    assert list(problems(aging.open())) == []


def test_a_clean_up_keeps_a_commit_that_is_about_to_be_tagged(aging: Aging) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    at = graph.snapshot(2)
    aging.later()
    with _cleaned_up_before_an_event(aging, keep=1):
        graph.tag("late", at)
    assert people(aging.open().snapshot("late")) == list(numbered(1, 2))
    assert list(problems(aging.open())) == []


@pytest.mark.parametrize("is_tag", [False, True])
def test_a_lease_of_a_commit_that_is_gone_stops_no_clean_up(aging: Aging, *, is_tag: bool) -> None:
    graph = aging.create()
    add(graph.branch(), *numbered(1, 6))
    at = graph.snapshot(2).at
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    new = NewName("late", 1, None if is_tag else "late.1")
    leases = graph._session.resources.branches.leases
    with leases.begin_creation(at, new):
        add(graph.branch(), "other")
        graph.cleanup(keep=1, dry_run=False)
    assert people(aging.open().branch()) == ["other", *numbered(1, 6)]
    assert list(problems(aging.open())) == []
