"""Dashboards over HTTP: with the panels whose queries their caller may call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from served import RunningServer, apply_cluster, serve_cluster
from unit.server.test_cluster_serving import ACTORS, OWN, QUERIES, write_cluster

PEOPLE = "query everyone() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
COMPANIES = "query firms() { match { $c: Company } return { $c.name } }"
CONFIG = "ui: {dashboards: {team: team.yaml, firms: firms.yaml}}\n"
TEAM = """\
version: 1
graph: alpha
title: The team
description: Who works here
panels:
  - {title: Everyone, query: everyone, chart: bar, x: p.name, y: [p.age]}
  - {title: Firms, query: firms, columns: [c.name]}
  - {title: Ada, query: find_person, params: {name: ada}}
"""
FIRMS = """\
version: 1
graph: alpha
title: Firms
panels: [{title: Firms, query: firms}]
"""
# Fay and gus may call all queries, and read people only; gus, some of them.
TYPED = """\
  - id: call-all
    allow: {actors: {group: typed}, actions: [invoke_query]}
  - id: read-people
    allow: {actors: {group: typed}, actions: [read], types: [Person]}
  - id: read-some-people
    allow: {actors: {group: limited}, actions: [read], types: {Person: "$it.age > 40"}}
  - id: call-some
    allow: {actors: {group: limited}, actions: [invoke_query]}
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = write_cluster(tmp_path_factory.mktemp("boards") / "config")
    (folder / "queries/people.gq").write_text(f"{QUERIES}\n{PEOPLE}\n{COMPANIES}\n")
    (folder / "team.yaml").write_text(TEAM)
    (folder / "firms.yaml").write_text(FIRMS)
    (folder / "own.yaml").write_text(
        OWN.replace("named: [eva]", "named: [eva], typed: [fay], limited: [gus]")
    )
    with (folder / "own.yaml").open("a") as file:
        file.write(TYPED)
    with (folder / "cluster.yaml").open("a") as file:
        file.write(CONFIG)
    apply_cluster(folder)
    with serve_cluster(folder, actors=(*ACTORS, "fay", "gus")) as found:
        yield found


def list_dashboards(running: RunningServer, actor: str, graph: str = "alpha") -> dict[str, Any]:
    with running.connect(actor) as client:
        answer = client.get(f"/graphs/{graph}/dashboards")
        assert answer.status_code == 200, answer.text
        return {each["name"]: each for each in answer.json()["dashboards"]}


def test_dashboards_are_listed_with_what_a_page_needs(running: RunningServer) -> None:
    found = list_dashboards(running, "ada")
    assert list(found) == ["firms", "team"]
    assert found["team"]["description"] == "Who works here"
    assert found["team"]["panels"][0] == {
        "title": "Everyone",
        "query": "everyone",
        "chart": "bar",
        "params": {},
        "columns": [],
        "x": "p.name",
        "y": ["p.age"],
    }
    assert list_dashboards(running, "ada", "beta") == {}


@pytest.mark.parametrize(
    ("actor", "shown"),
    [
        # What a rule names, with the read that it carries; and what it names of what may be read.
        ("bot", {"team": ["find_person"]}),
        ("eva", {"team": ["find_person"]}),
        # Calls without a read, and reads without a call.
        ("bob", {}),
        ("cyd", {}),
        ("fay", {"team": ["everyone", "find_person"]}),
        ("gus", {"team": ["everyone", "find_person"]}),
    ],
)
def test_a_panel_whose_query_may_not_be_called_is_not_named(
    running: RunningServer, actor: str, shown: dict[str, list[str]]
) -> None:
    found = list_dashboards(running, actor)
    panels = {name: [each["query"] for each in one["panels"]] for name, one in found.items()}
    assert panels == shown
    with running.connect(actor) as client:
        for queries in shown.values():
            for query in queries:
                body = {"params": {"name": "ada"}}
                assert client.post(f"/graphs/alpha/queries/{query}", json=body).status_code == 200
