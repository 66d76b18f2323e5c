"""Definitions from YAML files: all problems of a file are reported, with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from omnigraph.config.canonical_json import compute_value_digest
from omnigraph.config.yaml_reader import (
    Findings,
    Section,
    decode_node,
    iter_named_nodes,
    parse_document,
    position_of,
    read_section,
    read_text,
)
from omnigraph.errors import PipelineInvalidError, PipelineNotFoundError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.pipelines.config import config_schema
from omnigraph.pipelines.config.definition import (
    MappingRule,
    Pipeline,
    RecordMapping,
    Retry,
    RunBranch,
    SqlSource,
    Target,
    TargetGraph,
    is_incremental,
    is_partial,
    is_schedule,
)
from omnigraph.pipelines.config.expectations import read_reject_limit
from omnigraph.pipelines.config.mapping_reader import read_rules
from omnigraph.pipelines.config.report_settings import read_report_settings
from omnigraph.pipelines.config.slot_references import check_slots
from omnigraph.pipelines.config.source_reader import SourceReader

SUFFIXES: Final = (".yaml", ".yml")
_MAP_SUFFIXES: Final = (".map.yaml", ".map.yml")
# The fields that decide which data is written.
_CONTENT_FIELDS: Final = ("source", "sources", "providers", "into")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def list_definitions(folder: Path) -> list[Path]:
    """The definitions in a folder, by name; mappings beside them are none."""
    found = (path for path in folder.iterdir() if path.suffix in SUFFIXES)
    return sorted(path for path in found if not path.name.endswith(_MAP_SUFFIXES))


def find_definition(name: str, folder: Path) -> Path:
    """The file of a pipeline: its path, or its name in a folder."""
    if name.endswith(SUFFIXES):
        if not Path(name).is_file():
            raise PipelineNotFoundError(name, hint="there is no such file")
        return Path(name)
    if not folder.is_dir():
        raise PipelineNotFoundError(name, hint=f"{folder} is not a folder; name it with --folder")
    found = {path.stem: path for path in list_definitions(folder)}
    if name not in found:
        known = ", ".join(found) or "none"
        hint = suggest_similar(name, found) or f"{folder} has {known}"
        raise PipelineNotFoundError(name, hint=hint)
    return found[name]


@dataclass(frozen=True, slots=True)
class DefinitionContext:
    """What a definition gets from where it is: its file, and where its paths start.

    A cluster gives definitions their names, graphs, ledger and providers of sources; None means
    that the definition says it itself.
    """

    file: str
    folder: Path
    name: str | None = None
    graphs: Mapping[str, TargetGraph] | None = None
    providers: Mapping[str, yaml.Node] | None = None
    ledger: str | None = None


def read_pipeline(path: Path) -> Pipeline:
    """The definition in a file; `PipelineInvalidError` lists all its problems."""
    findings = Findings(str(path), error=PipelineInvalidError)
    pipeline = read_valid_parts(path, findings)
    findings.raise_if_any()
    return pipeline


def read_valid_parts(path: Path, findings: Findings) -> Pipeline:
    """As much of a definition as can be read; what is wrong goes to the findings.

    Only a file that is not YAML raises.
    """
    node = parse_document(read_text(path, findings), findings)
    return read_definition(node, DefinitionContext(str(path), path.parent.absolute()), findings)


def read_definition(node: yaml.Node, context: DefinitionContext, findings: Findings) -> Pipeline:
    """As much of a definition as can be read, in its context."""
    section = read_section(node, config_schema.PIPELINE, findings)
    reader = _make_source_reader(section, context, findings)
    declared = reader.read_all(section)
    graphs = _read_graphs(section, reader) if context.graphs is None else dict(context.graphs)
    targets, files = _read_targets(section, graphs, reader)
    pipeline = Pipeline(
        name=context.name or _read_name(section, context, findings),
        file=context.file,
        folder=reader.folder,
        sources={name: each for name, each in declared.items() if each is not None},
        graphs=graphs,
        targets=targets,
        digest=_compute_digest(node, files),
        content=_compute_digest(node, files, only=_CONTENT_FIELDS),
        schedule=_read_schedule(section, findings),
        retry=_read_retry(section.values["retry"], findings),
        env_file=_resolve_path(section.find_text("env_file"), reader),
        ledger=context.ledger or _resolve_address(section.find_text("ledger"), reader),
        description=section.find_text("description"),
        keep_runs_s=section.values["keep_runs"],
        reports=read_report_settings(section, reader),
        column_positions=reader.column_positions,
    )
    if declared:
        _check_rule_sources(targets, tuple(declared), findings)
        _check_increments(pipeline, findings)
        check_slots(pipeline, findings)
    return pipeline


def _make_source_reader(
    section: Section, context: DefinitionContext, findings: Findings
) -> SourceReader:
    if context.providers is None:
        return SourceReader(context.folder, findings, _read_providers(section, findings))
    # Problems of the providers of a cluster are reported where those are declared.
    elsewhere = Findings(findings.file, error=findings.error)
    return SourceReader(context.folder, findings, context.providers, provider_findings=elsewhere)


def is_pipeline_name(name: str) -> bool:
    """Whether a text can be the name of a pipeline."""
    return _NAME.fullmatch(name) is not None


def _read_name(section: Section, context: DefinitionContext, findings: Findings) -> str:
    name = section.find_text("name") or Path(context.file).name.partition(".")[0]
    if not is_pipeline_name(name):
        hint = "use up to 64 letters, digits, '-' and '_'"
        findings.add_problem(
            section.position_of("name"), f"'{sanitize_text(name)}' is not a name", hint=hint
        )
    return name


def _read_providers(section: Section, findings: Findings) -> dict[str, yaml.Node]:
    node: yaml.MappingNode | None = section.values["providers"]
    found: dict[str, yaml.Node] = {}
    for kind, place, providers in () if node is None else iter_named_nodes(node):
        if kind != "source" or not isinstance(providers, yaml.MappingNode):
            findings.add_problem(
                place, f"providers: unknown kind '{sanitize_text(kind)}'", hint="known is source"
            )
            continue
        found |= {name: each for name, _, each in iter_named_nodes(providers)}
    return found


def _read_graphs(section: Section, reader: SourceReader) -> dict[str, TargetGraph]:
    node: yaml.MappingNode | None = section.values["graphs"]
    if node is None:
        return {}
    graphs: dict[str, TargetGraph] = {}
    for name, place, value in iter_named_nodes(node):
        if isinstance(value, yaml.ScalarNode):
            reader.check_no_password(str(value.value), name, place)
            graphs[name] = TargetGraph(reader.resolve_path(str(value.value)), None, place)
            continue
        own = read_section(value, config_schema.GRAPH, reader.findings)
        reader.check_no_password(own.get_text("uri"), "uri", own.position_of("uri"))
        schema = _resolve_path(own.find_text("schema"), reader)
        graphs[name] = TargetGraph(reader.resolve_path(own.get_text("uri")), schema, place)
    return graphs


def _read_targets(
    section: Section, graphs: dict[str, TargetGraph], reader: SourceReader
) -> tuple[tuple[Target, ...], list[str]]:
    nodes: Iterable[yaml.Node] = section.values["into"] or ()
    targets = tuple(_read_target(node, graphs, reader) for node in nodes)
    if not targets and section.has_field("into"):
        reader.findings.add_problem(section.position_of("into"), "a pipeline needs a target")
    seen: set[str] = set()
    for target in targets:
        if target.name in seen:
            message = f"two targets write to branch '{target.branch}' of graph '{target.graph}'"
            reader.findings.add_problem(
                target.position, message, hint="put both mappings into one target"
            )
        seen.add(target.name)
    return targets, [target.mapping.text for target in targets]


def _read_target(node: yaml.Node, graphs: dict[str, TargetGraph], reader: SourceReader) -> Target:
    findings = reader.findings
    section = read_section(node, config_schema.TARGET, findings)
    graph = section.get_text("graph").removeprefix("graph.")
    if graph and graph not in graphs:
        hint = suggest_similar(graph, graphs) or "declare it under 'graphs'"
        findings.add_problem(
            section.position_of("graph"),
            f"unknown graph '{sanitize_text(graph)}'",
            hint=hint,
            code="dangling_graph_reference",
        )
    on_error, rejects = section.get_text("on_error"), section.find_text("rejects")
    if (on_error == "quarantine") != (rejects is not None):
        message = "'on_error: quarantine' and 'rejects' go together"
        missing = "name the folder for them: rejects: FOLDER" if rejects is None else None
        findings.add_problem(section.position_of("on_error"), message, hint=missing)
    if section.has_field("max_rejected") and on_error != "quarantine":
        hint = "without it, no row may be rejected"
        message = "'max_rejected' needs 'on_error: quarantine'"
        findings.add_problem(section.position_of("max_rejected"), message, hint=hint)
    run_branch = section.values["run_branch"]
    return Target(
        graph=graph,
        branch=section.get_text("branch"),
        mode=section.get_text("mode"),
        mapping=_read_mapping(section, reader),
        position=section.position,
        run_branch=None if run_branch is None else _read_run_branch(run_branch, findings),
        on_error=on_error,
        rejects=_resolve_address(rejects, reader),
        max_rejected=read_reject_limit(section, findings),
        min_rows=section.values["min_rows"],
    )


def _read_mapping(section: Section, reader: SourceReader) -> RecordMapping:
    """An inline mapping, or one from a file, whose problems are reported with its own places."""
    node: yaml.Node | None = section.values["map"]
    if not isinstance(node, yaml.ScalarNode):
        rules = read_rules(node, reader.findings) if section.has_field("map") else ()
        return RecordMapping(reader.findings.file, rules, "", reader.findings.paths)
    path = reader.folder / str(node.value)
    if not path.name.endswith(_MAP_SUFFIXES):
        hint = "the file of a mapping ends in .map.yaml"
        reader.findings.add_problem(
            position_of(node), f"'{sanitize_text(str(node.value))}' is not a mapping", hint=hint
        )
        return RecordMapping(str(path), (), "")
    own = Findings(str(path), error=PipelineInvalidError)
    try:
        text = read_text(path, own)
        rules = read_rules(parse_document(text, own), own)
    except PipelineInvalidError:
        text, rules = "", ()
    reader.findings.problems.extend(own.problems)
    return RecordMapping(str(path), rules, text, own.paths)


def _read_run_branch(node: yaml.Node, findings: Findings) -> RunBranch:
    section = read_section(node, config_schema.RUN_BRANCH, findings)
    name = section.get_text("name")
    if "{slot}" not in name:
        hint = "with {slot} in it, every run has its own"
        findings.add_problem(
            section.position_of("name"), "a branch of a run needs a name of its own", hint=hint
        )
    return RunBranch(name, section.get_text("merge") == "automatic")


def _read_retry(node: yaml.Node | None, findings: Findings) -> Retry:
    if node is None:
        return Retry()
    section = read_section(node, config_schema.RETRY, findings)
    return Retry(section.values["attempts"], section.values["wait"])


def _read_schedule(section: Section, findings: Findings) -> str | None:
    text = section.find_text("schedule")
    if text is not None and not is_schedule(text):
        hint = 'write five fields: minute hour day month weekday, such as "0 * * * *"'
        message = f"'{sanitize_text(text)}' is not a schedule"
        findings.add_problem(section.position_of("schedule"), message, hint=hint)
    return text


def _check_rule_sources(
    targets: Iterable[Target], names: Sequence[str], findings: Findings
) -> None:
    for target in targets:
        own = Findings(target.mapping.file, paths=target.mapping.paths)
        for rule in target.mapping.rules:
            if rule.source is None and len(names) > 1:
                known = ", ".join(names)
                own.add_problem(
                    rule.position, f"{rule.type_name}: say which source it is from: {known}"
                )
            elif rule.source is not None and rule.source not in names:
                hint = suggest_similar(rule.source, names)
                own.add_problem(
                    rule.position_of("source"),
                    f"unknown source '{sanitize_text(rule.source)}'",
                    hint=hint,
                )
        findings.problems.extend(own.problems)


def _check_increments(pipeline: Pipeline, findings: Findings) -> None:
    """Report targets that what is new would replace as if it were everything."""
    parts = [name for name, source in pipeline.sources.items() if is_incremental(source)]
    _check_snapshots(pipeline, findings)
    for target in pipeline.targets if parts else ():
        if target.mode == "overwrite":
            message = f"'mode: overwrite' would leave only what is new in {', '.join(parts)}"
            hint = "use mode merge, or read the whole source"
            findings.add_problem(target.position, message, hint=hint)


def _check_snapshots(pipeline: Pipeline, findings: Findings) -> None:
    """Report rules that would delete what is merely not new in their sources."""
    parts = [name for name, source in pipeline.sources.items() if is_partial(source)]
    for target in pipeline.targets:
        own = Findings(target.mapping.file, paths=target.mapping.paths)
        for rule in target.mapping.rules if parts else ():
            if rule.missing_max is not None and any(
                _is_read_in_parts(each, pipeline, parts)
                for each in target.mapping.rules
                if each.gives_type_of(rule)
            ):
                message = f"{rule.type_name}: a run reads only what is new in {', '.join(parts)}"
                hint = "'delete_missing' needs a source that has all records in every run"
                own.add_problem(rule.position_of("delete_missing"), message, hint=hint)
        findings.problems.extend(own.problems)


def _is_read_in_parts(rule: MappingRule, pipeline: Pipeline, parts: Sequence[str]) -> bool:
    read = rule.source or next(iter(pipeline.sources))
    return read in parts or isinstance(pipeline.sources.get(read), SqlSource)


def _resolve_path(text: str | None, reader: SourceReader) -> Path | None:
    return None if text is None else reader.folder / text


def _resolve_address(text: str | None, reader: SourceReader) -> str | None:
    return None if text is None else reader.resolve_path(text)


def _compute_digest(
    node: yaml.Node | None, files: Iterable[str], *, only: tuple[str, ...] | None = None
) -> str:
    """The same for every spelling of one definition, whatever its comments and its order."""
    written = None if node is None else _decode_node_or_text(node)
    if only is not None and isinstance(written, dict):
        written = {name: value for name, value in written.items() if name in only}
    whole: list[Any] = [written]  # Any: a value of YAML
    for text in files:
        # The problems of a file are reported where it is read; what is read then is not used.
        parsed = parse_document(text, Findings("")) if text else None
        whole.append(None if parsed is None else _decode_node_or_text(parsed))
    return compute_value_digest(whole)


def _decode_node_or_text(node: yaml.Node) -> Any:  # Any: a value of YAML
    try:
        return decode_node(node)
    except (ValueError, yaml.YAMLError):
        return yaml.serialize(node)
