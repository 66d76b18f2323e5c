from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.feed.feed_batches import plan_feed_splits, read_change_batches
from omnigraph.errors import ChangeCursorRejectedError, SourceRefusedError
from omnigraph.pipelines.config.definition import FeedSource, FileSource, HttpSource, Source
from omnigraph.pipelines.ledger.run_ledger import Ledger, RunLog, TargetRun, encode_target
from omnigraph.pipelines.run.run_slot import Slot, SlotRequest, choose_slot
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

NOBODY = SlotRequest(None)


def _ledger(folder: Path, name: str = "ledger") -> Ledger:
    return Ledger.open(str(folder / name), "people")


def _slot(folder: Path, source: Source, asked: SlotRequest = NOBODY, *, text: str = PEOPLE) -> Slot:
    return choose_slot(read(folder, text), {"source": source}, _ledger(folder), asked)


def _begin(folder: Path, slot: str) -> RunLog:
    target = encode_target(TargetRun("company/main", "company", "main", "key"))
    return _ledger(folder).start_run({"slot": slot, "trigger": "manual", "targets": [target]})


def _end(folder: Path, slot: str, status: str) -> None:
    _begin(folder, slot).add_event("finished", {"status": status})


def _refuse(folder: Path, slot: str = "") -> None:
    """A run that ended before it began: a secret is not set, or a graph is not there."""
    log = _ledger(folder).start_run({"slot": slot, "trigger": "manual", "targets": []})
    log.add_event("finished", {"status": "failed"})


def test_the_same_files_are_the_same_slot(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"login": "ada"}\n')
    source = FileSource((str(path),))
    first = _slot(tmp_path, source)
    assert first.name.startswith("files-")
    assert first.position["source"]["files"] == 1
    assert _slot(tmp_path, source).name == first.name
    assert _slot(tmp_path, source, SlotRequest("10:00", is_scheduled=True)).name == first.name
    assert _slot(tmp_path, source, SlotRequest("mine")).name == "mine"
    assert _slot(tmp_path, source, text=PEOPLE + "description: x\n").name == first.name
    assert _slot(tmp_path, source, text=PEOPLE.replace("login", "id")).name != first.name
    path.write_text('{"login": "bo", "more": 1}\n')
    assert _slot(tmp_path, source).name != first.name


def test_a_source_without_a_content_takes_up_what_failed(tmp_path: Path) -> None:
    source = HttpSource("http://127.0.0.1:1/x")
    first = _slot(tmp_path, source).name
    assert _slot(tmp_path, source).name != first
    _end(tmp_path, first, "partial")
    assert _slot(tmp_path, source).name == first
    assert _slot(tmp_path, source, SlotRequest("10:00", is_scheduled=True)).name == "10:00"
    _end(tmp_path, first, "succeeded")
    assert _slot(tmp_path, source).name != first


@pytest.mark.parametrize("refused", ["", "10:00"])
def test_a_run_that_was_refused_does_not_hide_the_one_that_was_not_finished(
    tmp_path: Path, refused: str
) -> None:
    source = HttpSource("http://127.0.0.1:1/x")
    first = _slot(tmp_path, source).name
    # It made its commit, and its process ended before it could say so.
    _begin(tmp_path, first)
    time.sleep(0.002)
    for _ in range(3):
        _refuse(tmp_path, refused)
    assert _slot(tmp_path, source).name == first


def _write(uri: Path, *names: str) -> None:
    with omnigraph.open(uri) as graph:
        for name in names:
            data = {"handle": name, "name": name, "level": "junior"}
            graph.branch("main").load([{"type": "Person", "data": data}], mode="append")


def _ids(source: FeedSource, slot: Slot) -> list[Any]:
    """What the commits between the ends of a position changed."""
    position = slot.position["source"]
    with omnigraph.open(source.uri) as graph:
        session = graph._session
        start, end = (graph.snapshot(position[each]).at for each in ("from", "to"))
        wanted = parse_filters(None, None, source.ops).resolve_in_first(session.open_view(end))
        return [
            each
            for share in plan_feed_splits(session, start, end)
            for batch in read_change_batches(session, share, wanted)
            for each in batch["id"].to_pylist()
        ]


def test_a_feed_is_read_in_batches_that_stay_what_they_are(tmp_path: Path) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    source = FeedSource(str(other), changes_max=2)
    ledger = Ledger.open(str(tmp_path / "ledger"), "people")
    _write(other, "ada", "bo", "cy")
    first = _slot(tmp_path, source)
    assert first.name.startswith("batch-00000000-")
    assert (first.is_empty, _ids(source, first)) == (False, ["ada", "bo"])
    _write(other, "di")
    # Nobody said that it is finished: it is the same work again.
    again = _slot(tmp_path, source)
    assert (again.name, again.position) == (first.name, first.position)
    ledger.finish_batch(0, "run")
    second = _slot(tmp_path, source)
    assert second.name.startswith("batch-00000001-")
    assert _ids(source, second) == ["cy", "di"]
    ledger.finish_batch(1, "run")
    third = _slot(tmp_path, source)
    assert (third.is_empty, third.batch) == (True, None)
    _write(other, "ed")
    assert _ids(source, _slot(tmp_path, source)) == ["ed"]


