from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.check.graph_check import check_graph
from omnigraph.errors import StorageError
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import MAIN, Record, Transaction
from omnigraph.versioning.log import CHECKPOINT_EVERY, WHOLE_PINS_MAX
from places import fresh_uri
from unit.engine.damaged_graph import (
    KNOWS,
    LEADS,
    NOTE,
    TEAM,
    Damaged,
    check,
    found,
    found_everywhere,
)
from unit.writers.plain_graph import created

# ---- healthy graphs ----


def test_a_healthy_graph_has_no_problems(damaged: Damaged) -> None:
    assert found_everywhere(damaged) == []
    report = check(damaged)
    assert report.is_healthy
    assert (report.branches, report.commits) == (4, damaged.graph.head().seq + 1 + 2)
    assert report.compared == report.commits
    on_main = 1005 + 1 + 3 + 1 + 1
    on_review = 4 + 1 + 1 + 1 + 1
    only_in_the_branch_of_review = 3 + 1 + 1
    assert report.entities == on_main + on_review + only_in_the_branch_of_review
    assert report.to_json()["problems"] == []


def test_a_check_writes_nothing(damaged: Damaged) -> None:
    before = damaged.files()
    check(damaged)
    assert damaged.files() == before


def test_a_graph_in_memory_is_checked_too() -> None:
    graph = created(f"memory://{uuid.uuid4().hex}", "node A { k: String @key  v: I32? }")
    graph.insert("node:A", {"k": "x"}, {"k": "y"})
    assert check_graph(graph.objects, graph.tables).problems == ()
    graph.insert("node:A", {"k": "x"})
    assert [str(each) for each in check_graph(graph.objects, graph.tables).problems] == [
        "branch 'main' node:A: 'x' is there more than once"
    ]


def test_a_branch_whose_deletion_stopped_half_way_is_healthy(damaged: Damaged) -> None:
    graph = damaged.graph
    graph.committer.close(graph.branches.resolve("untouched"))
    assert found_everywhere(damaged) == []


