"""The stored queries that a configuration declares for one graph, read from its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from omnigraph.clusters.addresses import Kind, build_address, is_resource_name
from omnigraph.clusters.cluster_findings import ClusterFindings, convert_diagnostics
from omnigraph.clusters.desired import Resource, digest_bytes
from omnigraph.clusters.query_registry import is_declaring_only, list_query_names
from omnigraph.clusters.revision import RevisionContent
from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.config.yaml_reader import Findings, decode_node, position_of
from omnigraph.errors import CompileError
from omnigraph.query.parser import ParsedFile
from omnigraph.query.query_compiler import compile_declaration, parse_file
from omnigraph.schema.catalog import Catalog


class KnownQueries:
    """Which queries of which graph a revision has from a file of a digest."""

    def __init__(self, content: RevisionContent) -> None:
        # Texts and not sets: there may be tens of thousands, of one name each.
        self._names: dict[str, str] = {}
        for address, each in content.resources.items():
            if address.startswith("query."):
                _, graph_id, name = address.split(".", 2)
                key = f"{graph_id} {each.digest}"
                others = self._names.get(key)
                self._names[key] = name if others is None else f"{others} {name}"

    def get_names(self, graph_id: str, digest: str) -> list[str]:
        """The names that were applied from a file."""
        return self._names.get(f"{graph_id} {digest}", "").split()


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
            for relative in self._list_files(node):
                data = self._read_file(relative, node)
                if data is not None:
                    yield from self._read_all(relative, data)

    def _list_files(self, node: yaml.Node) -> list[str]:
        place = position_of(node)
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            message = "queries: a path is a text"
            self.problems.add_problem(place, message, code="invalid_cluster_yaml")
            return []
        relative = str(Path(node.value))
        path = self._locate(relative)
        if not os.path.isdir(path):
            return [relative]
        try:
            found = [f"{relative}/{name}" for name in list_query_names(path)]
            "".join(found).encode()
        except (OSError, UnicodeEncodeError) as error:
            message = f"{node.value} cannot be listed: {describe_failure(error)}"
            self.problems.add_problem(place, message, code="query_dir_unreadable")
            return []
        if not found:
            message = f"{node.value} holds no .gq file"
            self.warnings.add_warning("query_dir_empty", f"graphs.{self.graph_id}.queries", message)
        return found

    def _locate(self, relative: str) -> str:
        return os.path.join(self.folder, relative)

    def _read_file(self, relative: str, node: yaml.Node) -> bytes | None:
        try:
            return read_file(self._locate(relative))
        except (OSError, ValueError) as error:
            message = f"{relative} cannot be read: {describe_failure(error)}"
            self.problems.add_problem(position_of(node), message, code="query_file_missing")
            return None

    def _read_all(self, relative: str, data: bytes) -> Iterator[Resource]:
        digest = digest_bytes(data)
        known = self.known.get_names(self.graph_id, digest) if self.is_schema_known else []
        if known and is_declaring_only(data, known):
            names = sorted(known)
        else:
            parsed = self._parse(relative, data)
            names = [] if parsed is None else [each.name.text for each in parsed.file.queries]
            if parsed is not None:
                self._check(parsed, names)
        for name in names:
            if (owner := self._owners.setdefault(name, relative)) != relative:
                message = f"query '{name}' is declared in {owner} and in {relative}"
                self._report("duplicate_query_name", name, message)
            else:
                yield self._build_resource(name, relative, data, digest)

    def _read_named(self, spec: yaml.MappingNode) -> Iterator[Resource]:
        for name, entry in decode_node(spec).items():
            relative = _find_file(entry)
            place = position_of(spec)
            if not is_resource_name(name) or relative is None:
                code = "invalid_resource_id" if relative else "invalid_cluster_yaml"
                message = f"queries: '{name}' needs a name of letters and a file: PATH"
                self.problems.add_problem(place, message, code=code)
                continue
            data = self._read_file(relative, spec)
            if data is None:
                continue
            digest = digest_bytes(data)
            is_known = self.is_schema_known and name in self.known.get_names(self.graph_id, digest)
            parsed = None if is_known else self._parse(relative, data)
            if parsed is not None:
                if name not in [each.name.text for each in parsed.file.queries]:
                    message = f"{relative} declares no query '{name}'"
                    self.problems.add_problem(place, message, code="query_key_mismatch")
                    continue
                self._check(parsed, [name])
            if is_known or parsed is not None:
                yield self._build_resource(name, relative, data, digest)

    def _build_resource(self, name: str, relative: str, data: bytes, digest: str) -> Resource:
        address = build_address(Kind.QUERY, self.graph_id, name)
        return Resource(address, Kind.QUERY, digest, relative, data)

    def _parse(self, relative: str, data: bytes) -> ParsedFile | None:
        try:
            return parse_file(data, name=self._locate(relative))
        except CompileError as error:
            found = convert_diagnostics(error, "query_parse_error", self._path_of(""))
            self.warnings.extend(found)
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
                    path = self._path_of(query.name.text)
                    found = convert_diagnostics(error, "query_typecheck_error", path)
                    self.warnings.extend(found)

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
