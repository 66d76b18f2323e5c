"""Definitions of a cluster: read from its files, and stored as one payload each.

A payload is a definition that needs no other file: it has its name, the rules of its mappings and
the providers it uses. References to the environment stay what they are. Equal definitions are
equal payloads, whatever their comments, their order and the files they are written in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from omnigraph.config.yaml_reader import (
    Findings,
    iter_named_nodes,
    parse_document,
    position_of,
    read_text,
)
from omnigraph.config.yaml_writer import format_node
from omnigraph.errors import PipelineInvalidError
from omnigraph.pipelines.config.definition import Pipeline, Target, TargetGraph
from omnigraph.pipelines.config.definition_reader import DefinitionContext, read_definition
from omnigraph.pipelines.config.source_reader import PROVIDER_PREFIX, SourceReader

_MAP_TAG: Final = "tag:yaml.org,2002:map"
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
# What a cluster says of all its definitions.
_CLUSTER_FIELDS: Final = {
    "graphs": "targets name graphs of the cluster",
    "ledger": "runs are recorded in the root of the cluster",
    "env_file": "a worker takes it: omnigraph worker --env-file PATH",
    "providers": "sources that are shared are declared in cluster.yaml, as providers.source",
}


@dataclass(frozen=True, slots=True)
class ClusterDefinition:
    """A definition of a cluster; without problems, it has a payload."""

    pipeline: Pipeline
    payload: bytes
    # The names of the providers that it uses.
    providers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterScope:
    """What a cluster gives its definitions: their graphs by id, and providers of sources."""

    graphs: Mapping[str, TargetGraph]
    providers: Mapping[str, yaml.Node]


def check_provider(name: str, node: yaml.Node, findings: Findings) -> None:
    """Report what is wrong with a provider of sources."""
    SourceReader(Path(), findings, {}).read_inline(name, node)


def read_cluster_definition(
    name: str, path: Path, scope: ClusterScope, findings: Findings
) -> ClusterDefinition:
    """The definition in a file of a cluster; what is wrong with it goes to the findings.

    Only a file that is not YAML raises.
    """
    root = parse_document(read_text(path, findings), findings)
    _report_cluster_fields(root, name, findings)
    context = DefinitionContext(
        str(path), path.parent.absolute(), name, scope.graphs, scope.providers
    )
    pipeline = read_definition(root, context, findings)
    used = sorted(set(_iter_used_providers(root)) & scope.providers.keys())
    payload = b""
    if not findings.problems:
        providers = {each: scope.providers[each] for each in used}
        payload = format_node(_build_tree(root, pipeline, providers)).encode()
    return ClusterDefinition(pipeline, payload, tuple(used))


def decode_definition(payload: bytes, context: DefinitionContext, digest: str) -> Pipeline:
    """The definition of a payload, whose digest is the one that runs record."""
    findings = Findings(context.file, error=PipelineInvalidError)
    root = parse_document(payload.decode(), findings)
    pipeline = read_definition(root, context, findings)
    findings.raise_if_any()
    return replace(pipeline, digest=digest)


def strip_providers(payload: bytes) -> bytes:
    """The payload as the file of a configuration, which declares the providers itself."""
    root = parse_document(payload.decode(), Findings("a payload"))
    kept = {name: each for name, each in _list_members(root).items() if name != "providers"}
    return format_node(_make_mapping(kept)).encode()


def _report_cluster_fields(root: yaml.Node, name: str, findings: Findings) -> None:
    if not isinstance(root, yaml.MappingNode):
        return
    for field, place, node in iter_named_nodes(root):
        if field in _CLUSTER_FIELDS:
            message = f"'{field}' is not a field of a definition in a cluster"
            findings.add_problem(place, message, hint=_CLUSTER_FIELDS[field], code="unknown_field")
        if field == "name" and node.value != name:
            message = f"the cluster calls this pipeline '{name}'"
            findings.add_problem(position_of(node), message, hint="leave the name out")


def _iter_used_providers(root: yaml.Node) -> Iterator[str]:
    members = _list_members(root)
    several = _list_members(members["sources"]) if "sources" in members else {}
    for node in (members.get("source"), *several.values()):
        if isinstance(node, yaml.ScalarNode) and node.value.startswith(PROVIDER_PREFIX):
            yield node.value.removeprefix(PROVIDER_PREFIX)


def _build_tree(
    root: yaml.Node, pipeline: Pipeline, providers: Mapping[str, yaml.Node]
) -> yaml.Node:
    """The definition with its name, the rules of its mappings, and the providers it uses."""
    members = _list_members(root)
    targets = [
        _build_target(node, target)
        for node, target in zip(members["into"].value, pipeline.targets, strict=True)
    ]
    members["into"] = yaml.SequenceNode(members["into"].tag, targets)
    members["name"] = _make_text(pipeline.name)
    if providers:
        members["providers"] = _make_mapping({"source": _make_mapping(providers)})
    return _make_mapping(members)


def _build_target(node: yaml.Node, target: Target) -> yaml.Node:
    members = _list_members(node)
    members["graph"] = _make_text(target.graph)
    if isinstance(members["map"], yaml.ScalarNode):
        members["map"] = parse_document(target.mapping.text, Findings(target.mapping.file))
    return _make_mapping(members)


def _list_members(node: yaml.Node) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {name: each for name, _, each in iter_named_nodes(node)}


def _make_mapping(members: Mapping[str, yaml.Node]) -> yaml.Node:
    pairs = [(_make_text(name), each) for name, each in members.items()]
    return yaml.MappingNode(_MAP_TAG, pairs)


def _make_text(text: str) -> yaml.Node:
    return yaml.ScalarNode(_TEXT_TAG, text)
