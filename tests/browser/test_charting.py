"""Dashboards of a cluster in the browser: what their panels draw, and what is not shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

import omnigraph
from browser.conftest import open_visitor, sign_in
from browser.test_accessibility import find_faults
from served import RunningServer, apply_cluster, serve_cluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
CONFIG: Final = """\
version: 1
graphs:
  team: {schema: team.pg, queries: queries}
policies:
  own: {file: own.yaml, applies_to: [team]}
ui:
  dashboards: {team: team.yaml}
"""
SCHEMA: Final = """\
node Person {
  name: String @key
  level: enum(junior, senior)
  age: I64?
  joined: Date
}
"""
QUERIES: Final = """\
query how_many() { match { $p: Person } return { count($p) as people } }
query by_level() {
  match { $p: Person }
  return { $p.level as level, count($p) as people, avg($p.age) as age }
  order { level }
}
query by_day() {
  match { $p: Person }
  return { $p.joined as day, sum($p.age) as years }
  order { day }
}
query aged($least: I64) {
  match { $p: Person $p.age >= $least }
  return { $p.name as name, $p.level, $p.age as age }
  order { $p.age desc }
}
query none() { match { $p: Person { name: "nobody" } } return { $p.name } }
"""
DASHBOARD: Final = """\
version: 1
graph: team
title: The team
description: Who works here
panels:
  - {title: People, query: how_many, chart: number, y: people}
  - {title: By level, query: by_level, chart: bar, x: level, y: [people, age]}
  - {title: Years by day, query: by_day, chart: line, x: day, y: years}
  - {title: The eldest, query: aged, params: {least: 40}, columns: [name, age]}
  - {title: Without rows, query: none}
"""
POLICY: Final = """\
version: 1
groups: {all: [ada], some: [cyd]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, invoke_query]}
  - id: look
    allow: {actors: {group: some}, actions: [read]}
  - id: count
    allow: {actors: {group: some}, actions: [invoke_query], queries: [how_many]}
"""


@pytest.fixture(scope="module")
def charted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for a cluster with a dashboard."""
    folder: Path = tmp_path_factory.mktemp("charts")
    (folder / "queries").mkdir()
    files = {
        "cluster.yaml": CONFIG,
        "team.pg": SCHEMA,
        "queries/team.gq": QUERIES,
        "team.yaml": DASHBOARD,
        "own.yaml": POLICY,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    apply_cluster(folder, is_first=True)
    people = [
        {
            "name": f"p{at:02}",
            "level": "senior" if at % 3 else "junior",
            "age": None if at == 7 else 20 + at,
            "joined": f"2026-0{at % 9 + 1}-01",
        }
        for at in range(30)
    ]
    with omnigraph.open(folder / "graphs/team.omni", durable=False) as graph:
        graph.branch().load(people, type="Person", mode="append")
    with serve_cluster(folder, actors=("ada", "cyd")) as running:
        yield running


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_dashboard_shows_its_panels(browser: Browser, charted: RunningServer, theme: str) -> None:
    with open_visitor(browser, charted) as page:
        sign_in(page, "ada")
        page.evaluate(f"localStorage.setItem('omnigraph.theme', '{theme}')")
        open_dashboard(page)
        expect(page.get_by_role("region", name="People")).to_contain_text("30")
        bars = page.get_by_role("img", name="By level: people, age by level")
        expect(bars.locator("rect")).to_have_count(4)
        expect(bars.locator("rect title").first).to_have_text("junior: people 10")
        line = page.get_by_role("img", name="Years by day: years by day")
        expect(line.locator("circle")).to_have_count(9)
        # Who cannot see a chart has its numbers.
        expect(page.get_by_role("table", name="By level")).to_contain_text("senior")
        eldest = page.get_by_role("region", name="Rows of The eldest")
        expect(eldest.get_by_role("row")).to_have_count(11)
        expect(eldest.get_by_role("columnheader")).to_have_text(["name", "age"])
        expect(eldest.get_by_role("row").nth(1)).to_contain_text("p2949")
        expect(page.get_by_role("region", name="Without rows")).to_contain_text("No rows.")
        assert find_faults(page) == []


def open_dashboard(page: Page) -> None:
    page.goto("/ui/graphs/team/dashboards")
    page.get_by_role("link", name="The team").click()
    expect(page.get_by_role("heading", level=1, name="The team")).to_be_visible()


def test_a_panel_that_may_not_be_seen_is_not_named(
    browser: Browser, charted: RunningServer
) -> None:
    with open_visitor(browser, charted) as page:
        sign_in(page, "cyd")
        open_dashboard(page)
        expect(page.get_by_role("region", name="People")).to_contain_text("30")
        assert "By level" not in page.locator("body").inner_text()
        page.goto("/ui/graphs/team/dashboards/none")
        expect(page.get_by_role("heading", name="There is no such dashboard")).to_be_visible()


def test_a_stored_query_is_a_form(browser: Browser, charted: RunningServer) -> None:
    with open_visitor(browser, charted) as page:
        sign_in(page, "ada")
        page.goto("/ui/graphs/team/stored")
        page.get_by_role("link", name="aged").click()
        page.get_by_label("least").fill("48")
        page.get_by_role("button", name="Run").click()
        rows = page.get_by_role("main").get_by_role("row")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("p29")
        assert find_faults(page) == []
