"""Reads `cluster.yaml` and the files it names into the desired state, or lists every problem.

Files that the newest revision has with the same digest, under the same schema, were checked when
they were applied: they are only read and hashed again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from omnigraph.clusters.addresses import (
    Kind,
    build_address,
    is_graph_id,
    is_resource_name,
    name_of,
)
from omnigraph.clusters.blob_bases import read_blob_bases
from omnigraph.clusters.cluster_findings import (
    ClusterFinding,
    ClusterFindings,
    Severity,
    convert_diagnostics,
    convert_problem,
)
from omnigraph.clusters.cluster_schema import (
    CLUSTER,
    GRAPH,
    METADATA,
    PROVIDER,
    PROVIDERS,
    RESERVED,
    STATE,
    UI,
    VERSION,
)
from omnigraph.clusters.dashboard_files import DashboardFiles
from omnigraph.clusters.desired import (
    Desired,
    Resource,
    compute_composite,
    digest_bytes,
    digest_document,
    group_by_graph,
    index_providers,
)
from omnigraph.clusters.embed_rules import find_embed_problems
from omnigraph.clusters.policy_files import PolicyFiles
from omnigraph.clusters.query_files import KnownQueries, QueryFiles
from omnigraph.clusters.revision import RevisionContent
from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.config.references import contains_password, find_names, is_reference
from omnigraph.config.written_addresses import examine_service_url, has_user
from omnigraph.config.yaml_reader import (
    Findings,
    Position,
    Section,
    decode_node,
    iter_named_nodes,
    parse_document,
    read_section,
    read_text,
    require_version,
)
from omnigraph.embedding.embedding_profile import AUTHS, list_kinds, needs_key
from omnigraph.embedding.provider_embedder import PROFILE_FIELDS
from omnigraph.errors import CompileError, ConfigInvalidError
from omnigraph.query.entity_conditions import load_whole_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_parser import parse_schema

if TYPE_CHECKING:
    from omnigraph.pipelines.config.definition_validator import LazySparkSession

FILE_NAME: Final = "cluster.yaml"
_BLOBS_REFUSED: Final = "external_blob_ingress_default_deny"
# What is not wrong with a configuration, and worth a thought while it is written.
ADVICE: Final = frozenset({_BLOBS_REFUSED})


@dataclass(frozen=True, slots=True)
class ConfigResult:
    """What a folder holds: the desired state if it has no errors, and where the cluster lives."""

    root: str | None
    desired: Desired | None
    findings: tuple[ClusterFinding, ...]
    is_locked: bool = True
    # The pipelines whose targets lack what they name, by the schemas that lack it.
    broken: Mapping[str, Sequence[str]] = field(default_factory=dict)


@contextmanager
def pause_collection() -> Iterator[None]:
    """Around work that makes many objects, all of which stay: there is no garbage to look for."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@pause_collection()
def read_config(
    directory: str | Path,
    known: RevisionContent | None = None,
    *,
    spark: LazySparkSession | None = None,
) -> ConfigResult:
    """Read a folder; everything that is wrong with it is reported at once.

    With `spark`, the expressions of pipelines are read too.
    """
    return _read(directory, lambda reader, node: reader.read(node, spark), known)


def read_config_deeply(directory: str | Path) -> ConfigResult:
    """Read a folder, and the expressions of its pipelines with Spark on this machine."""
    from omnigraph.pipelines.config.definition_validator import LazySparkSession  # noqa: PLC0415

    with LazySparkSession() as spark:
        return read_config(directory, spark=spark)


def read_root(directory: str | Path) -> ConfigResult:
    """Where the cluster of a folder lives, whatever else its configuration holds."""
    return _read(directory, lambda reader, node: reader.read_root(node), None)


def _read(
    directory: str | Path,
    read: Callable[[_ConfigReader, yaml.Node], ConfigResult],
    known: RevisionContent | None,
) -> ConfigResult:
    folder = Path(directory)
    path = folder / FILE_NAME
    if not folder.is_dir():
        finding = ClusterFinding(
            "config_dir_not_found", Severity.ERROR, str(folder), "this is not a folder"
        )
        return ConfigResult(None, None, (finding,))
    problems = Findings(str(path))
    try:
        node = parse_document(read_text(path, problems), problems)
    except ConfigInvalidError as error:
        return ConfigResult(None, None, tuple(map(convert_problem, error.problems)))
    return read(_ConfigReader(folder, problems, known or RevisionContent()), node)