@pytest.mark.slow
def test_a_graph_may_be_written_while_it_is_checked(damaged: Damaged) -> None:
    graph, is_over = damaged.graph, threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            graph.insert(NOTE, {"@id": f"w{number}", "text": "x"})
            graph.branches.create(f"b{number}", at=graph.head())
            graph.branches.delete(f"b{number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [found(damaged) for _ in range(3)] == [[], [], []]
    finally:
        is_over.set()
        writer.join()


def test_records_that_hold_only_what_they_touched_are_folded(tmp_path: Path) -> None:
    source = "".join(f"node T{number} {{}}  " for number in range(WHOLE_PINS_MAX + 1))
    graph = created(fresh_uri(tmp_path / "wide"), source)
    for number in range(CHECKPOINT_EVERY + 2):
        graph.insert(f"node:T{number % 3}", {"@id": f"{number}"})
    graph.branches.create("review", at=graph.head())
    wide = graph.reopened()
    record = wide.log.read(MAIN.id, 5)
    assert isinstance(record, Record)
    assert not record.is_whole
    report = check_graph(wide.objects, wide.tables)
    assert report.problems == ()
    assert report.entities == CHECKPOINT_EVERY + 2
    path = layout.build_checkpoint_path(MAIN.id, CHECKPOINT_EVERY)
    kept = graph.log.read_snapshot(MAIN, CHECKPOINT_EVERY)
    pins = {**kept.pins, "node:T0": kept.pins["node:T4"]}
    graph.log.write_checkpoint(replace(kept, pins=pins))
    assert [problem.where for problem in check_graph(wide.objects, wide.tables).problems] == [path]


# ---- names and records ----


def newer(document: dict[str, Any]) -> None:
    document["format"] = 99


def setting(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(fields)


def test_the_format_of_the_graph_is_checked(damaged: Damaged) -> None:
    damaged.edit(layout.FORMAT, newer)
    assert found(damaged) == [
        f"format: {layout.FORMAT}: {layout.FORMAT} has format 99; this program reads up to 2"
    ]
    damaged.write(layout.FORMAT, b"{")
    assert found(damaged) == [f"format: {layout.FORMAT}: is not JSON (1 bytes)"]
    damaged.remove(layout.FORMAT)
    assert found(damaged) == [f"format: {layout.FORMAT}: no graph at {damaged.uri}"]


def test_events_of_branch_names_are_checked(damaged: Damaged) -> None:
    first, second = (layout.build_ref_event_path("gone", generation) for generation in (1, 2))
    damaged.edit(second, setting(op="create"))
    assert found(damaged) == [f"branch: {second}: 'op' is 'create', expected 'delete'"]
    damaged.write(second, b"")
    assert found(damaged) == [f"branch: {second}: is not JSON (0 bytes)"]
    damaged.remove(first)
    assert found(damaged)[0] == f"branch: {first}: it is missing below newer events"


def test_a_live_branch_whose_event_is_torn_is_named(damaged: Damaged) -> None:
    event = layout.build_ref_event_path("untouched", 1)
    damaged.write(event, b"{}")
    assert found(damaged) == [f"branch: {event}: it begins with neither a digest nor a format"]


def test_a_branch_must_start_from_the_commit_it_says(damaged: Damaged) -> None:
    event = layout.build_ref_event_path("untouched", 1)
    damaged.edit(event, lambda document: document["fork"].update(commit="other"))
    (problem,) = found(damaged)
    assert problem.startswith(
        f"branch: {layout.build_record_path(damaged.stream('review/one/deeper'), 9)}: "
    )
    assert problem.endswith("branch 'untouched' starts from commit other, not from it")


def test_a_missing_record_is_named(damaged: Damaged) -> None:
    damaged.remove(damaged.record_path(5))
    assert found(damaged) == [f"record: {damaged.record_path(5)}: it is missing"]


def test_a_missing_first_record_is_named(damaged: Damaged) -> None:
    damaged.remove(damaged.record_path(0))
    assert found(damaged) == [f"record: {damaged.record_path(0)}: it is missing"]


def test_a_missing_record_that_a_branch_started_from_is_named(damaged: Damaged) -> None:
    path = damaged.record_path(8, damaged.stream("review/one"))
    damaged.remove(path)
    assert f"record: {path}: it is missing" in found(damaged)
    assert (
        f"branch: {path}: branch 'review/one/deeper' starts from this record, and it cannot be read"
    ) in found(damaged)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON (0 bytes)"),
        (b"[]", "is not a JSON object"),
        (b"\xff\x00", "is not JSON (2 bytes)"),
        (b'{"format":1}', "'stream' is None, expected 'main.0'"),
    ],
)
def test_a_torn_record_is_named(damaged: Damaged, data: bytes, reason: str) -> None:
    damaged.write(damaged.record_path(5), data)
    assert found(damaged) == [f"record: {damaged.record_path(5)}: {reason}"]


def test_a_torn_newest_record_is_named(damaged: Damaged) -> None:
    path = damaged.record_path(damaged.graph.head().seq)
    damaged.write(path, b"{")
    assert found(damaged) == [f"record: {path}: is not JSON (1 bytes)"]


def test_a_record_of_a_newer_program_is_named(damaged: Damaged) -> None:
    path = damaged.record_path(5)
    damaged.edit(path, newer)
    assert found(damaged) == [f"record: {path}: {path} has format 99; this program reads up to 1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seq": 6}, "'seq' is 6, expected 5"),
        ({"stream": "other.1"}, "'stream' is 'other.1', expected 'main.0'"),
        ({"branch": "other"}, "it is of branch 'other', not 'main'"),
        ({"parent": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "its parent is 01ARZ3NDEKTSV4RRFFQ69G5FAV, not"),
        ({"created_at": 1}, "it is not younger than its parent"),
        (
            {"pins": {"node:Person": {"v": "x", "uri": "t", "rows": 1, "frags": 1, "hw": 1}}},
            "'x' is not a version of a table",
        ),
        ({"pins": 7}, "is not a JSON object"),
        ({"registered": ["node:Extra"]}, "it does not pin node:Extra, against what it says"),
        ({"dropped": ["node:Note"]}, "it pins node:Note, against what it says"),
        ({"changes": {"node:Other": {"maint": True}}}, "it changes node:Other, which does not"),
        ({"changes": {}}, "it moves the table of node:Person without a change set"),
        (
            {"merge": {"branch": "b", "stream": "b.1", "seq": 1, "commit": "C"}},
            f"it merges commit C, which is not at {layout.build_record_path('b.1', 1)}",
        ),
    ],
)
def test_a_record_that_does_not_fit_is_named(
    damaged: Damaged, fields: dict[str, Any], reason: str
) -> None:
    path = damaged.record_path(5)
    damaged.edit(path, setting(**fields))
    assert any(each.startswith(f"record: {path}: {reason}") for each in found(damaged)), found(
        damaged
    )


