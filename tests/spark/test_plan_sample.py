"""What a plan says that rules make of a few records, without writing anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.run.plan_sample import sample_pipeline
from spark.pipeline_world import company, defined, entities

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
graphs: {company: company.omni}
source: {kind: files, paths: people.jsonl}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          op: {column: op}
          expect: [{that: age < 100, action: reject}]
          set: {handle: login, name: login, level: level, age: int(years)}
        - {type: Team, where: team IS NOT NULL, distinct: true, set: {slug: team, name: team}}
"""


def test_a_sample_counts_rows_and_rejects_of_each_rule_and_writes_nothing(tmp_path: Path) -> None:
    records = [
        {"op": "insert", "login": "ada", "years": "36", "level": "junior", "team": "core"},
        {"op": "insert", "login": "bo", "years": "x", "level": "junior", "team": "core"},
        {"op": "insert", "login": None, "years": "1", "level": "junior", "team": None},
        {"op": "update", "login": "cy", "years": "1", "level": "boss", "team": None},
        {"op": "update", "login": "di", "years": "200", "level": "junior", "team": None},
        {"op": "delete", "login": "ed", "years": "", "level": None, "team": None},
        {"op": "insert", "login": "fay", "years": "2", "level": "junior", "team": None},
    ]
    (tmp_path / "people.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    pipeline = defined(tmp_path, TEXT)
    with company(tmp_path) as graph:
        person, team = sample_pipeline(pipeline, records=6)
        assert (person.rows_in, person.rows_out, person.deleted, person.rejected) == (6, 1, 1, 4)
        reasons = "\n".join(person.reasons)
        assert "int(years) has no result" in reasons
        assert "expected age < 100" in reasons
        assert "handle" in reasons
        assert "boss" in reasons
        assert (team.rows_in, team.rows_out, team.rejected) == (6, 1, 0)
        assert team.to_json()["type"] == "node:Team"
        assert entities(graph) == {}
        assert Ledger.open(f"{tmp_path}/company.omni", pipeline.name).list_runs() == []