@dataclass
class _ConfigReader:
    """Reads one configuration; resources come together as its sections are read."""

    folder: Path
    problems: Findings
    known: RevisionContent
    warnings: ClusterFindings = field(default_factory=ClusterFindings)
    resources: dict[str, Resource] = field(default_factory=dict)
    # The desired schema of each graph, compiled when it is needed.
    catalogs: dict[str, Callable[[], Catalog | None]] = field(default_factory=dict)

    def read(self, node: yaml.Node, spark: LazySparkSession | None) -> ConfigResult:
        """The whole document."""
        self._refuse_reserved(node)
        whole = read_section(node, CLUSTER, self.problems)
        code = "unsupported_cluster_config_version"
        require_version(whole, VERSION, self.problems, code=code)
        name = self._read_name(whole)
        root = self._read_root(whole)
        is_locked = self._read_lock(whole)
        self._read_providers(whole)
        self._read_graphs(whole)
        self._read_policies(whole)
        self._read_dashboards(whole)
        broken = self._read_pipelines(whole, spark)
        found = (*map(convert_problem, self.problems.problems), *self.warnings.found)
        if self.problems.problems or root is None or ClusterFindings(list(found)).has_errors:
            return ConfigResult(root, None, found, is_locked, broken)
        digests = {address: each.digest for address, each in sorted(self.resources.items())}
        config_digest = digest_document({"config": decode_node(node), "resources": digests})
        desired = Desired(str(self.folder), root, self.resources, config_digest, is_locked, name)
        return ConfigResult(root, desired, found, is_locked)

    def read_root(self, node: yaml.Node) -> ConfigResult:
        """Only where the cluster lives, and whether it is locked."""
        whole = read_section(node, CLUSTER, Findings(self.problems.file))
        root, is_locked = self._read_root(whole), self._read_lock(whole)
        return ConfigResult(
            root, None, tuple(map(convert_problem, self.problems.problems)), is_locked
        )

    def _add(self, place: Position, message: str, code: str) -> None:
        self.problems.add_problem(place, message, code=code)

    def _refuse_reserved(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            for name, place, _ in iter_named_nodes(node):
                if name in RESERVED:
                    message = f"'{name}' is reserved for later versions: leave it out"
                    self._add(place, message, "future_phase_field")

    def _read_name(self, whole: Section) -> str | None:
        if not whole.has_field("metadata"):
            return None
        section = read_section(whole.values["metadata"], METADATA, self.problems)
        node = section.values["name"]
        name = node.value if isinstance(node, yaml.ScalarNode) else None
        if section.has_field("name") and (name is None or not str(name).strip()):
            self._add(section.position_of("name"), "the name is blank", "empty_metadata_name")
        return name

    def _read_root(self, whole: Section) -> str | None:
        if not whole.has_field("storage"):
            return str(self.folder.absolute())
        node = whole.values["storage"]
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
        scheme, separator, rest = text.partition("://")
        is_known = not separator or scheme in ("file", "s3", "memory")
        is_clean = text.isprintable() and not (separator and set("@?#") & set(rest))
        is_named = bool(rest.strip("/")) if separator else bool(text.strip())
        if not (is_known and is_clean and is_named):
            # The text is not repeated: it may hold a password.
            message = "this is not a storage root: write a path, file:///… or s3://bucket/…"
            self._add(whole.position_of("storage"), message, "invalid_storage_root")
            return None
        return text.rstrip("/") if separator else str((self.folder / text).absolute())

    def _read_lock(self, whole: Section) -> bool:
        if not whole.has_field("state"):
            return True
        state = read_section(whole.values["state"], STATE, self.problems)
        if state.get_text("backend") != "cluster":
            message = "the backend is not known: write cluster"
            self._add(state.position_of("backend"), message, "unsupported_state_backend")
        if not state.values["lock"]:
            message = "people who apply at the same time are not kept apart"
            self.warnings.add_warning("state_lock_disabled", "state.lock", message)
        return bool(state.values["lock"])

    def _iter_named(
        self, node: object, *, is_graph: bool = False
    ) -> Iterator[tuple[str, Position, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            return
        for name, place, value in iter_named_nodes(node):
            if is_graph_id(name) if is_graph else is_resource_name(name):
                yield name, place, value
            else:
                rule = (
                    "letters, digits and '-', from a letter on, at most 64, no reserved word"
                    if is_graph
                    else "letters, digits, '_' and '-', from a letter or '_' on, at most 128"
                )
                self._add(place, f"'{name}' cannot be an id: use {rule}", "invalid_resource_id")

    def _read_providers(self, whole: Section) -> None:
        if not whole.has_field("providers"):
            return
        section = read_section(whole.values["providers"], PROVIDERS, self.problems)
        for name, place, value in self._iter_named(section.values["embedding"]):
            profile = self._read_profile(place, value)
            address = build_address(Kind.PROVIDER, name)
            digest = digest_document(["embedding-provider", profile])
            details = {"embedding_profile": profile}
            self.resources[address] = Resource(address, Kind.PROVIDER, digest, details=details)

    def _read_profile(self, place: Position, node: yaml.Node) -> dict[str, str]:
        section = read_section(node, PROVIDER, self.problems)
        kind = section.find_text("kind") or section.find_text("provider") or "openai-compatible"
        if section.has_field("kind") and section.has_field("provider"):
            message = "'kind' and 'provider' are two names of one field: leave one of them out"
            self._add(section.position_of("provider"), message, "invalid_embedding_provider")
        if kind not in (kinds := list_kinds()):
            message = f"the kind is not known; known are {', '.join(kinds)}"
            self._add(section.position_of("kind"), message, "invalid_embedding_provider")
        auth = section.find_text("auth")
        if auth not in (None, *AUTHS):
            message = "'auth' is 'key', or 'none' for a service without keys"
            self._add(section.position_of("auth"), message, "invalid_embedding_provider")
        key = section.find_text("api_key")
        if key is not None and not is_reference(key):
            # The value itself is not repeated: it may be a secret.
            message = "a key is never written down: name a variable, such as ${OPENAI_API_KEY}"
            self._add(section.position_of("api_key"), message, "embedding_api_key_inline")
        if url := section.find_text("base_url"):
            self._check_service(section.position_of("base_url"), url)
        if key is None and auth != "none" and needs_key(kind):
            message = f"'{kind}' needs an api_key, such as ${{OPENAI_API_KEY}}"
            self._add(place, message, "embedding_api_key_required")
        texts = {name: section.find_text(name) for name in PROFILE_FIELDS}
        return {"kind": kind} | {name: text for name, text in texts.items() if text is not None}

    def _check_service(self, place: Position, url: str) -> None:
        if contains_password(url) or has_user(url):
            message = "an address has no password and no key: name a variable with api_key"
            self._add(place, message, "embedding_api_key_inline")
        elif not find_names(url) and (problem := examine_service_url(url)):
            self._add(place, problem, "invalid_embedding_provider")

    def _read_graphs(self, whole: Section) -> None:
        known = KnownQueries(self.known)
        for name, _, value in self._iter_named(whole.values["graphs"], is_graph=True):
            section = read_section(value, GRAPH, self.problems)
            if section.has_field("streaming"):
                message = "'streaming' was removed: leave it out"
                where = section.position_of("streaming")
                self._add(where, message, "removed_streaming_declaration")
            details = self._read_graph_details(name, section)
            is_known = self._read_schema(name, section)
            load = self.catalogs[name] = cache(partial(self._load_catalog, name))
            if section.has_field("embed"):
                where = section.position_of("embed")
                mode = section.get_text("embed")
                for code, message in find_embed_problems(mode, load):
                    self._add(where, message, code)
            if not is_known:
                load()
            if (spec := section.values["queries"]) is not None:
                files = QueryFiles(
                    name, self.folder, self.problems, self.warnings, known, is_known, load
                )
                for resource in files.read(spec):
                    self.resources[resource.address] = resource
            address = build_address(Kind.GRAPH, name)
            self.resources[address] = Resource(address, Kind.GRAPH, "", details=details)
        children = group_by_graph(self.resources)
        providers = index_providers(self.resources)
        for address, each in self.resources.items():
            if each.kind is Kind.GRAPH:
                name = name_of(address)
                digest = compute_composite(name, children.get(name, {}), each.details, providers)
                self.resources[address] = Resource(
                    address, Kind.GRAPH, digest, details=each.details
                )

    def _read_graph_details(self, name: str, section: Section) -> dict[str, Any]:  # Any: JSON
        details: dict[str, Any] = {}
        if (reference := section.find_text("embedding_provider")) is not None:
            is_typed = reference.startswith("provider.")
            address = reference if is_typed else build_address(Kind.PROVIDER, reference)
            if address not in self.resources:
                message = f"no embedding provider '{reference}' is declared"
                where = section.position_of("embedding_provider")
                self._add(where, message, "dangling_embedding_provider_reference")
            details["embedding_provider"] = address
        if (mode := section.find_text("embed")) is not None:
            details["embed"] = mode
        bases = read_blob_bases(section, self.problems)
        if bases:
            details["external_blob_policy"] = {"mode": "allow", "bases": bases}
        else:
            message = "external blobs are refused: allow bases with external_blobs.allow"
            path = f"graphs.{name}"
            self.warnings.add_warning(_BLOBS_REFUSED, path, message)
        return details

    def _read_schema(self, graph_id: str, section: Section) -> bool:
        """Read the schema of a graph; whether the newest revision has this very text."""
        relative = section.get_text("schema")
        if not relative:
            return False
        try:
            data = read_file(self.folder / relative)
        except (OSError, ValueError) as error:
            message = f"{relative} cannot be read: {describe_failure(error)}"
            self._add(section.position_of("schema"), message, "schema_file_missing")
            return False
        address = build_address(Kind.SCHEMA, graph_id)
        digest = digest_bytes(data)
        self.resources[address] = Resource(address, Kind.SCHEMA, digest, relative, data)
        known = self.known.resources.get(address)
        return known is not None and known.digest == digest

    def _load_catalog(self, graph_id: str) -> Catalog | None:
        resource = self.resources.get(build_address(Kind.SCHEMA, graph_id))
        if resource is None or resource.data is None or resource.path is None:
            return None
        file = str(self.folder / resource.path)
        try:
            return load_whole_catalog(resource.data, name=file)
        except CompileError as error:
            parsed = parse_schema(resource.data, name=file)
            is_grammar = any(each.severity == "error" for each in parsed.diagnostics)
            code = "schema_parse_error" if is_grammar else "schema_catalog_error"
            path = f"graphs.{graph_id}.schema"
            self.warnings.extend(convert_diagnostics(error, code, path))
            return None

    def _read_policies(self, whole: Section) -> None:
        graphs = sorted(name for name, each in self.resources.items() if each.kind is Kind.GRAPH)
        files = PolicyFiles(self.folder, self.problems, self.warnings, graphs, self.catalogs)
        for name, place, value in self._iter_named(whole.values["policies"]):
            resource = files.read(name, place, value)
            self.resources[resource.address] = resource
        files.warn_unbound()

    def _read_dashboards(self, whole: Section) -> None:
        if not whole.has_field("ui"):
            return
        section = read_section(whole.values["ui"], UI, self.problems)
        files = DashboardFiles(
            self.folder,
            self.problems,
            self.resources,
            lambda graph_id: self.catalogs[graph_id](),
        )
        for name, place, node in self._iter_named(section.values["dashboards"]):
            resource = files.read(name, place, node)
            if resource is not None:
                self.resources[resource.address] = resource

    def _read_pipelines(
        self, whole: Section, spark: LazySparkSession | None
    ) -> Mapping[str, Sequence[str]]:
        providers = whole.values["providers"]
        sources = (
            read_section(providers, PROVIDERS, Findings("")).values["source"] if providers else None
        )
        if sources is None and whole.values["pipelines"] is None:
            return {}
        # What reads definitions is an optional part, and takes long to load.
        from omnigraph.clusters.pipeline_files import PipelineFiles  # noqa: PLC0415

        schemas = {
            name_of(each.address): each.path
            for each in self.resources.values()
            if each.kind is Kind.SCHEMA and each.path is not None
        }
        files = PipelineFiles(
            self.folder,
            self.problems,
            schemas,
            lambda graph_id: self.catalogs[graph_id](),
            self.warnings,
            spark,
        )
        for name, _, value in self._iter_named(sources):
            resource = files.read_provider(name, value)
            self.resources[resource.address] = resource
        for name, place, value in self._iter_named(whole.values["pipelines"]):
            found = files.read(name, place, value)
            if found is not None:
                self.resources[found.address] = found
        return files.list_broken()
