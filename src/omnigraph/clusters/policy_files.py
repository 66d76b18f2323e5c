"""The policy bundles that a configuration declares, read from their files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from omnigraph.clusters.addresses import Kind, build_address, kind_of, name_of
from omnigraph.clusters.cluster_findings import ClusterFindings, convert_problem
from omnigraph.clusters.cluster_schema import POLICY
from omnigraph.clusters.desired import Resource, digest_bytes
from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.config.yaml_reader import Findings, Position, Section, read_section
from omnigraph.errors import ConfigInvalidError
from omnigraph.policy.policy_bundle import Bundle, BundleKind, parse_bundle
from omnigraph.policy.row_conditions import list_condition_problems
from omnigraph.schema.catalog import Catalog


@dataclass
class PolicyFiles:
    """Reads the bundles of one configuration; every problem is collected."""

    folder: Path
    problems: Findings
    warnings: ClusterFindings
    # The addresses of the graphs that are declared.
    graphs: Collection[str]
    # The desired schema of each graph by id, compiled when it is needed.
    catalogs: Mapping[str, Callable[[], Catalog | None]]
    _bound: dict[str, str] = field(default_factory=dict)

    def read(self, name: str, place: Position, node: yaml.Node) -> Resource:
        """A bundle, and what it is bound to."""
        section = read_section(node, POLICY, self.problems)
        targets = self._read_targets(section, place)
        data = self._read_bundle(name, section, targets)
        for target in targets:
            if target in self._bound:
                message = f"{target} has the policy '{self._bound[target]}' already"
                self._add(place, message, "duplicate_policy_binding")
            self._bound[target] = name
        return Resource(
            build_address(Kind.POLICY, name),
            Kind.POLICY,
            digest_bytes(data),
            section.get_text("file"),
            data,
            {"applies_to": sorted(targets)},
        )

    def warn_unbound(self) -> None:
        """Warn of graphs that no bundle is bound to."""
        for address in self.graphs:
            if address not in self._bound:
                message = "no policy is bound to it: tokens alone allow only read"
                self.warnings.add_warning("graph_without_policy", address, message)

    def _add(self, place: Position, message: str, code: str) -> None:
        self.problems.add_problem(place, message, code=code)

    def _read_bundle(self, name: str, section: Section, targets: list[str]) -> bytes:
        relative = section.get_text("file")
        try:
            data = read_file(self.folder / relative) if relative else b""
        except (OSError, ValueError) as error:
            message = f"{relative} cannot be read: {describe_failure(error)}"
            self._add(section.position_of("file"), message, "policy_file_missing")
            return b""
        kind = BundleKind.SERVER if "cluster" in targets else BundleKind.GRAPH
        try:
            bundle = parse_bundle(data.decode(), file=str(self.folder / relative), kind=kind)
            self._check_conditions(name, bundle, targets)
        except ConfigInvalidError as error:
            found = map(convert_problem, error.problems)
            self.warnings.extend(replace(each, code="policy_invalid") for each in found)
        except UnicodeDecodeError as error:
            self._add(section.position_of("file"), f"{relative}: {error}", "policy_invalid")
        return data

    def _check_conditions(self, name: str, bundle: Bundle, targets: list[str]) -> None:
        """Compare the conditions of a bundle on rows with the schemas of its graphs."""
        if not any(rule.conditions for rule in bundle.rules):
            return
        for target in targets:
            load = self.catalogs.get(name_of(target))
            catalog = None if load is None else load()
            for problem in () if catalog is None else list_condition_problems(bundle, catalog):
                message = f"{target}: {problem}"
                self.warnings.add_error("policy_invalid", f"policies.{name}", message)

    def _read_targets(self, section: Section, place: Position) -> list[str]:
        targets: list[str] = []
        where = section.position_of("applies_to")
        # What is empty was reported as such.
        for given in filter(None, section.values["applies_to"] or ()):
            kind = kind_of(given)
            if given == "cluster":
                targets.append(given)
            elif "." in given and kind is not Kind.GRAPH:
                message = f"'{given}' is not a graph: write a graph id, or cluster"
                self._add(where, message, "wrong_kind_reference")
            else:
                address = given if kind is Kind.GRAPH else build_address(Kind.GRAPH, given)
                if address not in self.graphs:
                    message = f"no graph '{name_of(given)}' is declared"
                    self._add(where, message, "dangling_graph_reference")
                targets.append(address)
        if not section.values["applies_to"]:
            self._add(place, "applies_to is empty", "policy_missing_applies_to")
        if "cluster" in targets and len(targets) > 1:
            message = "one bundle is for the cluster or for graphs, not for both"
            self._add(where, message, "policy_mixed_binding_kinds")
        return list(dict.fromkeys(targets))
