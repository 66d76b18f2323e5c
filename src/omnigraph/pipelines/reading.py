"""Definitions from YAML files: all that is wrong with one is told at once, with its place."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from omnigraph.diagnostics.shown import shown
from omnigraph.diagnostics.suggest import did_you_mean
from omnigraph.errors import PipelineInvalid, PipelineNotFound
from omnigraph.pipelines import shapes
from omnigraph.pipelines.definition import (
    DEFAULT_REJECT_LIMIT,
    GraphPlace,
    Pipeline,
    RejectLimit,
    Retry,
    RunBranch,
    Target,
)
from omnigraph.pipelines.fields import (
    START,
    Findings,
    Section,
    named_nodes,
    place_of,
    plain,
    read_document,
    read_section,
)
from omnigraph.pipelines.mapping import Mapped
from omnigraph.pipelines.read_mappings import read_rules
from omnigraph.pipelines.read_sources import SourceReader
from omnigraph.pipelines.schedule import is_schedule

SUFFIXES: Final = (".yaml", ".yml")
_MAP_SUFFIXES: Final = (".map.yaml", ".map.yml")
# The fields that decide which data is written.
_CONTENT: Final = ("source", "sources", "providers", "into")
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?) ?%")
_WHOLE: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def definitions_in(folder: Path) -> list[Path]:
    """The definitions in a folder, by name; mappings beside them are none."""
    found = (path for path in folder.iterdir() if path.suffix in SUFFIXES)
    return sorted(path for path in found if not path.name.endswith(_MAP_SUFFIXES))


def find_definition(name: str, folder: Path) -> Path:
    """The file of a pipeline: its path, or its name in a folder."""
    if name.endswith(SUFFIXES):
        if not Path(name).is_file():
            raise PipelineNotFound(name, hint="there is no such file")
        return Path(name)
    if not folder.is_dir():
        raise PipelineNotFound(name, hint=f"{folder} is no folder; name it with --folder")
    found = {path.stem: path for path in definitions_in(folder)}
    if name not in found:
        known = ", ".join(found) or "none"
        hint = did_you_mean(name, found) or f"{folder} has {known}"
        raise PipelineNotFound(name, hint=hint)
    return found[name]


def read_pipeline(path: Path) -> Pipeline:
    """The definition in a file; `PipelineInvalid` tells everything that is wrong with it."""
    findings = Findings(str(path))
    pipeline = read_what_is_there(path, findings)
    findings.raise_if_any()
    return pipeline


def read_what_is_there(path: Path, findings: Findings) -> Pipeline:
    """As much of a definition as can be read; what is wrong goes to the findings.

    Only a file that is no YAML at all raises.
    """
    node = read_document(_text(path, findings), findings)
    section = read_section(node, shapes.PIPELINE, findings)
    reader = SourceReader(path.parent.absolute(), findings, _providers(section, findings))
    declared = reader.all(section)
    graphs = _graphs(section, reader)
    targets, files = _targets(section, graphs, reader)
    pipeline = Pipeline(
        name=_name(section, path, findings),
        file=str(path),
        folder=reader.folder,
        sources={name: each for name, each in declared.items() if each is not None},
        graphs=graphs,
        targets=targets,
        digest=_digest(node, files),
        content=_digest(node, files, only=_CONTENT),
        schedule=_schedule(section, findings),
        retry=_retry(section.values["retry"], findings),
        env_file=_beside(section.text_or_none("env_file"), reader),
        ledger=_address(section.text_or_none("ledger"), reader),
        description=section.text_or_none("description"),
        columns=reader.columns,
    )
    if declared:
        _check_sources_of_rules(targets, tuple(declared), findings)
    return pipeline


def _text(path: Path, findings: Findings) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        findings.add(START, f"the file cannot be read: {failure}")
        raise PipelineInvalid(findings.problems) from failure


def _name(section: Section, path: Path, findings: Findings) -> str:
    name = section.text_or_none("name") or path.name.partition(".")[0]
    if not _NAME.fullmatch(name):
        hint = "use up to 64 letters, digits, '-' and '_'"
        findings.add(section.place_of("name"), f"'{shown(name)}' is no name", hint=hint)
    return name


def _providers(section: Section, findings: Findings) -> dict[str, yaml.Node]:
    node: yaml.MappingNode | None = section.values["providers"]
    found: dict[str, yaml.Node] = {}
    for kind, place, providers in () if node is None else named_nodes(node, "providers", findings):
        if kind != "source" or not isinstance(providers, yaml.MappingNode):
            findings.add(place, f"providers: unknown kind '{shown(kind)}'", hint="known is source")
            continue
        found |= {name: each for name, _, each in named_nodes(providers, "source", findings)}
    return found


def _graphs(section: Section, reader: SourceReader) -> dict[str, GraphPlace]:
    node: yaml.MappingNode | None = section.values["graphs"]
    if node is None:
        return {}
    graphs: dict[str, GraphPlace] = {}
    for name, place, value in named_nodes(node, "graphs", reader.findings):
        if isinstance(value, yaml.ScalarNode):
            reader.require_no_password(str(value.value), name, place)
            graphs[name] = GraphPlace(reader.path(str(value.value)), None, place)
            continue
        own = read_section(value, shapes.GRAPH, reader.findings)
        reader.require_no_password(own.text("uri"), "uri", own.place_of("uri"))
        schema = _beside(own.text_or_none("schema"), reader)
        graphs[name] = GraphPlace(reader.path(own.text("uri")), schema, place)
    return graphs


def _targets(
    section: Section, graphs: dict[str, GraphPlace], reader: SourceReader
) -> tuple[tuple[Target, ...], list[str]]:
    nodes: Iterable[yaml.Node] = section.values["into"] or ()
    targets = tuple(_target(node, graphs, reader) for node in nodes)
    if not targets and section.has("into"):
        reader.findings.add(section.place_of("into"), "a pipeline needs a target")
    seen: set[str] = set()
    for target in targets:
        if target.name in seen:
            message = f"two targets write to branch '{target.branch}' of graph '{target.graph}'"
            reader.findings.add(target.place, message, hint="put both mappings into one target")
        seen.add(target.name)
    return targets, [target.mapped.text for target in targets]


def _target(node: yaml.Node, graphs: dict[str, GraphPlace], reader: SourceReader) -> Target:
    findings = reader.findings
    section = read_section(node, shapes.TARGET, findings)
    graph = section.text("graph").removeprefix("graph.")
    if graph and graph not in graphs:
        hint = did_you_mean(graph, graphs) or "declare it under 'graphs'"
        findings.add(section.place_of("graph"), f"unknown graph '{shown(graph)}'", hint=hint)
    on_error, rejects = section.text("on_error"), section.text_or_none("rejects")
    if (on_error == "quarantine") != (rejects is not None):
        message = "'on_error: quarantine' and 'rejects' go together"
        missing = "name the folder for them: rejects: FOLDER" if rejects is None else None
        findings.add(section.place_of("on_error"), message, hint=missing)
    if section.has("max_rejected") and on_error != "quarantine":
        hint = "without it, no row may be rejected"
        message = "'max_rejected' needs 'on_error: quarantine'"
        findings.add(section.place_of("max_rejected"), message, hint=hint)
    run_branch = section.values["run_branch"]
    return Target(
        graph=graph,
        branch=section.text("branch"),
        mode=section.text("mode"),
        mapped=_mapped(section, reader),
        place=section.place,
        run_branch=None if run_branch is None else _run_branch(run_branch, findings),
        on_error=on_error,
        rejects=_address(rejects, reader),
        max_rejected=_reject_limit(section, findings),
        min_rows=section.values["min_rows"],
    )


def _reject_limit(section: Section, findings: Findings) -> RejectLimit:
    text = section.text("max_rejected").strip()
    if text.isdecimal():
        return RejectLimit(count=int(text))
    share = _SHARE.fullmatch(text)
    if share is not None and float(share[1]) <= _WHOLE:
        return RejectLimit(percent=float(share[1]))
    if text:
        message = f"target: '{shown(text)}' is not a number of rows or a share of them"
        hint = "write 100, or 5%"
        findings.add(section.place_of("max_rejected"), message, hint=hint)
    return DEFAULT_REJECT_LIMIT


def _mapped(section: Section, reader: SourceReader) -> Mapped:
    """An inline mapping, or one from a file, whose problems are told with its own places."""
    node: yaml.Node | None = section.values["map"]
    if not isinstance(node, yaml.ScalarNode):
        rules = read_rules(node, reader.findings) if section.has("map") else ()
        return Mapped(reader.findings.file, rules, "", reader.findings.paths)
    path = reader.folder / str(node.value)
    if not path.name.endswith(_MAP_SUFFIXES):
        hint = "the file of a mapping ends in .map.yaml"
        reader.findings.add(place_of(node), f"'{shown(str(node.value))}' is no mapping", hint=hint)
        return Mapped(str(path), (), "")
    own = Findings(str(path))
    try:
        text = _text(path, own)
        rules = read_rules(read_document(text, own), own)
    except PipelineInvalid:
        text, rules = "", ()
    reader.findings.problems.extend(own.problems)
    return Mapped(str(path), rules, text, own.paths)


def _run_branch(node: yaml.Node, findings: Findings) -> RunBranch:
    section = read_section(node, shapes.RUN_BRANCH, findings)
    name = section.text("name")
    if "{slot}" not in name:
        hint = "with {slot} in it, every run has its own"
        findings.add(
            section.place_of("name"), "a branch of a run needs a name of its own", hint=hint
        )
    return RunBranch(name, section.text("merge") == "automatic")


def _retry(node: yaml.Node | None, findings: Findings) -> Retry:
    if node is None:
        return Retry()
    section = read_section(node, shapes.RETRY, findings)
    return Retry(section.values["attempts"], section.values["wait"])


def _schedule(section: Section, findings: Findings) -> str | None:
    text = section.text_or_none("schedule")
    if text is not None and not is_schedule(text):
        hint = 'write five fields: minute hour day month weekday, such as "0 * * * *"'
        message = f"'{shown(text)}' is no schedule"
        findings.add(section.place_of("schedule"), message, hint=hint)
    return text


def _check_sources_of_rules(
    targets: Iterable[Target], names: Sequence[str], findings: Findings
) -> None:
    for target in targets:
        own = Findings(target.mapped.file, paths=target.mapped.paths)
        for rule in target.mapped.rules:
            if rule.source is None and len(names) > 1:
                known = ", ".join(names)
                own.add(rule.place, f"{rule.type_name}: say which source it is from: {known}")
            elif rule.source is not None and rule.source not in names:
                hint = did_you_mean(rule.source, names)
                own.add(
                    rule.place_of("source"), f"unknown source '{shown(rule.source)}'", hint=hint
                )
        findings.problems.extend(own.problems)


def _beside(text: str | None, reader: SourceReader) -> Path | None:
    return None if text is None else reader.folder / text


def _address(text: str | None, reader: SourceReader) -> str | None:
    return None if text is None else reader.path(text)


def _digest(
    node: yaml.Node | None, files: Iterable[str], *, only: tuple[str, ...] | None = None
) -> str:
    """The same for every spelling of one definition, whatever its comments and its order."""
    written = None if node is None else _plain_or_text(node)
    if only is not None and isinstance(written, dict):
        written = {name: value for name, value in written.items() if name in only}
    whole: list[Any] = [written]  # Any: a value of YAML
    for text in files:
        parsed = yaml.compose(text, Loader=yaml.SafeLoader) if text else None
        whole.append(None if parsed is None else _plain_or_text(parsed))
    joined = json.dumps(whole, sort_keys=True, default=str)
    return "sha256:" + hashlib.sha256(joined.encode()).hexdigest()


def _plain_or_text(node: yaml.Node) -> Any:  # Any: a value of YAML
    try:
        return plain(node)
    except (ValueError, yaml.YAMLError):
        return yaml.serialize(node)
