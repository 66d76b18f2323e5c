"""The stored queries that a configuration declares for one graph, read from its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from omnigraph.clusters.addresses import Kind, build_address, graph_of, is_resource_name, name_of
from omnigraph.clusters.cluster_findings import ClusterFinding, ClusterFindings, Severity
from omnigraph.clusters.desired import Resource, digest_bytes
from omnigraph.clusters.query_registry import list_query_files, scan_names
from omnigraph.clusters.revision import RevisionContent
from omnigraph.config.yaml_reader import Findings, decode_node, position_of
from omnigraph.errors import CompileError
from omnigraph.query.parser import ParsedFile
from omnigraph.query.query_compiler import compile_declaration, parse_file
from omnigraph.schema.catalog import Catalog


class KnownQueries:
    """Which queries of which graph a revision has from a file of a digest."""

    def __init__(self, content: RevisionContent) -> None:
        self._names: dict[tuple[str, str], set[str]] = defaultdict(set)
        for address, each in content.resources.items():
            if address.startswith("query."):
                graph_id = graph_of(address)
                assert graph_id is not None, "a query has a graph"
                self._names[graph_id, each.digest].add(name_of(address))

    def get_names(self, graph_id: str, digest: str) -> set[str]:
        """The names that were applied from a file."""
        return self._names.get((graph_id, digest), set())


@dataclass
class QueryFiles:
    """Reads the files of one graph; every problem is collected."""

    graph_id: str
    folder: Path
    problems: Findings
    warnings: ClusterFindings
    known: KnownQueries
    # Whether the newest revision has the very schema; and the schema, compiled when it is needed.
    is_schema_known: bool
    load_catalog: Callable[[], Catalog | None]
    _owners: dict[str, str] = field(default_factory=dict)

    def read(self, spec: yaml.Node) -> Iterator[Resource]:
        """The queries of a `queries` field: a path, a list of paths, or files by name."""
        if isinstance(spec, yaml.MappingNode):
            yield from self._read_named(spec)
            return
        nodes = spec.value if isinstance(spec, yaml.SequenceNode) else [spec]
        for node in nodes:
            for path in self._list_files(node):
                data = self._read_file(path, node)
                if data is not None:
                    yield from self._read_all(path, data)

    def _list_files(self, node: yaml.Node) -> list[Path]:
        place = position_of(node)
        if not isinstance(node, yaml.ScalarNode):
            self.problems.add_problem(
                place, "queries: a path is a text", code="invalid_cluster_yaml"
            )
            return []
        path = self.folder / node.value
        try:
            found = list_query_files(path)
        except OSError as error:
            message = f"{node.value} cannot be listed: {error.strerror}"
            self.problems.add_problem(place, message, code="query_dir_unreadable")
            return []
        if not found:
            message = f"{node.value} holds no .gq file"
            self.warnings.add_warning("query_dir_empty", f"graphs.{self.graph_id}.queries", message)
        return found

    def _read_file(self, path: Path, node: yaml.Node) -> bytes | None:
        try:
            return path.read_bytes()
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror}"
            self.problems.add_problem(position_of(node), message, code="query_file_missing")
            return None

    def _read_all(self, path: Path, data: bytes) -> Iterator[Resource]:
        digest = digest_bytes(data)
        known = self.known.get_names(self.graph_id, digest) if self.is_schema_known else set()
        if known and scan_names(data) == frozenset(known):
            names = sorted(known)
        else:
            parsed = self._parse(path, data)
            names = [] if parsed is None else [each.name.text for each in parsed.file.queries]
            if parsed is not None:
                self._check(parsed, names)
        for name in names:
            if (owner := self._owners.setdefault(name, str(path))) != str(path):
                message = f"query '{name}' is declared in {owner} and in {path}"
                self._report("duplicate_query_name", name, message)
            else:
                yield self._build_resource(name, path, data, digest)

    def _read_named(self, spec: yaml.MappingNode) -> Iterator[Resource]:
        for name, entry in decode_node(spec).items():
            relative = _find_file(entry)
            place = position_of(spec)
            if not is_resource_name(name) or relative is None:
                code = "invalid_resource_id" if relative else "invalid_cluster_yaml"
                message = f"queries: '{name}' needs a name of letters and a file: PATH"
                self.problems.add_problem(place, message, code=code)
                continue
            path = self.folder / relative
            data = self._read_file(path, spec)
            if data is None:
                continue
            digest = digest_bytes(data)
            is_known = self.is_schema_known and name in self.known.get_names(self.graph_id, digest)
            parsed = None if is_known else self._parse(path, data)
            if parsed is not None:
                if name not in [each.name.text for each in parsed.file.queries]:
                    message = f"{relative} declares no query '{name}'"
                    self.problems.add_problem(place, message, code="query_key_mismatch")
                    continue
                self._check(parsed, [name])
            if is_known or parsed is not None:
                yield self._build_resource(name, path, data, digest)

    def _build_resource(self, name: str, path: Path, data: bytes, digest: str) -> Resource:
        address = build_address(Kind.QUERY, self.graph_id, name)
        relative = str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else path
        return Resource(address, Kind.QUERY, digest, str(relative), data)

    def _parse(self, path: Path, data: bytes) -> ParsedFile | None:
        try:
            return parse_file(data, name=str(path))
        except CompileError as error:
            self._report_errors(error, "query_parse_error", "")
            return None

    def _check(self, parsed: ParsedFile, names: list[str]) -> None:
        catalog = self.load_catalog()
        if catalog is None:
            message = f"{parsed.source.name} is not checked, because the schema has errors"
            self.warnings.add_warning("query_typecheck_skipped", self._path_of(""), message)
            return
        for query in parsed.file.queries:
            if query.name.text in names:
                try:
                    compile_declaration(query, parsed, catalog)
                except CompileError as error:
                    self._report_errors(error, "query_typecheck_error", query.name.text)

    def _report_errors(self, error: CompileError, code: str, name: str) -> None:
        for each in error.diagnostics:
            if each.severity == "error":
                place = each.position
                self.warnings.found.append(
                    ClusterFinding(
                        code,
                        Severity.ERROR,
                        self._path_of(name),
                        f"{each.code}: {each.message}",
                        each.source.name,
                        place.line,
                        place.column,
                    )
                )

    def _report(self, code: str, name: str, message: str) -> None:
        self.warnings.add_error(code, self._path_of(name), message)

    def _path_of(self, name: str) -> str:
        if not name:
            return f"graphs.{self.graph_id}.queries"
        return build_address(Kind.QUERY, self.graph_id, name)


def _find_file(entry: object) -> str | None:
    if isinstance(entry, dict) and set(entry) == {"file"} and isinstance(entry["file"], str):
        return entry["file"]
    return None
