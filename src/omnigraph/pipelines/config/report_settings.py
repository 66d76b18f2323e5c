"""What a definition says about reports of its runs: whom they notify, and how they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from omnigraph.config.yaml_reader import Section, read_section
from omnigraph.pipelines.config.operations_schema import HOOK, LINEAGE, METRICS

if TYPE_CHECKING:
    from omnigraph.pipelines.config.source_reader import SourceReader

ON_FAILURE: Final = "on_failure"
ON_SUCCESS: Final = "on_success"


@dataclass(frozen=True, slots=True)
class Hook:
    """A command or a webhook that gets a document about each run that ends so."""

    event: str
    command: tuple[str, ...] = ()
    webhook: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: int = 30

    @property
    def display_name(self) -> str:
        """What warnings call it: never an address, which may be a secret."""
        return f"{self.event} ({self.command[0] if self.command else 'webhook'})"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where metrics go: a folder of a collector, a gateway, or both."""

    folder: str | None = None
    gateway: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """Where lineage events go: a service, or a file; where neither is, the environment says."""

    url: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    file: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """What is reported of every run."""

    hooks: tuple[Hook, ...] = ()
    metrics: MetricsSettings | None = None
    lineage: LineageSettings | None = None


def read_report_settings(section: Section, reader: SourceReader) -> ReportSettings:
    """The fields of a definition about reports."""
    events = (ON_FAILURE, ON_SUCCESS)
    hooks = [hook for event in events for hook in _read_hooks(event, section, reader)]
    return ReportSettings(
        tuple(hooks),
        _read_metrics(section.values["metrics"], reader),
        _read_lineage(section.values["lineage"], reader),
    )


def _read_metrics(node: yaml.Node | None, reader: SourceReader) -> MetricsSettings | None:
    if node is None:
        return None
    own = read_section(node, METRICS, reader.findings)
    if not own.has_field("folder") and not own.has_field("gateway"):
        message = "metrics: give 'folder', 'gateway' or both"
        reader.findings.add_problem(own.position, message, code="missing_field")
    reader.check_field_password("gateway", own)
    headers = reader.read_texts("headers", own)
    return MetricsSettings(own.find_text("folder"), own.find_text("gateway"), headers)


def _read_hooks(event: str, section: Section, reader: SourceReader) -> Iterator[Hook]:
    nodes: Iterable[yaml.Node] = section.values[event] or ()
    for node in nodes:
        own = read_section(node, HOOK, reader.findings)
        command = tuple(own.values["command"] or ())
        if own.has_field("command") == own.has_field("webhook"):
            reader.findings.add_problem(
                own.position, "hook: give either 'command' or 'webhook'", code="missing_field"
            )
        elif own.has_field("command") and not any(command):
            reader.findings.add_problem(own.position_of("command"), "hook: the command is empty")
        elif len(command) == 1 and len(command[0].split()) > 1:
            hint = f"write a list: [{', '.join(command[0].split())}]"
            reader.findings.add_problem(
                own.position_of("command"), "hook: no shell reads the command", hint=hint
            )
        if own.has_field("headers") and not own.has_field("webhook"):
            reader.findings.add_problem(own.position_of("headers"), "'headers' are of a webhook")
        reader.check_field_password("webhook", own)
        yield Hook(
            event,
            command,
            own.find_text("webhook"),
            reader.read_texts("headers", own),
            own.values["timeout"],
        )


def _read_lineage(node: yaml.Node | None, reader: SourceReader) -> LineageSettings | None:
    if node is None:
        return None
    own = read_section(node, LINEAGE, reader.findings)
    if own.has_field("url") and own.has_field("file"):
        reader.findings.add_problem(own.position, "lineage: give either 'url' or 'file'")
    for name in ("token", "endpoint"):
        if own.has_field(name) and not own.has_field("url"):
            reader.findings.add_problem(own.position_of(name), f"'{name}' needs 'url'")
    reader.check_field_password("url", own)
    reader.check_only_reference("token", own)
    return LineageSettings(
        own.find_text("url"),
        own.find_text("endpoint"),
        own.find_text("token"),
        own.find_text("file"),
        own.find_text("namespace"),
    )
