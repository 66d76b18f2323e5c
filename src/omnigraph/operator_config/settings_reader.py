"""Reads `config.yaml`: an unknown key is a warning, everything else that is wrong an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from omnigraph.config.written_addresses import (
    ADDRESS_WITH_USER,
    examine_service_url,
    has_user,
)
from omnigraph.config.yaml_reader import (
    FieldKind,
    FieldSpec,
    Findings,
    Section,
    SectionSchema,
    decode_node,
    is_null,
    iter_named_nodes,
    parse_document,
    read_section,
    read_text,
)
from omnigraph.operator_config.operator_settings import (
    CELL_LAYOUTS,
    OUTPUT_FORMATS,
    TABLE_WIDTH_DEFAULT,
    Alias,
    Binding,
    OperatorConfig,
    Profile,
)

_UNKNOWN: Final = "unknown_field"
_T = TypeVar("_T")


def _declare_text(name: str, description: str, **more: Any) -> FieldSpec:  # Any: of the class
    return FieldSpec(name, FieldKind.TEXT, description, **more)


_FILE: Final = SectionSchema(
    "config.yaml",
    "The operator config. A relative path in it is one below the folder of the file.",
    (
        FieldSpec("operator", FieldKind.SECTION, "who works with this config"),
        FieldSpec("servers", FieldKind.NAMED, "servers by name"),
        FieldSpec("clusters", FieldKind.NAMED, "clusters by name"),
        FieldSpec("profiles", FieldKind.NAMED, "addresses by name"),
        FieldSpec("defaults", FieldKind.SECTION, "what holds without a flag"),
        FieldSpec("aliases", FieldKind.NAMED, "stored queries by a short name"),
    ),
)
_OPERATOR: Final = SectionSchema(
    "operator",
    "Who works with this config.",
    (_declare_text("actor", "who makes commits that no `--as` signs"),),
)
_SERVER: Final = SectionSchema(
    "servers.<name>",
    "A server; its token is never written here.",
    (_declare_text("url", "its address, `https://…`", is_required=True),),
)
_CLUSTER: Final = SectionSchema(
    "clusters.<name>",
    "A cluster.",
    (_declare_text("root", "its storage root: a path, file:// or s3://", is_required=True),),
)
_PROFILE: Final = SectionSchema(
    "profiles.<name>",
    "An address: one of server, cluster and store.",
    (
        _declare_text("server", "a name of `servers`, or a URL"),
        _declare_text("cluster", "a name of `clusters`, or a storage root"),
        _declare_text("store", "the storage of one graph"),
        _declare_text("default_graph", "the graph, unless `--graph` gives another one"),
    ),
)
_DEFAULTS: Final = SectionSchema(
    "defaults",
    "What holds without a flag.",
    (
        _declare_text("output", "how rows are printed", choices=OUTPUT_FORMATS),
        _declare_text("server", "the server; excludes `store`"),
        _declare_text("store", "the storage of one graph; excludes `server` and `default_graph`"),
        _declare_text("default_graph", "the graph of the server"),
        FieldSpec(
            "table_max_column_width",
            FieldKind.INTEGER,
            "the width of a column of a table",
            default=TABLE_WIDTH_DEFAULT,
            minimum=1,
        ),
        _declare_text(
            "table_cell_layout",
            "what becomes of a longer value",
            choices=CELL_LAYOUTS,
            default=CELL_LAYOUTS[0],
        ),
    ),
)
_ALIAS: Final = SectionSchema(
    "aliases.<name>",
    "A stored query that reads, with some of its parameters.",
    (
        _declare_text("server", "a name of `servers`, or a URL", is_required=True),
        _declare_text("query", "the name of the stored query", is_required=True),
        _declare_text("graph", "the graph of the server"),
        FieldSpec("args", FieldKind.TEXTS, "parameters that arguments give, in order", default=()),
        FieldSpec("params", FieldKind.VALUES, "parameters with fixed values"),
        _declare_text("format", "how rows are printed", choices=OUTPUT_FORMATS),
    ),
)
SECTION_SCHEMAS: Final = (_FILE, _OPERATOR, _SERVER, _CLUSTER, _PROFILE, _DEFAULTS, _ALIAS)


def read_settings(path: Path, base: OperatorConfig) -> OperatorConfig:
    """What a file says, on top of an empty config; raises `ConfigInvalidError`."""
    findings = Findings(str(path))
    text = read_text(path, findings)
    if not any(line.strip() and not line.startswith("#") for line in text.splitlines()):
        return base
    node = parse_document(text, findings)
    lines: dict[str, int] = {}
    file = read_section(node, _FILE, findings)
    reader = _SectionReader(file, findings, lines)
    operator = reader.read_one("operator", _OPERATOR)
    defaults = reader.read_one("defaults", _DEFAULTS)
    config = replace(
        base,
        actor=operator.find_text("actor"),
        servers=reader.read_named("servers", _SERVER, lambda _, one: one.get_text("url")),
        clusters=reader.read_named("clusters", _CLUSTER, lambda _, one: one.get_text("root")),
        profiles=reader.read_named("profiles", _PROFILE, _build_profile),
        aliases=reader.read_named("aliases", _ALIAS, _build_alias),
        output=defaults.find_text("output"),
        default_server=defaults.find_text("server"),
        default_store=defaults.find_text("store"),
        default_graph=defaults.find_text("default_graph"),
        table_width=defaults.values["table_max_column_width"],
        cell_layout=defaults.get_text("table_cell_layout"),
        lines=lines,
    )
    _check_defaults(defaults, findings)
    return replace(config, warnings=_split_warnings(findings))


class _SectionReader:
    """Reads the sections of a file, and notes the line of every key."""

    def __init__(self, file: Section, findings: Findings, lines: dict[str, int]) -> None:
        self._file = file
        self._findings = findings
        self._lines = lines

    def read_one(self, name: str, shape: SectionSchema) -> Section:
        """A section that is there once, or not at all."""
        node = self._file.values[name]
        if node is None or is_null(node):
            return Section(self._file.position, {e.name: e.default for e in shape.fields}, {})
        return self._read(node, name, shape)

    def read_named(
        self, name: str, shape: SectionSchema, build: Callable[[str, Section], _T]
    ) -> dict[str, _T]:
        """Sections by name."""
        node = self._file.values[name]
        if node is None:
            return {}
        found = {}
        for key, place, value in iter_named_nodes(node):
            self._lines[f"{name}.{key}"] = place.line
            found[key] = build(key, self._read(value, f"{name}.{key}", shape))
        return found

    def _read(self, node: yaml.Node, path: str, shape: SectionSchema) -> Section:
        section = read_section(node, replace(shape, title=path), self._findings)
        for key, place in section.positions.items():
            self._lines[f"{path}.{key}"] = place.line
            if problem := _examine_address(key, section.find_text(key) or ""):
                self._findings.add_problem(place, f"{path}.{key}: {problem}")
        return section


def _examine_address(key: str, text: str) -> str | None:
    """Why the text of a key cannot be an address, or None; it is not repeated."""
    if key == "url" or (key == "server" and "://" in text):
        return examine_service_url(text)
    return ADDRESS_WITH_USER if has_user(text) else None


def _build_profile(name: str, section: Section) -> Profile:
    targets = {
        each: section.get_text(each.value) for each in Binding if section.has_field(each.value)
    }
    return Profile(name, targets, section.find_text("default_graph"))


def _build_alias(name: str, section: Section) -> Alias:
    node = section.values["params"]
    params: Mapping[str, Any] = {} if node is None else decode_node(node)  # Any: JSON values
    return Alias(
        name,
        section.get_text("server"),
        section.get_text("query"),
        section.find_text("graph"),
        section.values["args"],
        params,
        section.find_text("format"),
    )


def _check_defaults(defaults: Section, findings: Findings) -> None:
    if not defaults.has_field("store"):
        return
    for other in ("server", "default_graph"):
        if defaults.has_field(other):
            findings.add_problem(
                defaults.position_of(other), f"defaults: 'store' and '{other}' exclude each other"
            )


def _split_warnings(findings: Findings) -> tuple[str, ...]:
    """The unknown keys as warnings; raises if anything else is wrong."""
    unknown = [each for each in findings.problems if each.code == _UNKNOWN]
    findings.problems = [each for each in findings.problems if each.code != _UNKNOWN]
    findings.raise_if_any()
    return tuple(
        f"{each.file}:{each.line}: unknown key {each.path} is ignored"
        + ("" if each.hint is None else f" ({each.hint})")
        for each in unknown
    )
