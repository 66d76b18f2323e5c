"""Mappings from YAML: a section of a definition, or a `.map.yaml` file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import yaml

from omnigraph.config.yaml_reader import (
    Findings,
    Position,
    Section,
    SectionSchema,
    decode_node,
    iter_named_nodes,
    position_of,
    read_section,
)
from omnigraph.pipelines.config import config_schema
from omnigraph.pipelines.config.definition import (
    Chunk,
    Constant,
    EmbeddedText,
    Endpoint,
    Explode,
    Expression,
    Interpolation,
    MappingRule,
    Value,
)
from omnigraph.pipelines.config.deletion_rules import (
    find_conflicts,
    read_delete_limit,
    read_operations,
)
from omnigraph.pipelines.config.expectations import read_expectations

_EXPLODE: Final = re.compile(r"(.+?)\s+as\s+([A-Za-z_][A-Za-z0-9_]*)\s*", re.DOTALL | re.I)
# Texts, names and comments, in which a word has no meaning.
_QUOTED: Final = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
_SELECT: Final = re.compile(r"\(\s*select\b", re.IGNORECASE)
_VALUE_HINT: Final = "write an expression, {value: …}, {template: …} or {embed: …}"


def read_rules(node: yaml.Node | None, findings: Findings) -> tuple[MappingRule, ...]:
    """The rules of a mapping, nodes before edges."""
    section = read_section(node, config_schema.MAPPING, findings)
    nodes: Iterable[yaml.Node] = section.values["nodes"]
    edges: Iterable[yaml.Node] = section.values["edges"]
    rules = (
        *(_read_rule(each, config_schema.NODE_RULE, findings) for each in nodes),
        *(_read_rule(each, config_schema.EDGE_RULE, findings) for each in edges),
    )
    if not rules and isinstance(node, yaml.MappingNode):
        findings.add_problem(section.position, "map: it has neither nodes nor edges")
    return rules


def _read_rule(node: yaml.Node, shape: SectionSchema, findings: Findings) -> MappingRule:
    section = read_section(node, shape, findings)
    is_edge = shape is config_schema.EDGE_RULE
    ends = (
        (_read_endpoint("from", section, findings), _read_endpoint("to", section, findings))
        if is_edge
        else None
    )
    given: yaml.Node | None = section.values["id"]
    if section.has_field("where"):
        _check_nested_select(section.get_text("where"), section.position_of("where"), findings)
    for message in find_conflicts(section):
        findings.add_problem(section.position_of("delete_missing"), message)
    return MappingRule(
        type_name=section.get_text("type"),
        position=section.position,
        values=_read_values(section.values["set"], findings),
        source=section.find_text("source"),
        where=section.find_text("where"),
        explode=tuple(_read_explodes(section, findings)),
        chunk=_read_chunk(section.values["chunk"], findings),
        is_distinct=bool(section.values["distinct"]),
        latest=tuple(section.values["latest"]),
        id=None if given is None else read_value(given, "id", findings),
        ends=ends,
        operations=read_operations(section.values["op"], findings),
        missing_max=read_delete_limit(section, findings),
        expectations=tuple(read_expectations(section.values["expect"], findings)),
        positions=dict(_iter_positions(section)),
    )


def _iter_positions(section: Section) -> Iterator[tuple[str, Position]]:
    yield from section.positions.items()
    given: yaml.Node | None = section.values["set"]
    for key, _ in given.value if isinstance(given, yaml.MappingNode) else ():
        yield f"set.{key.value}", position_of(key)


def _read_values(node: yaml.Node | None, findings: Findings) -> dict[str, Value]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {name: read_value(value, name, findings) for name, _, value in iter_named_nodes(node)}


def _read_endpoint(name: str, section: Section, findings: Findings) -> Endpoint:
    node: yaml.Node | None = section.values[name]
    place = section.position_of(name)
    # A section with the fields of a value is one; any other has the members of a key.
    if isinstance(node, yaml.MappingNode) and not _is_value(node):
        return Endpoint(None, _read_values(node, findings), place)
    value = None if node is None else read_value(node, name, findings)
    return Endpoint(value, {}, place)


def _is_value(node: yaml.MappingNode) -> bool:
    names = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    return len(names) == 1 and names <= set(config_schema.VALUE.names)


def read_value(node: yaml.Node, name: str, findings: Findings) -> Value:
    """A value: an expression, or a section with one of the fields of a value."""
    place = position_of(node)
    if isinstance(node, yaml.ScalarNode):
        if not node.value.strip():
            findings.add_problem(place, f"'{name}' is empty", hint=_VALUE_HINT)
        _check_nested_select(str(node.value), place, findings)
        return Expression(str(node.value), place)
    if not isinstance(node, yaml.MappingNode):
        findings.add_problem(place, f"'{name}' is not a value", hint=_VALUE_HINT)
        return Constant(None, place)
    section = read_section(node, config_schema.VALUE, findings)
    if len(section.positions) != 1:
        findings.add_problem(place, f"'{name}' needs one way to make its value", hint=_VALUE_HINT)
        return Constant(None, place)
    if section.has_field("template"):
        return _parse_interpolation(section.get_text("template"), place, findings)
    if section.has_field("embed"):
        return EmbeddedText(section.get_text("embed"), place)
    return _read_constant(section.values["value"], place, findings)


def _check_nested_select(sql: str, place: Position, findings: Findings) -> None:
    if _SELECT.search(_QUOTED.sub("''", sql)):
        message = "an expression is about one record: it has no subquery"
        findings.add_problem(
            place, message, hint="make it a source of kind sql, which joins others"
        )


def _read_constant(node: yaml.Node, place: Position, findings: Findings) -> Constant:
    try:
        return Constant(decode_node(node), place)
    except (ValueError, yaml.YAMLError) as failure:
        findings.add_problem(place, f"this is not a constant: {failure}")
        return Constant(None, place)


def _parse_interpolation(text: str, place: Position, findings: Findings) -> Interpolation:
    """Split at braces; a doubled brace is a brace."""
    parts: list[str] = [""]
    for piece in re.findall(r"\{\{|\}\}|[{}]|[^{}]+", text):
        is_inside = len(parts) % 2 == 0
        if piece in ("{{", "}}"):
            parts[-1] += piece[0]
        elif piece == ("}" if is_inside else "{"):
            parts.append("")
        elif piece in ("{", "}"):
            break
        else:
            parts[-1] += piece
    is_closed = len(parts) % 2 == 1
    if not is_closed or not all(part.strip() for part in parts[1::2]):
        hint = "write {expression}; a brace itself is written twice"
        findings.add_problem(place, "the braces of this template do not pair", hint=hint)
        return Interpolation((text,), place)
    return Interpolation(tuple(parts), place)


def _read_explodes(section: Section, findings: Findings) -> Iterator[Explode]:
    for text in section.values["explode"]:
        found = _EXPLODE.fullmatch(text)
        if found is None:
            findings.add_problem(
                section.position_of("explode"),
                f"'{text}' does not say what its elements are called",
                hint="write ARRAY as NAME",
            )
        else:
            yield Explode(found[1].strip(), found[2], section.position_of("explode"))


def _read_chunk(node: yaml.Node | None, findings: Findings) -> Chunk | None:
    if node is None:
        return None
    section = read_section(node, config_schema.CHUNK, findings)
    words, overlap = section.values["words"], section.values["overlap"]
    if overlap >= words:
        findings.add_problem(
            section.position_of("overlap"), "chunk: 'overlap' must be less than 'words'"
        )
        overlap = 0
    return Chunk(section.get_text("text"), words, overlap, section.position_of("text"))
