from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.bulk.splits import get_stores, plan_file_ranges
from omnigraph.bulk.task_runner import LocalRunner, Stage
from omnigraph.engine import load_dispatch
from omnigraph.errors import (
    InDoubtError,
    InvalidArgumentError,
    KeyConflictError,
    LoadError,
    StagingExpiredError,
    StorageError,
    StorageUnknownError,
    WriteRefusedError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.local_store import LocalObjects
from unit.bulk.bulk_world import (
    SCHEMA,
    Twins,
    crowd,
    exported,
    knows,
    person,
)

U = TypeVar("U")
A = TypeVar("A")


class Interrupted:
    """A runner after whose first writing of units something else happens, once."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then: Callable[[], object] | None = then
        self._runner = LocalRunner()
        self.stages: list[str] = []

    def run(self, units: Sequence[U], task: Callable[[U], A], *, stage: str) -> list[A]:
        self.stages.append(stage)
        answers = self._runner.run(units, task, stage=stage)
        if stage == "write" and self._then is not None:
            then, self._then = self._then, None
            then()
        return answers


def interrupted(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> Interrupted:
    runner = Interrupted(then)
    monkeypatch.setattr(load_dispatch, "LocalRunner", lambda _: runner)
    return runner


def test_a_commit_of_others_in_between_is_kept(two: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    main = two.in_units
    runner = interrupted(
        monkeypatch, lambda: main.mutate('query m() { insert Person { name: "else" } }')
    )
    two.bulk(two.lines(crowd(100)))
    assert two.leftovers() == []
    assert main.count("Person") == 101
    assert runner.stages.count("write") == 1


def test_an_id_that_others_wrote_in_between_is_a_conflict(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    interrupted(monkeypatch, lambda: main.mutate('query m() { insert Person { name: "p7" } }'))
    with pytest.raises(KeyConflictError, match="line 8: Person 'p7' already exists"):
        two.bulk(two.lines(crowd(100)))
    assert main.count("Person") == 1


def test_a_merge_keeps_values_that_others_wrote_in_between(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    main.load([person(f"p{number}", age=number) for number in range(40)], mode="append")
    newer = 'query m() { update Person set { age: 99 } where name = "p7" }'
    runner = interrupted(monkeypatch, lambda: main.mutate(newer))
    table = pa.table({"name": [f"p{number}" for number in range(40)], "team": ["red"] * 40})
    two.bulk(table, "merge", type="Person")
    read = "query q() { match { $p: Person } return { $p.name, $p.age, $p.team } }"
    rows = main.query(read).to_pylist()
    assert {row["p.name"]: row["p.age"] for row in rows} == {
        f"p{number}": 99 if number == 7 else number for number in range(40)
    }
    assert {row["p.team"] for row in rows} == {"red"}
    assert runner.stages.count("write") == 2
    assert two.leftovers() == []


def test_a_merge_replaces_what_others_wrote_in_between(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    two.bulk(two.lines(crowd(100)))
    interrupted(monkeypatch, lambda: main.mutate('query m() { insert Person { name: "p150" } }'))
    two.bulk(two.lines([person(f"p{n}", age=5) for n in range(50, 200)]), "merge")
    assert main.count("Person") == 200


def test_a_node_that_others_deleted_in_between_is_missed(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    two.bulk(two.lines([person("ada"), person("bob")]))
    interrupted(monkeypatch, lambda: main.mutate('query m() { delete Person where name = "bob" }'))
    with pytest.raises(WriteRefusedError, match="dst 'bob' not found"):
        two.bulk(two.lines([knows("ada", "bob")]))


def test_another_schema_in_between_reads_the_source_again(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    wider = SCHEMA.replace("node Note { text: String? }", "node Note { text: String?  at: Date? }")
    runner = interrupted(monkeypatch, lambda: main.apply_schema(wider))
    two.bulk(two.lines(crowd(60)))
    assert main.count("Person") == 60
    assert runner.stages.count("write") == 2


def test_a_load_repeated_with_its_key_is_made_once(two: Twins) -> None:
    path = two.lines(crowd(60))
    first = two.bulk(path, key="monday")
    second = two.bulk(path, key="monday")
    assert second.commit.id == first.commit.id
    assert second.nodes == first.nodes
    assert two.in_units.count("Person") == 60


def data_files(two: Twins) -> set[Path]:
    return set((two.folder / "units").glob("t/*/data/*"))


def test_a_load_whose_key_another_request_used_meanwhile_leaves_no_rows(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = two.in_units
    files: set[Path] = set()

    def win() -> None:
        before = data_files(two)
        main.load([person("first")], mode="append", key="monday")
        files.update(data_files(two) - before)

    interrupted(monkeypatch, win)
    result = two.bulk(two.lines(crowd(60)), key="monday")
    assert (result.is_repeated, result.nodes, main.count("Person")) == (True, {"Person": 1}, 1)
    assert data_files(two) == files
    assert two.leftovers() == []


def test_a_load_in_one_process_whose_key_was_used_meanwhile_leaves_no_rows(
    two: Twins,
) -> None:
    main = two.in_units
    many = pa.table({"name": [f"p{n}" for n in range(5_000)]})
    files: set[Path] = set()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from many.to_batches()
        main.load([person("first")], mode="append", key="monday")
        files.update(data_files(two))

    reader = pa.RecordBatchReader.from_batches(many.schema, batches())
    result = main.load(reader, type="Person", mode="append", key="monday")
    assert (result.is_repeated, main.count("Person")) == (True, 1)
    assert data_files(two) == files


def test_the_rows_of_a_load_stay_when_nobody_knows_whether_it_is_a_commit(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_new, get = LocalObjects.put_new, LocalObjects.get
    unknown: set[str] = set()

    def unanswered(self: LocalObjects, path: str, data: bytes) -> bool:
        made = put_new(self, path, data)
        if layout.parse_record_path(path) is not None:
            unknown.add(path)
            raise StorageUnknownError("put_new", path, "no answer")
        return made

    def silent(self: LocalObjects, path: str) -> bytes | None:
        if path in unknown:
            raise StorageError("get", path, "no answer")
        return get(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalObjects, "put_new", unanswered)
        patched.setattr(LocalObjects, "get", silent)
        with pytest.raises(InDoubtError):
            two.bulk(two.lines(crowd(60)), key="monday")
    with omnigraph.open(str(two.folder / "units")) as graph:
        assert graph.branch().count("Person") == 60
        assert len(exported(graph.branch())) == 120


def test_a_load_that_breaks_off_leaves_nothing_that_is_seen(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StorageError("write", "somewhere", "the disk is full")

    interrupted(monkeypatch, fail)
    before = exported(two.in_units)
    with pytest.raises(StorageError, match="disk is full"):
        two.bulk(two.lines(crowd(60)))
    assert exported(two.in_units) == before
    assert two.leftovers() == []
    two.bulk(two.lines(crowd(60)))


def test_notes_of_a_load_that_died_are_collected(tmp_path: Path) -> None:
    graph = omnigraph.create(str(tmp_path / "graph"), schema=SCHEMA, durable=False)
    note = tmp_path / "graph" / "__manifest" / "staging" / "01DEAD" / "notes.0"
    note.parent.mkdir(parents=True)
    note.write_bytes(b"x")
    long_ago = time.time() - 7 * 24 * 3600
    os.utime(note, (long_ago, long_ago))
    swept = graph.cleanup(keep=100, dry_run=False)
    assert not note.parent.exists(), swept
    graph.close()


def test_another_process_opens_the_graph_by_itself(two: Twins) -> None:
    place = load_dispatch._build_graph_location(two.graphs[1]._session.resources)
    assert get_stores(place) is place.local_stores
    elsewhere = pickle.loads(pickle.dumps(place))  # noqa: S301 — our own bytes
    assert elsewhere == place
    assert elsewhere.local_stores is None
    assert get_stores(elsewhere).tables is not get_stores(place).tables


def test_stages_are_told(two: Twins) -> None:
    told: list[Stage] = []
    two.bulk(two.lines(crowd(100)), stages=told.append)
    assert told[-1] == Stage("write", len(told), len(told))
    assert len(told) == len(plan_file_ranges(str(two.folder / "data.jsonl"), {}, type_name=None))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"engine": "fast"}, "'fast' is not one of"),
        ({"on_error": "ignore"}, "'ignore' is not one of"),
        ({"on_error": "quarantine", "dialect": "compatible"}, "dialect"),
    ],
)
def test_choices_without_a_meaning_are_refused(
    two: Twins, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=problem):
        two.in_units.load(two.lines(crowd(10)), mode="append", **options)


def test_a_graph_in_memory_has_no_executors(tmp_path: Path) -> None:
    graph = omnigraph.create(f"memory://{tmp_path.name}-bulk", schema=SCHEMA)
    path = tmp_path / "a.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "ada"}}\n')
    with pytest.raises(InvalidArgumentError, match="memory of this process"):
        graph.branch().load(path, mode="append", engine="spark")
    graph.branch().load(path, mode="append", on_error="quarantine")
    assert graph.branch().count("Person") == 1
    graph.close()


def test_large_files_are_cut_into_units_without_being_asked(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_dispatch, "AUTO_BYTES_MIN", 1_000)
    monkeypatch.setattr(load_dispatch, "has_spark", lambda: False)
    told: list[Stage] = []
    two.in_units.load(two.lines(crowd(100)), mode="append", stages=told.append)
    assert two.in_units.count("Person") == 100
    assert len(told) > 1


def test_files_may_be_given_by_their_types(two: Twins) -> None:
    people, edges = two.folder / "people.csv", two.folder / "knows.csv"
    people.write_text("name,age\nada,36\nbob,40\n")
    edges.write_text("from,to\nada,bob\n")
    two.in_units.load({"Person": people, "Knows": edges}, mode="append")
    assert (two.in_units.count("Person"), two.in_units.count("Knows")) == (2, 1)
    with pytest.raises(LoadError, match="names its own type"):
        two.in_units.load({"Person": two.lines(crowd(3))}, mode="append")


class Cleaned:
    """A runner whose stage of a name starts when somebody removed some notes of the load."""

    def __init__(self, stage: str, folder: Path, pattern: str) -> None:
        self._stage = stage
        self._folder = folder
        self._pattern = pattern
        self.removed = 0

    def run(self, units: Sequence[U], task: Callable[[U], A], *, stage: str) -> list[A]:
        if stage == self._stage:
            found = list(self._folder.glob(f"__manifest/staging/{self._pattern}"))
            LocalObjects(str(self._folder)).delete(
                str(path.relative_to(self._folder)) for path in found
            )
            self.removed += len(found)
        return LocalRunner().run(units, task, stage=stage)


@pytest.mark.parametrize(
    ("stage", "pattern"),
    [
        ("write", "*.units/load"),
        ("write", "*/*.input"),
        ("explain", "*/*.hashes"),
    ],
)
def test_a_load_whose_notes_were_removed_meanwhile_says_so_and_may_be_repeated(
    two: Twins, monkeypatch: pytest.MonkeyPatch, stage: str, pattern: str
) -> None:
    two.bulk(two.lines([person("p3")]))
    table = pa.table({"name": [f"p{n % 500}" for n in range(501)]})
    runner = Cleaned(stage, two.folder / "units", pattern)
    with monkeypatch.context() as patched:
        patched.setattr(load_dispatch, "LocalRunner", lambda _: runner)
        with pytest.raises(StagingExpiredError, match="removed meanwhile") as caught:
            two.bulk(table, type="Person")
    assert runner.removed
    assert caught.value.retryable
    assert two.leftovers() == []
    two.bulk(table.slice(0, 3), type="Person")
    assert two.in_units.count("Person") == 4
