"""Dashboards of a cluster: checked before they are applied, and applied as any resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.cluster_config import read_config
from omnigraph.clusters.control_plane import ControlPlane
from unit.clusters.cluster_folder import write_config

ADDRESS = "ui.dashboard.team"
DASHBOARD = """\
version: 1
graph: people
title: The team
panels:
  - title: Ada
    query: find_person
    params: {name: ada}
    chart: bar
    x: p.name
    y: p.age
  - title: Everyone called bob
    query: find_person
    params: {name: bob}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = write_config(tmp_path / "config")
    with (config / "cluster.yaml").open("a") as file:
        file.write("ui:\n  dashboards:\n    team: boards/team.yaml\n")
    (config / "boards").mkdir()
    (config / "boards/team.yaml").write_text(DASHBOARD)
    return config


def edit(folder: Path, old: str, new: str, name: str = "boards/team.yaml") -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def run(folder: Path, verb: str) -> dict[str, Any]:
    found = getattr(ControlPlane(str(folder), "ada"), verb)()
    assert found.is_ok, found.findings
    document: dict[str, Any] = found.to_json()
    return document


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("version: 1", "version: 2", "dashboard_invalid", "version 2 is not known"),
        ("title: The team\n", "", "dashboard_invalid", "'title' is missing"),
        ("panels:", "panls:", "dashboard_invalid", "unknown field 'panls'"),
        ("graph: people", "graph: none", "dangling_graph_reference", "no graph 'none'"),
        ("chart: bar", "chart: bars", "dashboard_invalid", "'bars' is not a chart"),
        ("    y: p.age\n", "", "dashboard_invalid", "'bar' needs the field 'y'"),
        (
            "    x: p.name\n",
            "    columns: [p.name]\n",
            "dashboard_invalid",
            "'columns'",
        ),
        ("chart: bar\n    x: p.name", "chart: number\n    x: p.name", "dashboard_invalid", "'x'"),
        (
            "    y: p.age",
            "    y: [p.age, p.age]\n    chart: number",
            "dashboard_invalid",
            "twice",
        ),
        (
            "query: find_person",
            "query: find_persn",
            "dashboard_query_not_found",
            "it has add_person, find_person",
        ),
        ("query: find_person", "query: add_person", "dashboard_query_writes", "only reads"),
        ("{name: ada}", "{}", "dashboard_invalid_params", "'name' not provided"),
        ("{name: ada}", "{name: 7}", "dashboard_invalid_params", "name"),
        ("{name: ada}", "{name: a, age: 7}", "dashboard_invalid_params", "no parameter 'age'"),
        ("x: p.name", "x: p.nme", "dashboard_unknown_column", "it has p.name, p.age"),
        ("y: p.age", "y: p.name", "dashboard_unknown_column", "of kind string"),
        (DASHBOARD[DASHBOARD.index("panels:") :], "panels: []", "dashboard_invalid", "1 to 50"),
        (DASHBOARD, "- a", "dashboard_invalid", "expects fields"),
        (DASHBOARD, "a: [", "dashboard_invalid", ""),
    ],
)
def test_a_dashboard_that_is_wrong_is_refused_with_its_place(
    folder: Path, old: str, new: str, code: str, message: str
) -> None:
    edit(folder, old, new)
    found = [each for each in read_config(folder).findings if each.severity == "error"]
    assert {each.code for each in found} == {code}
    assert message in " ".join(each.message for each in found)
    assert found[0].file == str(folder / "boards/team.yaml")
    assert found[0].line is not None


def test_a_file_that_is_not_there_and_a_schema_with_errors_are_reported_once(folder: Path) -> None:
    edit(folder, "boards/team.yaml", "boards/none.yaml", "cluster.yaml")
    assert "dashboard_file_missing" in {each.code for each in read_config(folder).findings}
    edit(folder, "boards/none.yaml", "boards/team.yaml", "cluster.yaml")
    edit(folder, "age: I32?", "age: I33?", "people.pg")
    found = [each.code for each in read_config(folder).findings if each.severity == "error"]
    assert found == ["schema_parse_error"]


def test_a_dashboard_is_planned_applied_checked_out_and_removed(
    folder: Path, tmp_path: Path
) -> None:
    run(folder, "import_state")
    planned = run(folder, "plan")
    change = next(each for each in planned["changes"] if each["resource"] == ADDRESS)
    assert (change["operation"], change["effect"]) == ("create", "catalog")
    needs = [each["to"] for each in planned["dependencies"] if each["from"] == ADDRESS]
    assert needs == ["graph.people", "query.people.find_person"]
    run(folder, "apply")
    assert list(open_cluster(folder).dashboards("people")) == ["team"]
    assert list(open_cluster(folder).dashboards("tasks")) == []
    assert run(folder, "report_status")["diagnostics"] == []

    # Another revision takes the same files, and a change reaches what shows it.
    copy = tmp_path / "copy"
    assert ControlPlane(str(folder)).checkout(2, copy).is_ok
    assert run(copy, "plan")["changes"] == []
    edit(folder, "Finds one.", "Finds a person.", "queries/people/people.gq")
    radius = {e["resource"]: e["affected"] for e in run(folder, "plan")["blast_radius"]}
    assert radius["query.people.find_person"] == [ADDRESS]

    (folder / "cluster.yaml").write_text((folder / "cluster.yaml").read_text().partition("ui:")[0])
    run(folder, "apply")
    assert list(open_cluster(folder).dashboards("people")) == []


def test_a_query_that_lost_a_column_is_refused_where_a_panel_shows_it(folder: Path) -> None:
    run(folder, "import_state")
    run(folder, "apply")
    edit(folder, ", $p.age }", " }", "queries/people/people.gq")
    found = ControlPlane(str(folder), "ada").plan()
    assert not found.is_ok
    assert "dashboard_unknown_column" in {each.code for each in found.findings}
