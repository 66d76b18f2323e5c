"""The runs of pipelines that a graph has in its ledger, and the records that they left out."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from omnigraph.errors import PipelineRunNotFoundError
from omnigraph.pipelines.ledger.run_ledger import FOLDER, Ledger, Run
from omnigraph.policy.acts import Action
from omnigraph.storage import open_objects

if TYPE_CHECKING:
    from omnigraph.engine import Graph
    from omnigraph.storage.objects.object_store import Objects
    from omnigraph.wire.wire_requests import RejectedRecordsQuery, RunListQuery

JsonObject = dict[str, Any]  # Any: a JSON document
RUNS_MAX: Final = 200
RECORDS_MAX: Final = 1_000
# What quarantined loads call their files: nothing else is read for the address in a run.
_REJECTS: Final = re.compile(r"(.+)/(rejects-[0-9A-Z]{26}\.parquet)", re.ASCII)
_COLUMNS: Final = ("place", "type", "id", "property", "rule", "reason", "raw")


def list_pipeline_runs(graph: Graph, asked: RunListQuery) -> JsonObject:
    """The newest runs of every pipeline of a graph, or of one: PipelineRunListOutput."""
    objects = _open_ledgers(graph)
    names = list(_iter_pipelines(objects))
    limit = RUNS_MAX if asked.limit is None else min(asked.limit, RUNS_MAX)
    chosen = names if asked.pipeline is None else [each for each in names if each == asked.pipeline]
    runs = [run for name in chosen for run in Ledger(objects, name).list_runs(limit=limit)]
    # Ids begin with the time of their start.
    runs.sort(key=lambda run: run.id, reverse=True)
    return {"pipelines": names, "runs": [run.to_json() for run in runs[:limit]]}


def read_pipeline_run(graph: Graph, pipeline: str, run_id: str) -> JsonObject:
    """One run: PipelineRunOutput."""
    return _find_run(_open_ledgers(graph), pipeline, run_id).to_json()


def read_rejected_records(
    graph: Graph, pipeline: str, run_id: str, asked: RejectedRecordsQuery
) -> JsonObject:
    """The first records that a run left out of a target, with reasons: RejectedRecordsOutput.

    They are records of a source, which may hold more than the graph: to export it is asked for.
    """
    objects = _open_ledgers(graph)
    # Records of any type: who may export some types only may not see them.
    graph.branch().snapshot().open_for(Action.EXPORT, None)
    target = _find_run(objects, pipeline, run_id).find_target(asked.target)
    if target is None:
        raise PipelineRunNotFoundError(f"run '{run_id}' has no target '{asked.target}'")
    limit = RECORDS_MAX if asked.limit is None else min(asked.limit, RECORDS_MAX)
    document = {"rejected": target.rejected, "rejects": target.rejects}
    return document | {"records": _read_file(target.rejects, limit)}


def _open_ledgers(graph: Graph) -> Objects:
    """Where the ledgers are, for a caller who may read the whole graph."""
    _ = graph.branch().snapshot().view
    return open_objects(graph.uri)


def _iter_pipelines(objects: Objects) -> Iterator[str]:
    """The names of pipelines that ran; the objects of each are passed over."""
    after: str | None = None
    while (found := next(iter(objects.list(FOLDER, after=after)), None)) is not None:
        name = found.path.removeprefix(f"{FOLDER}/").partition("/")[0]
        yield name
        # The character after the slash: what is below the folder lies before it.
        after = f"{FOLDER}/{name}0"


def _find_run(objects: Objects, pipeline: str, run_id: str) -> Run:
    found = None
    if pipeline in set(_iter_pipelines(objects)):
        found = Ledger(objects, pipeline).find_run(run_id)
    if found is None:
        raise PipelineRunNotFoundError(f"pipeline '{pipeline}' has no run '{run_id}'")
    return found


def _read_file(address: str | None, limit: int) -> list[JsonObject]:
    """The first records of a file; one that is not on this machine, or gone, has none."""
    named = None if address is None else _REJECTS.fullmatch(address)
    if named is None:
        return []
    folder, name = named.groups()
    content = open_objects(folder).get(name)
    if content is None:
        return []
    batches = pq.ParquetFile(io.BytesIO(content)).iter_batches(limit, columns=list(_COLUMNS))
    return [row for batch in islice(batches, 1) for row in batch.to_pylist()]