def test_a_feed_from_now_on_remembers_where_it_began(tmp_path: Path) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    _write(other, "ada")
    source = FeedSource(str(other), start="now")
    ledger = Ledger.open(str(tmp_path / "ledger"), "people")
    first = _slot(tmp_path, source)
    assert (first.is_empty, first.batch) == (True, 0)
    ledger.finish_batch(0, "run")
    _write(other, "bo")
    assert _ids(source, _slot(tmp_path, source)) == ["bo"]


def test_batches_of_another_ledger_are_told_apart_by_what_they_read(tmp_path: Path) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    pipeline = read(tmp_path, PEOPLE)
    sources: dict[str, Source] = {"source": FeedSource(str(other), changes_max=100)}
    _write(other, "ada")
    first = choose_slot(pipeline, sources, _ledger(tmp_path), NOBODY)
    again = choose_slot(pipeline, sources, _ledger(tmp_path, "moved"), NOBODY)
    assert again.name == first.name
    _write(other, "bo")
    later = choose_slot(pipeline, sources, _ledger(tmp_path, "moved again"), NOBODY)
    assert (later.batch, first.batch) == (0, 0)
    assert later.name != first.name


def test_a_source_that_is_added_waits_for_the_batch_that_is_not_finished(tmp_path: Path) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    _write(other, "ada")
    pipeline, ledger = read(tmp_path, PEOPLE), _ledger(tmp_path)
    source = FeedSource(str(other))
    first = choose_slot(pipeline, {"a": source}, ledger, NOBODY)
    with pytest.raises(SourceRefusedError, match="b: added to the sources while batch 0"):
        choose_slot(pipeline, {"a": source, "b": source}, ledger, NOBODY)
    assert choose_slot(pipeline, {"a": source}, ledger, NOBODY).name == first.name
    ledger.finish_batch(0, "run")
    both = choose_slot(pipeline, {"a": source, "b": source}, ledger, NOBODY)
    assert (both.source_states["a"].is_empty, both.source_states["b"].is_empty) == (True, False)


def _by_cursors(source: FeedSource, seen: int | None, upto: int | None) -> dict[str, Any]:
    """A position as ledgers have it that were begun with cursors: behind so many commits."""
    with omnigraph.open(source.uri) as graph:
        blocks = graph.branch("main").changes(start="beginning", ops=source.ops).blocks
        first = None if seen is None else blocks[seen].cursor
        last = first if upto is None else blocks[upto].cursor
        commit = None if upto is None else blocks[upto].cause.commit_id
        return {"kind": "graph", "from": first, "to": last, "commit": commit}


@pytest.mark.parametrize(
    ("seen", "upto", "again", "later"),
    [
        (None, 1, ["ada", "bo"], ["cy"]),
        (0, 1, ["bo"], ["cy"]),
        # From now on, and nothing was there yet.
        (1, None, [], ["cy"]),
        # From the beginning, and nothing was there yet.
        (None, None, [], ["ada", "bo", "cy"]),
    ],
)
def test_a_ledger_that_was_begun_with_cursors_goes_on(
    tmp_path: Path, seen: int | None, upto: int | None, again: list[str], later: list[str]
) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    _write(other, "ada", "bo", "cy")
    source, ledger = FeedSource(str(other)), _ledger(tmp_path)
    old = _by_cursors(source, seen, upto)
    ledger.claim_batch(0, {"position": {"source": old}, "slot": "batch-00000000-old"})
    unfinished = _slot(tmp_path, source)
    assert (unfinished.name, unfinished.batch) == ("batch-00000000-old", 0)
    assert _ids(source, unfinished) == again
    assert unfinished.is_empty is not bool(again)
    ledger.finish_batch(0, "run")
    assert _ids(source, _slot(tmp_path, source)) == later


def test_a_cursor_in_a_ledger_that_is_of_another_graph_is_refused(tmp_path: Path) -> None:
    for name in ("other.omni", "third.omni"):
        omnigraph.create(tmp_path / name, schema=SCHEMA).close()
        _write(tmp_path / name, "ada")
    old = _by_cursors(FeedSource(str(tmp_path / "third.omni")), 0, None)
    _ledger(tmp_path).claim_batch(0, {"position": {"source": old}, "slot": "batch-00000000-old"})
    with pytest.raises(ChangeCursorRejectedError, match="another graph"):
        _slot(tmp_path, FeedSource(str(tmp_path / "other.omni")))