def test_a_commit_id_must_carry_the_time_of_its_commit(damaged: Damaged) -> None:
    path = damaged.record_path(damaged.graph.head().seq)
    damaged.edit(path, setting(commit="01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    assert found(damaged) == [
        f"record: {path}: commit 01ARZ3NDEKTSV4RRFFQ69G5FAV does not carry its time"
    ]


def test_nothing_may_follow_the_end_of_a_stream(damaged: Damaged) -> None:
    graph = damaged.graph
    stream = graph.branches.resolve("untouched")
    graph.committer.close(stream)
    close = damaged.read(layout.build_record_path(stream.id, 10))
    damaged.write(layout.build_record_path(stream.id, 11), close | {"seq": 11})
    assert found(damaged) == [
        f"record: {layout.build_record_path(stream.id, 11)}: it follows the end of the stream"
    ]


def test_nothing_may_stand_before_the_start_of_a_stream(damaged: Damaged) -> None:
    stream = damaged.stream("review/one")
    early = layout.build_record_path(stream, 3)
    fields = {"seq": 3, "stream": stream, "branch": "review/one"}
    damaged.write(early, damaged.read(damaged.record_path(3)) | fields)
    assert f"record: {early}: the stream starts at 8" in found(damaged)


@pytest.mark.slow
def test_damage_of_a_deleted_branch_matters_only_where_a_live_one_started_from_it(
    damaged: Damaged,
) -> None:
    streams = {name: damaged.stream(name) for name in ("review/one", "review/one/deeper")}
    for name in streams:
        damaged.graph.branches.delete(name)
    damaged.append(NOTE, {"@id": "z", "text": "z"})
    assert found_everywhere(damaged) == []
    damaged.remove(layout.build_record_path(streams["review/one/deeper"], 10))
    assert found_everywhere(damaged) == [], "the end of a deleted branch that nobody started from"
    damaged.remove(layout.build_record_path(streams["review/one"], 8))
    assert f"record: {layout.build_record_path(streams['review/one'], 8)}: it is missing" in found(
        damaged
    )


# ---- what is derived ----


DAMAGED = "is damaged; it is derived and ignored (is not JSON ({} bytes))"
NEWER = "is of a newer program; it is derived and ignored"


def noticed(damaged: Damaged) -> list[str]:
    """Every notice of a graph without problems."""
    report = check(damaged)
    assert report.problems == ()
    assert report.is_healthy
    return [f"{notice.kind}: {notice}" for notice in report.notices]


def test_a_healthy_graph_has_no_notices(damaged: Damaged) -> None:
    assert noticed(damaged) == []


def test_a_hint_that_lags_behind_is_as_it_may_be(damaged: Damaged) -> None:
    damaged.write(layout.build_hint_path(MAIN.id), b'{"format":1,"seq":3}')
    assert noticed(damaged) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", DAMAGED.format(0)),
        (b"{", DAMAGED.format(1)),
        (b'{"format":99,"seq":3}', NEWER),
    ],
)
def test_a_torn_or_newer_hint_is_noticed(damaged: Damaged, data: bytes, message: str) -> None:
    path = layout.build_hint_path(MAIN.id)
    damaged.write(path, data)
    assert noticed(damaged) == [f"hint: {path} {message}"]
    assert check(damaged).to_json()["notices"] == [
        {"kind": "hint", "where": path, "message": message}
    ]


def test_a_torn_or_newer_checkpoint_is_noticed(damaged: Damaged) -> None:
    path = layout.build_checkpoint_path(damaged.stream("untouched"), 9)
    damaged.edit(path, newer)
    assert noticed(damaged) == [f"checkpoint: {path} {NEWER}"]
    damaged.write(path, b"{")
    assert noticed(damaged) == [f"checkpoint: {path} {DAMAGED.format(1)}"]


def test_a_stream_that_no_event_names_is_noticed(damaged: Damaged) -> None:
    live, gone = damaged.stream("review/one/deeper"), "untouched"
    stray = damaged.stream(gone)
    damaged.remove(layout.build_branch_folder(gone))
    damaged.remove(layout.build_branch_folder("review/one/deeper"))
    what = "of a stream that no branch event names; it is ignored"
    assert noticed(damaged) == [
        f"stream: {layout.build_stream_folder(live)} holds 1 records {what}",
        f"stream: {layout.build_stream_folder(stray)} holds 0 records {what}",
    ]


