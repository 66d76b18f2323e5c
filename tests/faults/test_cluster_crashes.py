"""An apply, crashed before and after each of its durable steps, wherever a cluster may live.

One more run converges, every graph is whole, no approval is used twice, and what an earlier run
made is adopted. The windows are generated: an apply is run once to count its steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import places
from faults.world import problems
from omnigraph.clusters.cluster_layout import build_graph_folder, build_revision_path
from omnigraph.clusters.cluster_world import Site
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.engine.resources import Environment
from omnigraph.storage import open_objects
from omnigraph.storage.objects.faults import (
    CRASHES,
    Fault,
    FaultKind,
    FaultyObjects,
    SimulatedCrash,
    Steps,
)
from omnigraph.versioning import Settings
from unit.clusters.cluster_folder import QUERIES, WIDER, remove_tasks, write_config

QUIET = Environment(settings=Settings(pause=lambda _: None))
FAILURES = (FaultKind.ERROR, FaultKind.UNKNOWN_BEFORE, FaultKind.UNKNOWN_AFTER)


class Place:
    """A configuration, and the storage that it names."""

    def __init__(self, kind: places.Kind, folder: Path) -> None:
        self._kind, self._folder = kind, folder
        self.root = ""
        self.config = folder

    def fresh(self) -> None:
        self.root = places.uri_of(self._kind, self._folder)
        self.config = write_config(self._folder / f"config-{self.root.rpartition('/')[2]}")
        self.config = write_config(self.config, self.root)

    def plane(self, steps: Steps | None = None) -> ControlPlane:
        """The verbs as another process runs them."""
        return ControlPlane(str(self.config), "ada", open_site_at=lambda _: self.site(steps))

    def site(self, steps: Steps | None = None) -> Site:
        objects: Any = open_objects(self.root, is_durable=False, options=places.options(self.root))
        if steps is not None:
            objects = FaultyObjects(objects, steps)
        return Site(
            self.root, objects, lambda uri: places.storage_of(uri, steps), environment=QUIET
        )

    def unlock(self) -> None:
        """What a person does after a process that died with the lock."""
        self.site().objects.delete(["__cluster/lock.json"])


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def _start(place: Place) -> None:
    place.fresh()
    assert place.plane().import_state().is_ok


def _start_applied(place: Place) -> None:
    _start(place)
    assert place.plane().apply().to_json()["converged"]


def _start_migration(place: Place) -> None:
    _start_applied(place)
    (place.config / "people.pg").write_text(WIDER)
    wider = QUERIES.replace("$p.age }", "$p.age, $p.city }")
    (place.config / "queries/people/people.gq").write_text(wider)


def _start_deletion(place: Place) -> None:
    _start_applied(place)
    remove_tasks(place.config)
    assert place.plane().approve("graph.tasks").is_ok


def _start_second_life(place: Place) -> None:
    _start_deletion(place)
    assert place.plane().apply().to_json()["converged"]
    write_config(place.config, place.root)


STARTS: Mapping[str, Callable[[Place], None]] = {
    "create": _start,
    "migrate": _start_migration,
    "delete": _start_deletion,
    "second-life": _start_second_life,
}


def _windows(place: Place, start: Callable[[Place], None], kinds: Any) -> list[Fault]:
    start(place)
    steps = Steps()
    assert place.plane(steps).apply().to_json()["converged"]
    return [
        Fault(number, kind, step.operation)
        for number, step in enumerate(steps.taken, 1)
        for kind in kinds
    ]


def _require_whole(place: Place) -> None:
    """The graphs that are applied are whole, and each approval was used at most once."""
    site = place.site()
    newest = site.ledger.read_newest()
    assert newest is not None
    for _, folder in newest.iter_graphs():
        with site.open_graph(folder) as graph:
            assert list(problems(graph)) == []
    numbers = site.ledger.list_numbers()
    assert numbers == list(range(1, len(numbers) + 1))
    revisions = [site.ledger.read(number) for number in numbers]
    for earlier, later in pairwise(revisions):
        assert later.parent_cas == earlier.cas
    used = [set(each.content.approval_records) for each in revisions]
    buried = [len(each.content.tombstones) for each in revisions]
    assert [len(each) for each in used] == buried


def _examine(place: Place, start: Callable[[Place], None], fault: Fault) -> None:
    start(place)
    steps = fault.create_steps()
    with suppress(SimulatedCrash):
        place.plane(steps).apply()
    assert steps.has_fired, fault
    place.unlock()
    document = place.plane().apply().to_json()
    assert document["converged"], (str(fault), document["diagnostics"])
    again = place.plane().apply().to_json()
    assert (again["state_written"], again["changes"]) == (False, []), str(fault)
    _require_whole(place)
    newest = place.site().ledger.read_newest()
    assert newest is not None
    for folder in newest.content.tombstones:
        assert not [*place.site().open_graph_storage(f"{place.root}/{folder}").objects.list("")]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("place", [*places.kinds(), "s3"], indirect=True)
@pytest.mark.parametrize("name", STARTS)
def test_a_crash_at_any_step_is_continued_by_the_next_run(place: Place, name: str) -> None:
    start = STARTS[name]
    faults = _windows(place, start, CRASHES)
    assert len(faults) >= 8
    for fault in faults:
        _examine(place, start, fault)


@pytest.mark.slow
@pytest.mark.parametrize("place", [places.quick_kind()], indirect=True)
@pytest.mark.parametrize("name", STARTS)
def test_a_failure_at_any_step_is_continued_by_the_next_run(place: Place, name: str) -> None:
    start = STARTS[name]
    for fault in _windows(place, start, FAILURES):
        _examine(place, start, fault)


@pytest.mark.parametrize("place", [places.quick_kind()], indirect=True)
def test_a_crash_around_the_revision_is_all_or_nothing(place: Place) -> None:
    place.fresh()
    _start_migration(place)
    steps = Steps()
    assert place.plane(steps).apply().to_json()["converged"]
    number = 1 + next(
        at for at, step in enumerate(steps.taken) if step.path == build_revision_path(3)
    )
    for kind in CRASHES:
        _examine(place, _start_migration, Fault(number, kind, "put_new"))
        newest = place.site().ledger.read_newest()
        assert newest is not None
        # A migration that no revision named is adopted by the next run, which says so.
        is_adopted = bool(newest.content.recovery_records)
        assert is_adopted == (kind is FaultKind.CRASH_BEFORE)


@pytest.mark.slow
@pytest.mark.parametrize("place", places.kinds(), indirect=True)
def test_eight_racing_applies_make_one_line_of_revisions(place: Place) -> None:
    _start(place)
    text = (place.config / "cluster.yaml").read_text()
    (place.config / "cluster.yaml").write_text("state: {lock: false}\n" + text)
    documents: list[dict[str, Any]] = []
    barrier = threading.Barrier(8)

    def run() -> None:
        barrier.wait()
        documents.append(place.plane().apply().to_json())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = {
        each["code"]
        for document in documents
        for each in document["diagnostics"]
        if each["severity"] == "error"
    }
    assert codes <= {"state_cas_mismatch"}
    assert sum(document["state_written"] for document in documents) == 1
    assert not place.plane().apply().to_json()["state_written"]
    _require_whole(place)
    newest = place.site().ledger.read_newest()
    assert newest is not None
    assert newest.number == 2
    assert newest.folder_of("people") == build_graph_folder("people")
    assert replace(newest).content.config_digest is not None
