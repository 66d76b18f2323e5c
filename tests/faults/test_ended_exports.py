"""Exports to S3 whose process dies, or whose store fails, at any of their writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.world import create, lines, person
from omnigraph import Graph
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.exports import file_export
from omnigraph.exports.export_formats import Format
from omnigraph.storage.objects.faults import CRASHES, FAILURES, FaultyObjects, SimulatedCrash, Steps
from omnigraph.storage.objects.faults import iter_faults as every
from omnigraph.storage.objects.object_store import Objects, open_objects
from omnigraph.storage.tables.store_address import StoreAddress
from omnigraph.writers.inputs import Text
from stores import S3Server

FOREIGN = ("edges/mine.txt", "mine.txt", "nodes/Person/part-00000-mine-0000.jsonl")


@pytest.fixture
def bucket(s3: S3Server) -> Iterator[str]:
    name = s3.new_bucket()
    yield name
    s3.forget(name)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with create(tmp_path / "graph") as made:
        edge: dict[str, object] = {"edge": "Knows", "from": "ada", "to": "bob"}
        text = Text(lines(person("ada"), person("bob"), edge))
        made.branch().load(text, mode="append")
        yield made


@dataclass(frozen=True)
class Beside:
    """Runs the units of an export after somebody else has put files at its place."""

    objects: Objects

    def run(self, units: Sequence[Any], task: Callable[[Any], Any], *, stage: str) -> list[Any]:
        assert stage == "export"
        for path in FOREIGN:
            self.objects.put(path, b"mine")
        return [task(unit) for unit in units]


@dataclass(frozen=True)
class Lives:
    """Exports of one graph, each to a place of its own."""

    graph: Graph
    bucket: str
    options: dict[str, str]
    patch: pytest.MonkeyPatch

    def place(self, name: str) -> StoreAddress:
        return StoreAddress(f"s3://{self.bucket}/{name}", tuple(sorted(self.options.items())))

    def objects(self, name: str) -> Objects:
        return open_objects(self.place(name).root, options=self.options)

    def export(self, name: str, steps: Steps | None = None) -> file_export.ExportResult:
        """Export; with steps, in a process of its own, whose writes they are."""
        view = self.graph.branch().snapshot().view
        with self.patch.context() as patched:
            if steps is not None:
                patched.setattr(file_export, "open_objects", partial(_faulty, steps))
            return file_export.export_types(
                view,
                list(view.types),
                Beside(self.objects(name)),
                target=self.place(name),
                form=Format.JSONL,
            )


def _faulty(steps: Steps, uri: str, **options: Any) -> Objects:
    return FaultyObjects(open_objects(uri, **options), steps)


@pytest.mark.slow
def test_an_export_that_ends_at_any_write_is_whole_or_none_and_says_what_to_do(
    graph: Graph, bucket: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Lives(graph, bucket, dict(s3.options), monkeypatch)
    faults = list(every(lambda steps: lives.export("counted", steps), (*CRASHES, *FAILURES)))
    assert {fault.operation for fault in faults} == {"put_new", "put", "delete"}
    for fault in faults:
        name, steps = str(fault), fault.create_steps()
        try:
            lives.export(name, steps)
        except (SimulatedCrash, StorageError):
            assert steps.has_fired
        objects = lives.objects(name)
        held = {entry.path for entry in objects.list("")}
        # What others put there stays, however it ended.
        begun = held.intersection(FOREIGN)
        assert begun in (set(), set(FOREIGN)), fault
        success = objects.get(file_export.SUCCESS)
        ours = {path for path in held.difference(FOREIGN) if not path.startswith("_")}
        if success is not None:
            assert ours == set(json.loads(success)["paths"]), fault
        elif fault.kind in FAILURES and fault.operation != "delete":
            # The process lived on, and removed all of it.
            assert held == begun, fault
        _assert_next(lives, name, held)


def _assert_next(lives: Lives, name: str, held: set[str]) -> None:
    """The next export to the same place works, or says what to do, and changes nothing."""
    objects = lives.objects(name)
    if not held:
        lives.export(name)
        assert objects.get(file_export.SUCCESS) is not None
        return
    with pytest.raises(InvalidArgumentError, match="is not empty: ") as refused:
        lives.export(name)
    assert "choose another one" in (refused.value.hint or "")
    is_told = "it was killed: remove its files" in (refused.value.hint or "")
    assert is_told == (file_export.CLAIM in held and file_export.SUCCESS not in held)
    assert {entry.path for entry in objects.list("")} == held
    # As a person does who was told so.
    objects.delete([path for path in held if path not in FOREIGN])
    assert {entry.path for entry in objects.list("")} == held.intersection(FOREIGN)