def test_a_hint_at_a_record_that_is_not_there_means_a_lost_commit(damaged: Damaged) -> None:
    graph = damaged.graph
    last = graph.head().seq
    graph.log.rebuild(MAIN)
    damaged.remove(damaged.record_path(last))
    message = f"it names version {last}, and the newest record is {last - 1}"
    assert found(damaged) == [f"hint: {layout.build_hint_path(MAIN.id)}: {message}"]


def test_a_checkpoint_must_be_what_the_records_give(damaged: Damaged) -> None:
    graph = damaged.graph
    graph.log.write_checkpoint(graph.log.read_snapshot(MAIN, 20))
    path = layout.build_checkpoint_path(MAIN.id, 20)
    assert found_everywhere(damaged) == []
    damaged.edit(path, lambda document: document["pins"][NOTE].update(rows=1))
    problem = "it is not what the records give; it is derived and can be rebuilt"
    assert found(damaged) == [f"checkpoint: {path}: {problem}"]


def test_the_checkpoint_a_branch_starts_from_is_compared_too(damaged: Damaged) -> None:
    path = layout.build_checkpoint_path(damaged.stream("untouched"), 9)
    damaged.edit(path, setting(commit="other"))
    assert [each.partition(": it is not")[0] for each in found(damaged)] == [f"checkpoint: {path}"]


# ---- interrupts ----


@pytest.mark.parametrize("place", ["open", "scan", "get"])
def test_an_interrupt_that_comes_back_as_an_error_ends_the_check(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise StorageError(place, "t/x", "External error: KeyboardInterrupt: ")

    graph = damaged.graph
    owner = {"open": Tables, "scan": Table, "get": type(graph.objects)}[place]
    monkeypatch.setattr(owner, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_graph(graph.objects, graph.tables)


def test_an_interrupt_ends_the_check(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "scan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check(damaged)


def test_a_path_that_names_an_interrupt_is_none(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: object, **__: object) -> None:
        raise StorageError("scan", "t/x", "Not found: t/KeyboardInterrupt-0.lance/data/x.lance")

    monkeypatch.setattr(Table, "scan", failed)
    assert "scan failed: Not found" in found(damaged)[0]


# ---- schemas ----


def test_a_missing_schema_is_named_once(damaged: Damaged) -> None:
    path = layout.build_schema_path(damaged.graph.head().schema)
    damaged.remove(path)
    assert found(damaged) == [f"schema: {path}: a record names this schema, and it is absent"]


def test_a_changed_schema_is_named(damaged: Damaged) -> None:
    path = layout.build_schema_path(damaged.graph.log.read_snapshot(MAIN, 0).schema)
    damaged.write(path, damaged.bytes_of(path).replace(b"Leads", b"Heads"))
    assert found(damaged) == [f"schema: {path}: its content is not what its name says"]


def test_a_schema_whose_name_is_no_path_is_named(damaged: Damaged) -> None:
    damaged.edit(damaged.record_path(3), setting(schema="sha256:../x"))
    assert any(each.startswith("schema: __manifest/schemas/../x.json: ") for each in found(damaged))


@pytest.mark.slow
def test_every_type_of_the_schema_has_a_table_and_no_other_type_has(damaged: Damaged) -> None:
    graph = damaged.graph
    source = graph.view().schema.source
    other = graph.migrated(source[: source.index("node Team")]).transaction
    assert other is not None
    assert other.schema is not None
    graph.committer.publish(Transaction(graph.head(), (), {}, schema=other.schema))
    path = damaged.record_path(graph.head().seq)
    for type_ in (LEADS, KNOWS, NOTE, TEAM):
        assert f"record: {path}: {type_} is not in the schema" in found(damaged)


def test_a_merge_of_what_was_changed_and_changed_back_is_sound(tmp_path: Path) -> None:
    schema = "node Person { name: String @key  mail: String? @unique }"
    with omnigraph.create(fresh_uri(tmp_path / "g"), schema=schema) as graph:
        main = graph.branch()
        main.load([{"type": "Person", "data": {"name": "ada", "mail": "a@x"}}], mode="append")
        review = graph.create_branch("review", source=main)
        for mail in ("b@x", "a@x"):
            review.load([{"type": "Person", "data": {"name": "ada", "mail": mail}}], mode="merge")
        review.load([{"type": "Person", "data": {"name": "bob", "mail": "c@x"}}], mode="append")
        main.merge(review)
        assert graph.check().problems == ()
