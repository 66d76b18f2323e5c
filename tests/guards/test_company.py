"""The bundled company graph: reproducible, valid, and worth asking."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model import ModelGraph
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema import load_catalog

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "company"
FILE_BYTES_MAX = 1_500_000
NOW = 1_740_000_000_000

READS: dict[str, dict[str, Any]] = {
    "headcount": {},
    "starters": {"after": "2024-01-01", "before": "2025-01-01"},
    "part_time": {"most": 0.6},
    "titles": {"level": "senior"},
    "portfolio": {},
    "priorities": {},
    "library": {},
    "changed_since": {"moment": "2025-01-01T00:00:00Z"},
    "labelled": {"label": "search"},
    "long_meetings": {"minutes": 60},
    "outcomes": {},
    "markets": {},
    "offices": {},
    "skill_areas": {},
}
# In this order, on one graph: each finds what the ones before it left.
CHANGES: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("open_office", {"slug": "bergen", "name": "The Loft", "city": "Bergen", "country": "Norway",
                     "zone": "Europe/Oslo", "on": "2025-03-01", "desks": 12}, (1, 0)),
    ("hire", {"handle": "zoe", "name": "Zoe Lark", "email": "zoe@company.example",
              "level": "junior", "on": "2025-03-03", "team": "discovery"}, (1, 1)),
    ("settle", {"handle": "zoe", "office": "bergen"}, (0, 1)),
    ("learn", {"handle": "zoe", "skill": "python", "grade": "learning"}, (0, 1)),
    ("comment", {"handle": "zoe", "slug": "ranking", "text": "Read it twice."}, (0, 1)),
    ("promote", {"handle": "zoe", "level": "senior", "title": "Senior engineer"}, (1, 0)),
    ("rename_team", {"slug": "discovery", "name": "Findings", "summary": "Finds."}, (1, 0)),
    ("attach", {"slug": "ranking", "file": "base64:SGVsbG8="}, (1, 0)),
    ("forget_meetings", {"before": "2000-01-01T00:00:00Z"}, (0, 0)),
    ("close_office", {"slug": "bergen"}, (1, 1)),
    ("leave", {"handle": "zoe"}, (1, 3)),
]  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> ModelGraph:
    graph = ModelGraph(load_catalog((FOLDER / "company.pg").read_text()))
    graph.load((FOLDER / "company.jsonl").read_text(), mode="append", dialect="strict")
    return graph


@pytest.fixture
def company(loaded: ModelGraph) -> ModelGraph:
    """The company graph, to be changed at will."""
    return loaded.copy()


def test_the_files_are_what_the_script_makes(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/make_company.py", "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    for name in ("company.jsonl", "hires.jsonl"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name
        assert (tmp_path / name).stat().st_size < FILE_BYTES_MAX


def test_the_graph_has_a_few_thousand_entities_of_every_type(company: ModelGraph) -> None:
    tables = {**company.nodes, **company.edges}
    assert [name for name, entities in tables.items() if not entities] == []
    assert 3000 <= sum(map(len, tables.values())) <= 4000


def test_the_hires_can_be_merged_into_it(company: ModelGraph) -> None:
    people = len(company.nodes["Person"])
    hires = (FOLDER / "hires.jsonl").read_text()
    merged = company.load(hires, mode="merge", dialect="strict")
    newcomers = len(company.nodes["Person"]) - people
    assert 0 < newcomers < merged.nodes["Person"]
    assert company.nodes["Person"]["cleo"]["level"] == "senior"


@pytest.mark.parametrize("name", READS)
def test_every_overview_query_finds_something(name: str, company: ModelGraph) -> None:
    text = (FOLDER / "queries" / "overview.gq").read_text()
    plan = compile_query(text, company.catalog, name=name).plan
    assert isinstance(plan, ReadPlan)
    assert company.read(plan, bind_parameters(plan.parameters, READS[name]), now=NOW)


def test_changes_have_the_effects_they_promise(company: ModelGraph) -> None:
    text = (FOLDER / "queries" / "changes.gq").read_text()
    for name, params, affected in CHANGES:
        plan = compile_query(text, company.catalog, name=name).plan
        assert isinstance(plan, Mutation)
        found = company.mutate(plan, bind_parameters(plan.parameters, params), now=NOW)
        assert (found.nodes, found.edges) == affected, name
