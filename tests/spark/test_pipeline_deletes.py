"""Entities that a source says are gone, and those that a full snapshot does not have any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipelines.ledger.run_ledger import Run, TargetRun
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from spark.pipeline_world import company, defined, entities

pytestmark = pytest.mark.usefixtures("spark")

CHANGES = """
graphs: {company: company.omni}
source: {kind: files, paths: in, format: json, new_files: true}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          latest: at
          op: {column: op, insert: [c, r], update: u, delete: [d]}
          set: {handle: login, name: name, level: {value: junior}, age: cast(age AS int)}
        - {type: Team, distinct: true, where: team IS NOT NULL, set: {slug: team, name: team}}
      edges:
        - type: MemberOf
          where: team IS NOT NULL
          latest: at
          op: {column: op, insert: [c, r], update: u, delete: d}
          from: login
          to: team
"""
SNAPSHOT = """
graphs: {company: company.omni}
sources:
  people: {kind: files, paths: people.jsonl, columns: "login string, team string"}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          source: people
          delete_missing: 50%
          set: {handle: login, name: login, level: {value: junior}}
        - {type: Team, source: people, distinct: true, set: {slug: team, name: team}}
      edges:
        - {type: MemberOf, source: people, delete_missing: "10", from: login, to: team}
"""


def _run(folder: Path, text: str, **options: Any) -> Run:
    return run_pipeline(defined(folder, text), RunOptions(wait=lambda _: None, **options))


def _change(folder: Path, file: str, *records: dict[str, Any]) -> TargetRun:
    (folder / "in").mkdir(exist_ok=True)
    lines = (json.dumps({"age": None, "team": None, **each}) + "\n" for each in records)
    (folder / "in" / file).write_text("".join(lines))
    (done,) = _run(folder, CHANGES).targets
    return done


def _snapshot(folder: Path, *rows: tuple[str, str]) -> TargetRun:
    lines = (json.dumps({"login": login, "team": team}) + "\n" for login, team in rows)
    (folder / "people.jsonl").write_text("".join(lines))
    (done,) = _run(folder, SNAPSHOT).targets
    return done


def test_change_data_inserts_updates_and_deletes_in_one_commit(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        first = [
            {"op": "c", "login": "ada", "name": "Ada", "team": "core", "at": 1, "age": "36"},
            {"op": "r", "login": "bo", "name": "Bo", "team": "core", "at": 1},
            {"op": "c", "login": "cy", "name": "Cy", "at": 1},
        ]
        assert _change(tmp_path, "a.jsonl", *first).error is None
        assert entities(graph)["Person"] == ["ada", "bo", "cy"]
        before = len(list(graph.branch("main").commits()))
        done = _change(
            tmp_path,
            "b.jsonl",
            # What a record that deletes holds besides the key does not matter.
            {"op": "d", "login": "ada", "name": None, "age": "not a number", "at": 5},
            {"op": "u", "login": "ada", "name": "Ada", "age": "37", "at": 4},
            {"op": "d", "login": "bo", "at": 2},
            {"op": "c", "login": "bo", "name": "Bo again", "at": 3},
            {"op": "d", "login": "nobody", "at": 2},
        )
        assert done.error is None
        assert (done.deleted, done.entities) == (
            {"node:Person": 1, "edge:MemberOf": 1},
            {"node:Person": 1},
        )
        assert entities(graph) == {
            "Person": ["bo", "cy"],
            "Team": ["core"],
            "MemberOf": ['["bo","core"]'],
        }
        # One commit, whose changes say what ended.
        assert len(list(graph.branch("main").commits())) == before + 1
        assert done.to_json()["rows_deleted"] == 2


def test_a_value_that_is_not_declared_is_a_bad_record(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        done = _change(
            tmp_path, "a.jsonl", {"op": "truncate", "login": "ada", "name": "A", "at": 1}
        )
        assert done.status == "failed"
        assert done.error is not None
        assert "op is not one of c, r, u, d" in done.error
        assert entities(graph) == {}


def test_records_without_an_order_do_not_write_and_delete_one_entity(tmp_path: Path) -> None:
    text = CHANGES.replace("          latest: at\n", "", 1)
    (tmp_path / "in").mkdir()
    lines = [
        {"op": op, "login": "ada", "name": "A", "age": None, "team": None, "at": 1} for op in "cd"
    ]
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    with company(tmp_path) as graph:
        (done,) = _run(tmp_path, text).targets
        assert done.error is not None
        assert "Person 'ada': written and deleted at once" in done.error
        assert entities(graph) == {}


def test_what_a_snapshot_lacks_is_deleted_with_its_edges_and_comes_back(tmp_path: Path) -> None:
    rows = [("ada", "core"), ("bo", "core"), ("cy", "infra")]
    with company(tmp_path) as graph:
        assert _snapshot(tmp_path, *rows).status == "succeeded"
        done = _snapshot(tmp_path, ("ada", "infra"), ("cy", "infra"))
        assert done.deleted == {"node:Person": 1, "edge:MemberOf": 2}
        # Rows that did not change are not written, and are there all the same.
        assert done.entities == {"edge:MemberOf": 1}
        assert entities(graph)["Person"] == ["ada", "cy"]
        assert entities(graph)["MemberOf"] == ['["ada","infra"]', '["cy","infra"]']
        # A file that is as it was before is another load, and so is one after a revert.
        again = _snapshot(tmp_path, *rows)
        assert (again.status, again.entities["node:Person"]) == ("succeeded", 1)
        assert entities(graph)["Person"] == ["ada", "bo", "cy"]
        assert again.commit is not None
        graph.branch("main").revert(again.commit)
        assert entities(graph)["Person"] == ["ada", "cy"]
        assert _snapshot(tmp_path, *rows).status == "succeeded"
        assert entities(graph)["Person"] == ["ada", "bo", "cy"]
        assert _snapshot(tmp_path, *rows).status == "unchanged"


def test_more_missing_entities_than_the_limit_fail_the_run(tmp_path: Path) -> None:
    rows = [("ada", "core"), ("bo", "core"), ("cy", "infra")]
    with company(tmp_path) as graph:
        _snapshot(tmp_path, *rows)
        done = _snapshot(tmp_path, ("cy", "infra"))
        assert (done.status, done.error_code, done.attempts) == ("failed", "too_many_deleted", 1)
        assert done.error is not None
        assert "node:Person: the source lacks 2 of 3 entities, and at most 50%" in done.error
        assert entities(graph)["Person"] == ["ada", "bo", "cy"]
        # A record that cannot be written does not make its entity a missing one.
        text = SNAPSHOT.replace(
            "company\n    map",
            "company\n    on_error: quarantine\n    rejects: bad\n    max_rejected: 60%\n    map",
        )
        (tmp_path / "people.jsonl").write_text(
            '{"login": "ada", "team": "core"}\n{"login": "bo", "team": "core"}\n{"team": "infra"}\n'
        )
        (done,) = _run(tmp_path, text).targets
        assert done.error is not None
        assert "which entities are missing is not known" in done.error
        assert entities(graph)["Person"] == ["ada", "bo", "cy"]
