"""Runs as events of OpenLineage: what was read, what was written, and how it ended."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import omnigraph
from omnigraph.ids import decode_ulid
from omnigraph.pipelines.config.definition import Pipeline, Source, Target
from omnigraph.pipelines.ledger.run_ledger import INTERRUPTED, SUCCEEDED, Run
from omnigraph.pipelines.reports.dataset_names import DatasetName, iter_source_names, name_type
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_shape import JsonObject

START: Final = "START"
COMPLETE: Final = "COMPLETE"
FAIL: Final = "FAIL"
ABORT: Final = "ABORT"
_SPEC: Final = "https://openlineage.io/spec"
_PRODUCER: Final = "https://pypi.org/project/omnigraph/"
_STREAM: Final = "stream"
_PARENT_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class LineageSubject:
    """What events of a pipeline are about, with the values of secrets in its addresses.

    Sources and graphs whose secrets are not set are left out. `catalogs` are those of targets, by
    their names, as far as they are known.
    """

    pipeline: Pipeline
    sources: Mapping[str, Source]
    graphs: Mapping[str, str]
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)


def event_type_of(run: Run) -> str:
    """The event at the end of a run."""
    if run.status == SUCCEEDED:
        return COMPLETE
    return ABORT if run.status == INTERRUPTED else FAIL


def build_event(
    type_: str, run: Run, subject: LineageSubject, *, namespace: str, parent: str | None = None
) -> JsonObject:
    """The event of a run that begins or ends."""
    is_start = type_ == START
    return {
        "eventType": type_,
        "eventTime": run.started_at if is_start else run.ended_at or run.started_at,
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": format_run_id(run.id), "facets": _build_run_facets(run, parent)},
        "job": {
            "namespace": namespace,
            "name": run.pipeline,
            "facets": _build_job_facets(run, subject.pipeline),
        },
        "inputs": [_build_dataset(name, {}) for name in _list_inputs(subject)],
        "outputs": list(_iter_outputs(run, subject)),
    }


def format_run_id(run_id: str) -> str:
    """The id of a run as OpenLineage wants it: the same number."""
    return str(uuid.UUID(int=decode_ulid(run_id) or 0))


def _build_run_facets(run: Run, parent: str | None) -> JsonObject:
    version = omnigraph.__version__
    facets = {
        "processing_engine": _build_facet(
            "1-1-1/ProcessingEngineRunFacet", version=version, name="omnigraph"
        )
    }
    if run.errors:
        message = run.errors[0]
        facets["errorMessage"] = _build_facet(
            "1-0-1/ErrorMessageRunFacet", message=message, programmingLanguage="PYTHON"
        )
    if (found := _parse_parent(parent)) is not None:
        facets["parent"] = found
    return facets


def _parse_parent(text: str | None) -> JsonObject | None:
    """The run that this one is a part of: `namespace/job/run`, as schedulers set it."""
    parts = (text or "").rsplit("/", _PARENT_PARTS - 1)
    if len(parts) != _PARENT_PARTS:
        return None
    try:
        run_id = str(uuid.UUID(parts[2]))
    except ValueError:
        return None
    job = {"namespace": parts[0], "name": parts[1]}
    return _build_facet("1-2-0/ParentRunFacet", run={"runId": run_id}, job=job)


def _build_job_facets(run: Run, pipeline: Pipeline) -> JsonObject:
    processing = "STREAMING" if run.trigger == _STREAM else "BATCH"
    facets = {
        "jobType": _build_facet(
            "2-0-4/JobTypeJobFacet",
            processingType=processing,
            integration="OMNIGRAPH",
            jobType="PIPELINE",
        )
    }
    if pipeline.description is not None:
        facets["documentation"] = _build_facet(
            "1-1-0/DocumentationJobFacet", description=pipeline.description
        )
    return facets


def _list_inputs(subject: LineageSubject) -> list[DatasetName]:
    names = (
        each for name, source in subject.sources.items() for each in iter_source_names(name, source)
    )
    return sorted(set(names))


def _iter_outputs(run: Run, subject: LineageSubject) -> Iterator[JsonObject]:
    """Every type of every target; with its rows, where a target was loaded."""
    for target in subject.pipeline.targets:
        if target.graph not in subject.graphs:
            continue
        found = run.find_target(target.name)
        is_loaded = found is not None and found.commit is not None and not found.is_repeated
        counts = found.entities if found is not None and is_loaded else None
        for kind, type_name in _list_types(target):
            dataset = _build_dataset(
                name_type(subject.graphs[target.graph], target.branch, type_name),
                _build_schema_facet(subject.catalogs.get(target.name), kind, type_name),
            )
            if counts is not None:
                rows = counts.get(f"{kind}:{type_name}", 0)
                statistics = _build_facet("1-0-2/OutputStatisticsOutputDatasetFacet", rowCount=rows)
                dataset["outputFacets"] = {"outputStatistics": statistics}
            yield dataset


def _list_types(target: Target) -> list[tuple[str, str]]:
    rules = target.mapping.rules
    return sorted({("edge" if rule.is_edge else "node", rule.type_name) for rule in rules})


def _build_schema_facet(catalog: Catalog | None, kind: str, type_name: str) -> JsonObject:
    if catalog is None:
        return {}
    found = catalog.find_edge(type_name) if kind == "edge" else catalog.nodes.get(type_name)
    properties = () if found is None else found.properties.values()
    fields = [{"name": each.name, "type": str(each.type)} for each in properties]
    return {"schema": _build_facet("1-2-0/SchemaDatasetFacet", fields=fields)}


def _build_dataset(name: DatasetName, facets: JsonObject) -> JsonObject:
    return {"namespace": name.namespace, "name": name.name, "facets": facets}


def _build_facet(schema: str, **members: object) -> JsonObject:
    name = schema.rpartition("/")[2]
    address = f"{_SPEC}/facets/{schema}.json#/$defs/{name}"
    return {"_producer": _PRODUCER, "_schemaURL": address, **members}
