from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.pipelines.definition import FeedSource, FileSource, HttpSource, Source
from omnigraph.pipelines.ledger import Ledger
from omnigraph.pipelines.slots import Asked, Slot, choose_slot
from omnigraph.pipelines.sources.graph_feed import _records
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

NOBODY = Asked(None)


def _slot(folder: Path, source: Source, asked: Asked = NOBODY, *, text: str = PEOPLE) -> Slot:
    ledger = Ledger.at(str(folder / "ledger"), "people")
    return choose_slot(read(folder, text), {"source": source}, ledger, asked)


def _end(folder: Path, slot: str, status: str) -> None:
    ledger = Ledger.at(str(folder / "ledger"), "people")
    log = ledger.start({"slot": slot, "digest": "d", "trigger": "manual", "targets": []})
    log.add("finished", {"status": status})


def test_the_same_files_are_the_same_slot(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"login": "ada"}\n')
    source = FileSource((str(path),))
    first = _slot(tmp_path, source)
    assert first.name.startswith("files-")
    assert first.position["source"]["files"] == 1
    assert _slot(tmp_path, source).name == first.name
    assert _slot(tmp_path, source, Asked("10:00", is_scheduled=True)).name == first.name
    assert _slot(tmp_path, source, Asked("mine")).name == "mine"
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
    assert _slot(tmp_path, source, Asked("10:00", is_scheduled=True)).name == "10:00"
    _end(tmp_path, first, "succeeded")
    assert _slot(tmp_path, source).name != first


def _write(uri: Path, *names: str) -> None:
    with omnigraph.open(uri) as graph:
        for name in names:
            data = {"handle": name, "name": name, "level": "junior"}
            graph.branch("main").load([{"type": "Person", "data": data}], mode="append")


def _ids(source: FeedSource, slot: Slot) -> list[Any]:
    with omnigraph.open(source.uri) as graph:
        position = slot.position["source"]
        return [each["id"] for each in _records(graph.branch("main"), source, position)]


def test_a_feed_is_read_in_batches_that_stay_what_they_are(tmp_path: Path) -> None:
    other = tmp_path / "other.omni"
    omnigraph.create(other, schema=SCHEMA).close()
    source = FeedSource(str(other), changes_max=2)
    ledger = Ledger.at(str(tmp_path / "ledger"), "people")
    _write(other, "ada", "bo", "cy")
    first = _slot(tmp_path, source)
    assert (first.name, first.is_empty, _ids(source, first)) == (
        "batch-00000000",
        False,
        ["ada", "bo"],
    )
    _write(other, "di")
    # Nobody said that it is finished: it is the same work again.
    again = _slot(tmp_path, source)
    assert (again.name, again.position) == (first.name, first.position)
    ledger.finish_batch(0, "run")
    second = _slot(tmp_path, source)
    assert (second.name, _ids(source, second)) == ("batch-00000001", ["cy", "di"])
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
    ledger = Ledger.at(str(tmp_path / "ledger"), "people")
    first = _slot(tmp_path, source)
    assert (first.is_empty, first.batch) == (True, 0)
    ledger.finish_batch(0, "run")
    _write(other, "bo")
    assert _ids(source, _slot(tmp_path, source)) == ["bo"]
