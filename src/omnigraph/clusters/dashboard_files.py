"""The dashboards that a configuration declares, read from its files and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from omnigraph.clusters.addresses import Kind, build_address
from omnigraph.clusters.dashboard import (
    PanelQuery,
    PlacedDashboard,
    PlacedPanel,
    check_panel,
    parse_dashboard,
)
from omnigraph.clusters.desired import Resource, digest_bytes
from omnigraph.clusters.query_registry import compile_stored
from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.config.yaml_reader import Findings, Position, position_of
from omnigraph.errors import CompileError, ConfigInvalidError
from omnigraph.query.query_compiler import compile_declaration, parse_file, select_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_reads import Read
from omnigraph.schema.catalog import Catalog

# What is wrong with the form of a dashboard; what it names that is not there has its own code.
_INVALID: Final = "dashboard_invalid"
_OWN_CODES: Final = frozenset(
    {
        *("dashboard_query_not_found", "dashboard_query_writes", "dashboard_invalid_params"),
        *("dashboard_unknown_column", "dangling_graph_reference"),
    }
)


@dataclass(frozen=True, slots=True)
class DashboardFiles:
    """Reads the dashboards of one configuration; every problem is collected."""

    folder: Path
    problems: Findings
    # What else the configuration declares, and the desired schema of a graph, if it compiles.
    resources: Mapping[str, Resource]
    load_catalog: Callable[[str], Catalog | None]

    def read(self, name: str, place: Position, node: yaml.Node) -> Resource | None:
        """The dashboard of a name; None if it cannot be read, which is reported."""
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            message = f"dashboard '{name}': write the path of its file"
            self.problems.add_problem(place, message, code="invalid_cluster_yaml")
            return None
        try:
            data = read_file(self.folder / node.value)
        except (OSError, ValueError) as error:
            message = f"{node.value} cannot be read: {describe_failure(error)}"
            place = position_of(node)
            self.problems.add_problem(place, message, code="dashboard_file_missing")
            return None
        found = self._parse(str(self.folder / node.value), data)
        if found is None:
            return None
        graph_id = found.dashboard.graph
        names = {each.query for each in found.dashboard.panels}
        queries = sorted(build_address(Kind.QUERY, graph_id, each) for each in names)
        return Resource(
            build_address(Kind.DASHBOARD, name),
            Kind.DASHBOARD,
            digest_bytes(data),
            node.value,
            data,
            {"graph": build_address(Kind.GRAPH, graph_id), "queries": queries},
        )

    def _parse(self, file: str, data: bytes) -> PlacedDashboard | None:
        """A dashboard in which everything is right."""
        findings, found = Findings(file), None
        try:
            found = parse_dashboard(data.decode("utf-8-sig"), findings)
            if not findings.problems:
                self._check(found, findings)
        except ConfigInvalidError as error:
            # A text without any structure, of which nothing else is known.
            findings.problems[:] = error.problems
        except UnicodeDecodeError as error:
            findings.add_problem(Position(1, 1), f"the file is not UTF-8 text: {error.reason}")
        for each in findings.problems:
            code = each.code if each.code in _OWN_CODES else _INVALID
            self.problems.problems.append(replace(each, code=code))
        return None if findings.problems else found

    def _check(self, found: PlacedDashboard, findings: Findings) -> None:
        graph_id = found.dashboard.graph
        if build_address(Kind.SCHEMA, graph_id) not in self.resources:
            message = f"no graph '{graph_id}' is declared"
            place = found.section.position_of("graph")
            findings.add_problem(place, message, code="dangling_graph_reference")
            return
        for each in found.panels:
            self._check_query(graph_id, each, findings)

    def _check_query(self, graph_id: str, placed: PlacedPanel, findings: Findings) -> None:
        name = placed.panel.query
        resource = self.resources.get(build_address(Kind.QUERY, graph_id, name))
        if resource is None or resource.data is None:
            known = ", ".join(self._iter_queries(graph_id)) or "none"
            message = f"graph '{graph_id}' has no stored query '{name}': it has {known}"
            place = placed.section.position_of("query")
            findings.add_problem(place, message, code="dashboard_query_not_found")
            return
        catalog = self.load_catalog(graph_id)
        if catalog is None:
            return
        try:
            parsed = parse_file(resource.data, name=f"{name}.gq")
            query = select_query(parsed.file, name)
            stored = compile_stored(query, parsed, catalog, file=f"{name}.gq")
            checked = compile_declaration(query, parsed, catalog).checked
        except CompileError:
            # The query itself is reported where it is declared.
            return
        names = [each.name for each in checked.columns] if isinstance(checked, Read) else []
        columns = dict(zip(names, stored.descriptor.result, strict=True))
        bind = partial(bind_parameters, checked.parameters)
        check_panel(placed, PanelQuery(stored, columns, bind), findings)

    def _iter_queries(self, graph_id: str) -> Iterator[str]:
        prefix = build_address(Kind.QUERY, graph_id, "")
        own = (each for each in sorted(self.resources) if each.startswith(prefix))
        return (each.removeprefix(prefix) for each in own)
