"""Bad input and faults of pipelines: the graph is untouched or complete, the ledger says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from omnigraph.pipelines.ledger.run_ledger import Ledger, Run
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources import http_source
from spark.pipeline_world import SIMPLE, company, defined, entities, loads, logins

pytestmark = pytest.mark.usefixtures("spark")

PEOPLE = """\
login,years,start
ada,36,2020-01-02
bo,abc,2020-01-02
cy,1,2020-13-45
di
ed,,
"""
VALUES = "age: int(years), startedOn: to_date(start)"
QUARANTINE = "on_error: quarantine\n    rejects: bad\n    max_rejected: 100%\n    mode: append"


def _people(source: str, *, values: str = VALUES, rule: str = "") -> str:
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', source)
    return text.replace("set: {", f"{rule}set: {{{values}, " if values else f"{rule}set: {{")


def _rejects(folder: Path) -> list[dict[str, Any]]:
    (file,) = (folder / "bad").rglob("*.parquet")
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    file.unlink()
    return rows


def _error(run: Run) -> str:
    (target,) = run.targets
    assert (run.status, target.status, target.attempts) == ("failed", "failed", 1)
    assert not target.is_retryable
    assert target.error is not None
    return target.error


def test_a_value_that_cannot_be_cast_refuses_its_record_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    text = _people("{kind: files, paths: people.csv}")
    with company(tmp_path) as graph:
        error = _error(run_pipeline(defined(tmp_path, text)))
        assert "Person.age: int(years) has no result for this record of source 'source'" in error
        assert '{"login":"bo","years":"abc","start":"2020-01-02"}' in error
        assert "people.yaml:10" in error
        assert "Person.startedOn: to_date(start) has no result" in error
        assert "holds a record that cannot be read: di" in error
        assert "on_error quarantine" in error
        assert loads(graph) == []
        mended = run_pipeline(defined(tmp_path, text.replace("mode: append", QUARANTINE)))
        (target,) = mended.targets
        assert (mended.status, target.written, target.rejected) == ("succeeded", 2, 3)
        assert entities(graph) == {"Person": ["ada", "ed"]}
        rejects = _rejects(tmp_path)
        assert [(each["property"], each["raw"]) for each in rejects] == [
            ("age", '{"login":"bo","years":"abc","start":"2020-01-02"}'),
            ("startedOn", '{"login":"cy","years":"1","start":"2020-13-45"}'),
            (None, "di"),
        ]
        assert {each["type"] for each in rejects} == {"Person"}


@pytest.mark.parametrize("source", ["", ", columns: 'login string, n int, xs array<string>'"])
def test_a_line_that_cannot_be_read_and_a_rule_that_fails_refuse_their_records(
    tmp_path: Path, source: str
) -> None:
    (tmp_path / "people.jsonl").write_text(
        '{"login": "ada", "n": 2, "xs": ["1", "2"]}\n'
        '{"login": "bo", "n"\n'
        '{"login": "cy", "n": 0, "xs": ["1"]}\n'
        '{"login": "di", "n": 1, "xs": ["x"]}\n'
        '{"login": "ed", "n": 9, "xs": ["1"]}\n'
    )
    text = _people(
        f"{{kind: files, paths: people.jsonl{source}}}",
        values="age: x",
        rule="where: 10 / n > 2\n          explode: transform(xs, x -> int(x)) as x\n          ",
    )
    text = text.replace("handle: login", 'handle: {template: "{login}{x}"}')
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, text.replace("mode: append", QUARANTINE)))
        assert run.targets[0].error is None
        assert entities(graph) == {"Person": ["ada1", "ada2"]}
        told = [(each["reason"], each["raw"]) for each in _rejects(tmp_path)]
        beginnings = [
            "source 'source' holds a record that cannot be read: ",
            "Person: 10 / n > 2 has no result for this record of source 'source' (",
            "Person: transform(xs, x -> int(x)) has no result for this record of source",
        ]
        assert [
            reason[: len(start)] for (reason, _), start in zip(told, beginnings, strict=True)
        ] == beginnings
        assert told[0][1] == '{"login": "bo", "n"'
        assert '"cy"' in told[1][1]
        assert '"di"' in told[2][1]


def test_duplicates_and_dangling_edges_fail_a_run_and_the_mended_source_succeeds(
    tmp_path: Path,
) -> None:
    text = SIMPLE + (
        "      edges:\n        - {type: MemberOf, where: team IS NOT NULL, from: login, to: team}\n"
    )
    with company(tmp_path) as graph:
        team = {"type": "Team", "data": {"slug": "core", "name": "Core"}}
        graph.branch("main").load([team], mode="append")
        # Two files are two partitions.
        logins(tmp_path, "a.jsonl", "ada", "bo")
        (tmp_path / "in" / "b.jsonl").write_text(
            '{"login": "bo", "team": "core"}\n{"login": "cy", "team": "cores"}\n'
        )
        pipeline = defined(tmp_path, text)
        error = _error(run_pipeline(pipeline))
        assert "bo" in error
        (tmp_path / "in" / "b.jsonl").write_text('{"login": "cy", "team": "cores"}\n')
        error = _error(run_pipeline(pipeline))
        assert "cores" in error
        assert loads(graph) == []
        (tmp_path / "in" / "b.jsonl").write_text('{"login": "cy", "team": "core"}\n')
        assert run_pipeline(pipeline).status == "succeeded"
        assert entities(graph)["MemberOf"] == ['["cy","core"]']
        runs = Ledger.open(str(tmp_path / "company.omni"), "people").list_runs()
        assert [run.status for run in runs] == ["succeeded", "failed", "failed"]
        assert len(loads(graph)) == 1


@pytest.mark.parametrize(
    ("source", "retryable", "message"),
    [
        ("{kind: postgres, url: '${CRM}', table: people}", True, "PostgreSQL cannot be read"),
        ("{kind: http, url: 'http://127.0.0.1:1/people'}", True, "127.0.0.1:1 cannot be"),
        ("{kind: files, paths: broken.parquet}", False, "broken.parquet: "),
        ("{kind: files, paths: a.csv, columns: login strng}", False, "source 'source': "),
        ("{kind: files, paths: '[ab].csv'}", False, "b.csv has no column login"),
    ],
)
def test_a_source_that_cannot_be_read_fails_the_run_and_leaves_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, retryable: bool, message: str
) -> None:
    monkeypatch.setattr(http_source, "_BACKOFF_S", 0.0)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough")
    (tmp_path / "a.csv").write_text("login,years\nada,1\n")
    (tmp_path / "b.csv").write_text("years,name\n2,bo\n")
    waits: list[float] = []
    options = RunOptions(
        environment={"CRM": "postgresql://me:word@127.0.0.1:1/x"}, wait=waits.append
    )
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, _people(source, values="")), options)
        (target,) = run.targets
        assert (run.status, target.is_retryable) == ("failed", retryable)
        assert target.attempts == (3 if retryable else 1)
        assert len(waits) == target.attempts - 1
        assert target.error is not None
        assert message in target.error
        assert "word" not in target.error
        assert loads(graph) == []
        # The rerun, by the source that is there now, is what it would have been.
        logins(tmp_path, "a.jsonl", "ada")
        assert run_pipeline(defined(tmp_path, SIMPLE), options).status == "succeeded"
        assert len(loads(graph)) == 1
