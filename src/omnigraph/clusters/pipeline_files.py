"""The pipelines that a configuration declares, and the providers of their sources.

A definition is checked against the desired schemas of the graphs it writes to. No source is asked,
and no Java is started; only a deep check starts Spark, to read expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from omnigraph.clusters.addresses import Kind, build_address
from omnigraph.clusters.cluster_findings import ClusterFindings
from omnigraph.clusters.desired import Resource, digest_bytes, digest_document
from omnigraph.config.yaml_reader import (
    DOCUMENT_START,
    Findings,
    Position,
    decode_node,
    position_of,
)
from omnigraph.errors import ConfigInvalidError, PipelineInvalidError, Problem
from omnigraph.pipelines.config.cluster_definition import (
    ClusterDefinition,
    ClusterScope,
    check_provider,
    read_cluster_definition,
)
from omnigraph.pipelines.config.definition import Pipeline, TargetGraph
from omnigraph.pipelines.config.definition_reader import is_pipeline_name
from omnigraph.pipelines.config.definition_validator import LazySparkSession, validate_pipeline
from omnigraph.pipelines.mapping.mapping_checks import check_mapping
from omnigraph.schema.catalog import Catalog

# What is wrong with a definition, unless its code says more.
_INVALID: Final = "pipeline_invalid"
_OWN_CODES: Final = frozenset(
    {
        *("inline_secret", "ambiguous_source", "wrong_kind_reference"),
        *("dangling_graph_reference", "dangling_source_reference"),
    }
)


@dataclass
class PipelineFiles:
    """Reads the definitions of one configuration; every problem is collected."""

    folder: Path
    problems: Findings
    # The file of the schema of each graph, and the schema, compiled when it is needed.
    schemas: Mapping[str, str]
    load_catalog: Callable[[str], Catalog | None]
    warnings: ClusterFindings
    # What reads expressions in a deep check.
    spark: LazySparkSession | None = None
    # The pipelines that name what the desired schema of a graph lacks, by that schema.
    _broken: dict[str, set[str]] = field(default_factory=dict)
    _providers: dict[str, yaml.Node] = field(default_factory=dict)

    def read_provider(self, name: str, node: yaml.Node) -> Resource:
        """A provider of sources; `${NAME}` stays what it is."""
        self._providers[name] = node
        found = Findings(self.problems.file, paths=self.problems.paths)
        check_provider(name, node, found)
        self._report(f"source '{name}'", found.problems, "invalid_source_provider")
        profile = None if found.problems else decode_node(node)
        details: dict[str, Any] = {"source_profile": profile}  # Any: values of JSON
        address = build_address(Kind.SOURCE, name)
        digest = digest_document(["source-provider", profile])
        return Resource(address, Kind.SOURCE, digest, details=details)

    def read(self, name: str, place: Position, node: yaml.Node) -> Resource | None:
        """A pipeline, from the file that a configuration names for it."""
        if not is_pipeline_name(name):
            message = f"'{name}' cannot be the name of a pipeline: use at most 64 letters, digits,"
            message += " '_' and '-', from a letter on"
            self.problems.add_problem(place, message, code="invalid_resource_id")
            return None
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            message = f"pipeline '{name}': write the path of its definition"
            self.problems.add_problem(position_of(node), message, code="invalid_cluster_yaml")
            return None
        path = self.folder / node.value
        if not path.is_file():
            message = f"{node.value} is not a file"
            self.problems.add_problem(position_of(node), message, code="pipeline_file_missing")
            return None
        definition = self._read_definition(name, path)
        if definition is None:
            return None
        data, address = definition.payload, build_address(Kind.PIPELINE, name)
        details = _describe_pipeline(definition)
        return Resource(address, Kind.PIPELINE, digest_bytes(data), node.value, data, details)

    def list_broken(self) -> dict[str, list[str]]:
        """The pipelines that name what a schema lacks, by the address of the schema."""
        return {schema: sorted(names) for schema, names in sorted(self._broken.items())}

    def _read_definition(self, name: str, path: Path) -> ClusterDefinition | None:
        graphs = {
            graph_id: TargetGraph(
                build_address(Kind.GRAPH, graph_id), self.folder / file, DOCUMENT_START
            )
            for graph_id, file in self.schemas.items()
        }
        findings = Findings(str(path), error=PipelineInvalidError)
        try:
            scope = ClusterScope(graphs, self._providers)
            definition = read_cluster_definition(name, path, scope, findings)
        except ConfigInvalidError as error:
            self._report(f"pipeline '{name}'", error.problems)
            return None
        pipeline = definition.pipeline
        found = self._check_mappings(pipeline)
        if self.spark is not None and not findings.problems:
            found = self._check_expressions(pipeline, self.spark)
        self._report(f"pipeline '{name}'", [*findings.problems, *found])
        return None if findings.problems or found else definition

    def _check_mappings(self, pipeline: Pipeline) -> list[Problem]:
        """What the mappings name and the desired schemas of their targets do not have."""
        found: list[Problem] = []
        for target in pipeline.targets:
            catalog = self.load_catalog(target.graph) if target.graph in self.schemas else None
            if catalog is not None:
                problems = check_mapping(target.mapping, catalog, mode=target.mode).problems
                if problems:
                    schema = build_address(Kind.SCHEMA, target.graph)
                    address = build_address(Kind.PIPELINE, pipeline.name)
                    self._broken.setdefault(schema, set()).add(address)
                found += problems
        return found

    def _check_expressions(self, pipeline: Pipeline, spark: LazySparkSession) -> list[Problem]:
        findings = Findings(pipeline.file, error=PipelineInvalidError)
        report = validate_pipeline(
            pipeline, findings, spark=spark, looks_at_files=False, names_approvals=False
        )
        for remark in report.remarks:
            self.warnings.add_warning("pipeline_not_checked", f"pipelines.{pipeline.name}", remark)
        return list(report.problems)

    def _report(self, owner: str, found: Iterable[Problem], code: str = _INVALID) -> None:
        for each in found:
            own = each.code if each.code in _OWN_CODES else code
            message = f"{owner}: {each.message}"
            self.problems.problems.append(replace(each, code=own, message=message))


def _describe_pipeline(definition: ClusterDefinition) -> dict[str, Any]:  # Any: values of JSON
    """What a revision holds of a pipeline, so that plans do not read its payload."""
    pipeline = definition.pipeline
    graphs = {build_address(Kind.GRAPH, target.graph) for target in pipeline.targets}
    found: dict[str, Any] = {
        "kinds": sorted({source.kind for source in pipeline.sources.values()}),
        "targets": sorted(graphs),
        "sources": [build_address(Kind.SOURCE, name) for name in definition.providers],
    }
    if pipeline.schedule is not None:
        found["schedule"] = pipeline.schedule
    return found | ({"overwrites": True} if pipeline.overwrites else {})
