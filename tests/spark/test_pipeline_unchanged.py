"""Rows that are the same are not written, and a run that changes nothing makes no commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph import Graph
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from spark.pipeline_world import company, defined, entities, loads

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
graphs: {company: company.omni}
source:
  {kind: files, paths: "in/*.jsonl", new_files: true, columns: "login string, age int, at int"}
into:
  - graph: company
    map:
      nodes:
        - {type: Person, set: {handle: login, name: login, level: {value: junior}, age: age}}
        - {type: Team, distinct: true, set: {slug: {value: all}, name: {value: All}}}
      edges:
        - {type: MemberOf, from: login, to: {value: all}}
"""


def _write(folder: Path, file: str, **ages: int | None) -> None:
    (folder / "in").mkdir(exist_ok=True)
    records = ({"login": login, "age": age, "at": 0} for login, age in ages.items())
    (folder / "in" / file).write_text("".join(json.dumps(each) + "\n" for each in records))


def _ages(graph: Graph) -> dict[str, int | None]:
    found = graph.branch("main").query(
        "query q() { match { $p: Person } return { $p.handle, $p.age } }"
    )
    return dict(zip(*(column.to_pylist() for column in found.to_arrow().columns), strict=True))


def test_only_rows_that_changed_are_written(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, TEXT)
        _write(tmp_path, "a.jsonl", ada=1, bo=2, cy=None)
        first = run_pipeline(pipeline).targets[0]
        assert first.entities == {"node:Person": 3, "node:Team": 1, "edge:MemberOf": 3}
        # The same records in another file, and one that changed.
        _write(tmp_path, "b.jsonl", ada=1, bo=3, cy=None, dot=None)
        second = run_pipeline(pipeline).targets[0]
        assert second.entities == {"node:Person": 2, "edge:MemberOf": 1}
        assert second.rows_read == 4
        assert _ages(graph) == {"ada": 1, "bo": 3, "cy": None, "dot": None}
        # Nothing new, and then new files without a change.
        assert run_pipeline(pipeline).targets[0].status == "unchanged"
        _write(tmp_path, "c.jsonl", ada=1, bo=3)
        run = run_pipeline(pipeline)
        assert (run.status, run.targets[0].status, run.targets[0].commit) == (
            "succeeded",
            "unchanged",
            None,
        )
        assert len(loads(graph)) == 2
        # A full run of what is there.
        for name in ("a.jsonl", "c.jsonl"):
            (tmp_path / "in" / name).unlink()
        assert run_pipeline(pipeline, RunOptions(is_full=True)).targets[0].status == "unchanged"


def test_a_repeated_id_is_decided_among_all_of_its_rows(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        text = TEXT.replace("- graph: company\n", "- graph: company\n    on_error: fail\n")
        pipeline = defined(tmp_path, text)
        _write(tmp_path, "a.jsonl", ada=1)
        assert run_pipeline(pipeline).status == "succeeded"
        # The row that is committed, and another one: both are of the load.
        _write(tmp_path, "b.jsonl", ada=2)
        _write(tmp_path, "c.jsonl", ada=1)
        both = run_pipeline(pipeline)
        commits = len(loads(graph))
        (tmp_path / "fresh").mkdir()
    with company(tmp_path / "fresh") as graph:
        fresh = defined(tmp_path / "fresh", text.replace("new_files: true", "new_files: false"))
        _write(tmp_path / "fresh", "b.jsonl", ada=2)
        _write(tmp_path / "fresh", "c.jsonl", ada=1)
        alone = run_pipeline(fresh)
    # As in a graph without the row.
    assert both.status == alone.status
    assert commits == (2 if alone.status == "succeeded" else 1)


def test_a_branch_of_a_run_that_changes_nothing_is_removed(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        text = TEXT.replace("    map:\n", "    run_branch: {merge: automatic}\n    map:\n", 1)
        pipeline = defined(tmp_path, text)
        _write(tmp_path, "a.jsonl", ada=1)
        assert run_pipeline(pipeline).targets[0].merged is not None
        _write(tmp_path, "b.jsonl", ada=1)
        again = run_pipeline(pipeline).targets[0]
        assert (again.status, again.run_branch) == ("unchanged", None)
        assert graph.branches() == ["main"]
        assert entities(graph)["Person"] == ["ada"]
