"""Runs of pipelines."""

from __future__ import annotations

from omnigraph.operations import pipeline_runs
from omnigraph.server.exchange import Answer, Call, answer_json


def list_runs(call: Call) -> Answer:
    """The newest runs."""
    return answer_json(pipeline_runs.list_pipeline_runs(call.open_graph(), call.query))


def get_run(call: Call) -> Answer:
    """One run."""
    found = pipeline_runs.read_pipeline_run(call.open_graph(), *_name_run(call))
    return answer_json(found)


def list_rejects(call: Call) -> Answer:
    """The records that a run left out of a target."""
    found = pipeline_runs.read_rejected_records(call.open_graph(), *_name_run(call), call.query)
    return answer_json(found)


def _name_run(call: Call) -> tuple[str, str]:
    return call.path["pipeline"], call.path["run_id"]
