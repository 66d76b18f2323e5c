"""Metrics of runs: a file for a collector, and pushes to a gateway."""

from __future__ import annotations

import base64
import os
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.ledger.run_ledger import Run, TargetRun
from omnigraph.pipelines.reports.run_metrics import list_target_samples
from unit.pipelines.definitions import PEOPLE, read
from unit.pipelines.http_receiver import open_receiver
from unit.pipelines.reported_runs import HIDDEN, run_once

_PREFIX = "omnigraph_pipeline_"
_LAST = f"{_PREFIX}target_last_run_"


def _read_values(text: str) -> dict[str, float]:
    """Each metric of one pipeline and one target, with its value."""
    families = list(text_string_to_metric_families(text))
    assert all(each.documentation and each.type == "gauge" for each in families)
    samples = [sample for family in families for sample in family.samples]
    for each in samples:
        target = {"target": "company/main"} if "_target_" in each.name else {}
        assert each.labels == {"pipeline": "people", **target}
    return {each.name.removeprefix(_PREFIX): each.value for each in samples}


def _seconds(time: str | None) -> float:
    assert time is not None
    return datetime.fromisoformat(time).timestamp()


def test_a_file_for_a_collector_keeps_when_a_run_last_succeeded(tmp_path: Path) -> None:
    pipeline = read(tmp_path, "metrics: {folder: collected}\n" + PEOPLE)
    folder = tmp_path / "collected"
    folder.mkdir()
    good = run_once(pipeline)
    first = _read_values((folder / "omnigraph_people.prom").read_text())
    assert first == {
        "last_run_timestamp_seconds": _seconds(good.ended_at),
        "last_run_duration_seconds": first["last_run_duration_seconds"],
        "last_run_succeeded": 1,
        "last_run_warnings": 0,
        "last_success_timestamp_seconds": _seconds(good.ended_at),
        "target_last_run_succeeded": 1,
        "target_last_run_attempts": 1,
        "target_last_run_rows_read": 1,
        "target_last_run_rows_written": 1,
        "target_last_run_rows_deleted": 0,
        "target_last_run_rows_rejected": 0,
        "target_last_success_timestamp_seconds": _seconds(good.ended_at),
    }
    bad = run_once(pipeline, SourceRefusedError("no"), slot="t")
    second = _read_values((folder / "omnigraph_people.prom").read_text())
    assert (second["last_run_succeeded"], second["target_last_run_succeeded"]) == (0, 0)
    assert second["last_run_timestamp_seconds"] == _seconds(bad.ended_at)
    for name in ("last_success_timestamp_seconds", "target_last_success_timestamp_seconds"):
        assert second[name] == _seconds(good.ended_at)
    # A slot that the target has: nothing is written again.
    again = run_once(pipeline)
    third = _read_values((folder / "omnigraph_people.prom").read_text())
    assert (again.targets[0].is_repeated, third["target_last_run_rows_written"]) == (True, 0)
    assert third["last_success_timestamp_seconds"] == _seconds(again.ended_at)
    assert os.listdir(folder) == ["omnigraph_people.prom"]


def test_a_gateway_gets_a_group_for_the_run_and_one_for_each_target(tmp_path: Path) -> None:
    with open_receiver() as gateway:
        metrics = (
            f"metrics: {{gateway: '{gateway.url}/', headers: {{Authorization: '${{TOKEN}}'}}}}\n"
        )
        pipeline = read(tmp_path, metrics + PEOPLE)
        run_once(pipeline, SourceRefusedError("no"))
        run_once(pipeline)
    target = base64.urlsafe_b64encode(b"company/main").decode()
    group = "/metrics/job/omnigraph/pipeline/people"
    assert [path for path, _, _ in gateway.posts] == [group, f"{group}/target@base64/{target}"] * 2
    assert {headers["Authorization"] for _, headers, _ in gateway.posts} == {HIDDEN}
    failed, _, succeeded, loaded = (_read_values(body.decode()) for *_, body in gateway.posts)
    # What a group had of a name that is not pushed, it keeps.
    assert "last_success_timestamp_seconds" not in failed
    assert "last_success_timestamp_seconds" in succeeded
    assert loaded["target_last_run_rows_written"] == 1


def test_metrics_that_cannot_be_published_are_warnings(tmp_path: Path) -> None:
    with open_receiver() as gateway:
        gateway.statuses = [400]
        metrics = f"metrics: {{folder: missing, gateway: '{gateway.url}'}}\n"
        run = run_once(read(tmp_path, metrics + PEOPLE))
    assert (run.status, run.warnings) == (
        "succeeded",
        (
            "metrics failed: omnigraph_people.prom cannot be written: No such file or directory",
            f"metrics failed: {gateway.url} answers 400",
        ),
    )


def test_labels_are_escaped_and_unknown_counts_left_out() -> None:
    target = TargetRun('a"\\/b', "a", "b", "k", status="failed", rejected=None)
    run = Run("R", "people", "s", "d", "manual", "2026-01-01T00:00:00Z", "failed", (target,))
    lines = [str(each) for each in list_target_samples(run, target)]
    assert lines[0] == f'{_LAST}succeeded{{pipeline="people",target="a\\"\\\\/b"}} 0'
    names = [line.partition("{")[0].removeprefix(_LAST) for line in lines]
    assert names == ["succeeded", "attempts", "rows_written", "rows_deleted"]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("{}", "give 'folder', 'gateway' or both"),
        ("{gateway: 'https://ada:pw@x'}", "'gateway' holds a password"),
        ("{gateway: 'https://x', headers: {Authorization: abc}}", "'Authorization' holds a secret"),
    ],
)
def test_metrics_without_a_place_are_problems(tmp_path: Path, metrics: str, message: str) -> None:
    with pytest.raises(PipelineInvalidError, match=message):
        read(tmp_path, f"metrics: {metrics}\n{PEOPLE}")
