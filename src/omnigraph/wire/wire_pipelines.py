"""The bodies of answers about runs of pipelines."""

from __future__ import annotations

from pydantic import ConfigDict

from omnigraph.wire.wire_model import Answer, JsonObject, UInt64


class PipelineRunOutput(Answer):
    """A run as its ledger has it, with further members; what became of each target is in it."""

    model_config = ConfigDict(extra="allow")

    run_id: str
    pipeline: str
    slot: str
    trigger: str
    status: str
    started_at: str
    ended_at: str | None
    targets: list[JsonObject]


class PipelineRunListOutput(Answer):
    """The pipelines whose ledger is in a graph, by name, and their newest runs, newest first."""

    pipelines: list[str]
    runs: list[PipelineRunOutput]


class RejectedRecordsOutput(Answer):
    """Records that a run left out of a target; those of a file on another machine are missing."""

    rejected: UInt64 | None
    rejects: str | None
    records: list[JsonObject]
