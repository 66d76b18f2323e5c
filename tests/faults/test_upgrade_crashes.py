"""An upgrade that stops at any durable step leaves a graph that reads as before, and goes on."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import places
from golden.golden_archive import describe, read_expected, unpack
from omnigraph.engine.resources import Storage
from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects.faults import (
    CRASHES,
    Fault,
    FaultKind,
    SimulatedCrash,
    Steps,
    iter_faults,
)
from omnigraph.versioning.graph_format import CURRENT, read_format
from omnigraph.versioning.upgrade import upgrade_graph

# Every so many windows are tried by the quick tests; the steps of one kind are alike.
QUICK_EVERY = 9


@pytest.mark.parametrize(
    "every",
    [pytest.param(QUICK_EVERY, id="quick"), pytest.param(1, id="all", marks=pytest.mark.slow)],
)
def test_an_upgrade_that_stops_anywhere_is_finished_by_the_next(every: int, tmp_path: Path) -> None:
    seed = unpack("format-1", tmp_path)
    expected = read_expected(tmp_path)
    folder = tmp_path / "one"

    def run(steps: Steps) -> None:
        _upgrade(_copy(seed, folder), steps)

    windows = [*iter_faults(run, (*CRASHES, FaultKind.ERROR, FaultKind.UNKNOWN_AFTER))]
    assert len(windows) >= 4 * 30
    for fault in windows[::every]:
        _copy(seed, folder)
        _stop(folder, fault)
        assert describe(folder) == expected, fault
        _upgrade(folder)
        assert describe(folder) == expected, fault
        assert read_format(places.storage_of(str(folder)).objects) == CURRENT


def _stop(folder: Path, fault: Fault) -> None:
    steps = fault.create_steps()
    with suppress(SimulatedCrash, OmnigraphError):
        _upgrade(folder, steps)
    assert steps.has_fired, fault


def _upgrade(folder: Path, steps: Steps | None = None) -> None:
    storage: Storage = places.storage_of(str(folder), steps)
    upgrade_graph(storage.objects, storage.tables, now_us=lambda: 0)


def _copy(seed: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seed, folder)
    return folder
