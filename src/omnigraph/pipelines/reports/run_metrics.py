"""Metrics of the last run in the text format of Prometheus: in a file, or pushed to a gateway.

A run that fails leaves out when it last succeeded: the file keeps the lines that it had, and a
gateway what was pushed before.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, UNCHANGED, Run, TargetRun
from omnigraph.pipelines.reports.report_sender import ReportFailedError, post_report

_PREFIX: Final = "omnigraph_pipeline_"
_MEANINGS: Final = {
    "last_run_timestamp_seconds": "When the last run ended.",
    "last_run_duration_seconds": "How long the last run took.",
    "last_run_succeeded": "Whether all targets of the last run succeeded.",
    "last_run_warnings": "How many reports of the last run did not arrive.",
    "last_success_timestamp_seconds": "When the last run ended of which all targets succeeded.",
    "target_last_run_succeeded": "Whether the target of the last run succeeded.",
    "target_last_run_attempts": "How often the last run tried the target.",
    "target_last_run_rows_read": "How many records the last run read for the target.",
    "target_last_run_rows_written": "How many entities the last run wrote to the target.",
    "target_last_run_rows_deleted": "How many entities the last run deleted from the target.",
    "target_last_run_rows_rejected": "How many rows the last run left out of the target.",
    "target_last_success_timestamp_seconds": "When the last run ended that succeeded here.",
}
_SUCCESS_LINE: Final = re.compile(
    rf"{_PREFIX}(?:target_)?last_success_timestamp_seconds\{{[^\n]*\}} [0-9.]+"
)
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric, of the pipeline or of one target."""

    name: str
    labels: Mapping[str, str]
    value: float

    def __str__(self) -> str:
        labels = ",".join(f'{name}="{_escape(text)}"' for name, text in self.labels.items())
        return f"{_PREFIX}{self.name}{{{labels}}} {self.value!r}"


def write_metrics_file(folder: Path, run: Run) -> None:
    """Replace the file of the pipeline in the folder of a collector."""
    path = folder / f"omnigraph_{run.pipeline}.prom"
    lines = [str(each) for each in _iter_all_samples(run)]
    # A collector reads names that end in `.prom`, and whole files only.
    beside = folder / f".{path.name}.{run.id}"
    try:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        known = {line.rpartition(" ")[0] for line in lines}
        kept = [line for line in old.splitlines() if _SUCCESS_LINE.fullmatch(line)]
        lines += [line for line in kept if line.rpartition(" ")[0] not in known]
        beside.write_text(format_samples(lines), encoding="utf-8")
        os.replace(beside, path)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise ReportFailedError(f"{path.name} cannot be written: {reason}") from None
    finally:
        beside.unlink(missing_ok=True)


def push_metrics(gateway: str, headers: Mapping[str, str], run: Run) -> None:
    """Push what is measured of the run, and of each target, as a group of its own.

    A push replaces the metrics of its names in its group, so that a target that failed keeps when
    it last succeeded.
    """
    group = f"{gateway.rstrip('/')}/metrics/job/omnigraph/pipeline/{run.pipeline}"
    _push(group, headers, list_run_samples(run))
    for target in run.targets:
        name = base64.urlsafe_b64encode(target.target.encode()).decode()
        _push(f"{group}/target@base64/{name}", headers, list_target_samples(run, target))


def list_run_samples(run: Run) -> list[Sample]:
    """What is measured of a run as a whole."""
    labels, ended_s = {"pipeline": run.pipeline}, _to_seconds(run.ended_at or run.started_at)
    is_success = run.status == SUCCEEDED
    values = {
        "last_run_timestamp_seconds": ended_s,
        "last_run_duration_seconds": round(ended_s - _to_seconds(run.started_at), 3),
        "last_run_succeeded": int(is_success),
        "last_run_warnings": len(run.warnings),
        **({"last_success_timestamp_seconds": ended_s} if is_success else {}),
    }
    return [Sample(name, labels, value) for name, value in values.items()]


def list_target_samples(run: Run, target: TargetRun) -> list[Sample]:
    """What is measured of a target; a load that was made before wrote nothing now."""
    is_success, is_old = target.status in (SUCCEEDED, UNCHANGED), target.is_repeated
    values: dict[str, float | None] = {
        "target_last_run_succeeded": int(is_success),
        "target_last_run_attempts": target.attempts,
        "target_last_run_rows_read": 0 if is_old else target.rows_read,
        "target_last_run_rows_written": 0 if is_old else target.written,
        "target_last_run_rows_deleted": 0 if is_old else sum(target.deleted.values()),
        "target_last_run_rows_rejected": 0 if is_old else target.rejected,
    }
    if is_success:
        ended_s = _to_seconds(run.ended_at or run.started_at)
        values["target_last_success_timestamp_seconds"] = ended_s
    labels = {"pipeline": run.pipeline, "target": target.target}
    return [Sample(name, labels, value) for name, value in values.items() if value is not None]


def format_samples(lines: list[str]) -> str:
    """The lines of samples as Prometheus reads them, each metric with what it means."""
    return "".join(
        f"# HELP {_PREFIX}{name} {meaning}\n# TYPE {_PREFIX}{name} gauge\n" + "".join(own)
        for name, meaning in _MEANINGS.items()
        if (own := [f"{line}\n" for line in lines if line.startswith(f"{_PREFIX}{name}{{")])
    )


def _push(url: str, headers: Mapping[str, str], samples: list[Sample]) -> None:
    content = format_samples([str(each) for each in samples]).encode()
    post_report(
        url, content, headers={"Content-Type": _CONTENT_TYPE, **headers}, timeout_s=_TIMEOUT_S
    )


def _iter_all_samples(run: Run) -> Iterator[Sample]:
    yield from list_run_samples(run)
    for target in run.targets:
        yield from list_target_samples(run, target)


def _to_seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
