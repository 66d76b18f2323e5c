"""Runs of pipelines over HTTP, from a ledger that a run has written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from browser.browser_graph import record_run
from served import serve_people

POLICY = """\
version: 1
groups: {all: [ada], readers: [bob, dan], some: [cyd], exporters: [dan]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, export]}
  - id: reading
    allow: {actors: {group: readers}, actions: [read]}
  - id: people
    allow: {actors: {group: some}, actions: [read], types: [Person]}
  - id: exporting
    allow: {actors: {group: exporters}, actions: [export], types: [Person]}
"""
RUNS = "/graphs/people/pipelines/runs"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    folder: Path = tmp_path_factory.mktemp("served")
    actors = ("ada", "bob", "cyd", "dan")
    with serve_people(folder, actors=actors, policy=POLICY) as running, ExitStack() as opened:
        record_run(folder / "people.omni")
        yield {actor: opened.enter_context(running.connect(actor)) for actor in actors}


def test_runs_and_what_they_left_out_are_read_from_the_ledger(
    clients: dict[str, httpx.Client],
) -> None:
    ada = clients["ada"]
    found = ada.get(RUNS).json()
    assert found["pipelines"] == ["crm"]
    [run] = found["runs"]
    assert (run["pipeline"], run["status"]) == ("crm", "succeeded")
    assert ada.get(RUNS, params={"pipeline": "other"}).json()["runs"] == []
    path = f"/graphs/people/pipelines/crm/runs/{run['run_id']}"
    assert ada.get(path).json() == run
    answer = ada.get(f"{path}/rejects", params={"target": "team/main"}).json()
    assert answer["rejected"] == 1
    [record] = answer["records"]
    assert (record["reason"], record["raw"]) == ("'boss' is not a level", '{"level": "boss"}')


def test_rejected_records_need_the_right_to_export(clients: dict[str, httpx.Client]) -> None:
    run = clients["bob"].get(RUNS).json()["runs"][0]
    path = f"/graphs/people/pipelines/crm/runs/{run['run_id']}"
    asked = {"target": "team/main"}
    assert clients["bob"].get(path).status_code == 200
    # Records are of any type: to export some types is not enough.
    for name in ("bob", "dan"):
        assert clients[name].get(f"{path}/rejects", params=asked).status_code == 403
    # Runs name the types that they write: who may read some types only sees none.
    assert clients["cyd"].get(RUNS).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/crm/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "/crm/runs/x",
        "/..%2F..%2Fcrm/runs/x",
        "/other/runs/x",
    ],
)
def test_a_run_that_is_not_there_is_not_found(clients: dict[str, httpx.Client], path: str) -> None:
    answer = clients["ada"].get(f"/graphs/people/pipelines{path}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "pipeline_run_not_found")
