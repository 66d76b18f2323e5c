"""Mappings from YAML: a section of a definition, or a `.map.yaml` file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import yaml

from omnigraph.pipelines import shapes
from omnigraph.pipelines.fields import (
    Findings,
    Section,
    Shape,
    named_nodes,
    place_of,
    plain,
    read_section,
)
from omnigraph.pipelines.mapping import (
    Chunk,
    Constant,
    Embedded,
    End,
    Explode,
    Expression,
    Phrase,
    Rule,
    Value,
)
from omnigraph.pipelines.places import Place

_EXPLODE: Final = re.compile(r"(.+?)\s+as\s+([A-Za-z_][A-Za-z0-9_]*)\s*", re.DOTALL | re.I)
_WAYS: Final = "write an expression, {value: …}, {template: …} or {embed: …}"


def read_rules(node: yaml.Node | None, findings: Findings) -> tuple[Rule, ...]:
    """The rules of a mapping, nodes before edges."""
    section = read_section(node, shapes.MAPPING, findings)
    nodes: Iterable[yaml.Node] = section.values["nodes"]
    edges: Iterable[yaml.Node] = section.values["edges"]
    rules = (
        *(_rule(each, shapes.NODE_RULE, findings) for each in nodes),
        *(_rule(each, shapes.EDGE_RULE, findings) for each in edges),
    )
    if not rules and isinstance(node, yaml.MappingNode):
        findings.add(section.place, "map: it has neither nodes nor edges")
    return rules


def _rule(node: yaml.Node, shape: Shape, findings: Findings) -> Rule:
    section = read_section(node, shape, findings)
    is_edge = shape is shapes.EDGE_RULE
    ends = (_end("from", section, findings), _end("to", section, findings)) if is_edge else None
    given: yaml.Node | None = section.values["id"]
    return Rule(
        type_name=section.text("type"),
        place=section.place,
        values=_values(section.values["set"], f"{shape.title} set", findings),
        source=section.text_or_none("source"),
        where=section.text_or_none("where"),
        explode=tuple(_explodes(section, findings)),
        chunk=_chunk(section.values["chunk"], findings),
        is_distinct=bool(section.values["distinct"]),
        id=None if given is None else read_value(given, "id", findings),
        ends=ends,
        places=dict(_places(section)),
    )


def _places(section: Section) -> Iterator[tuple[str, Place]]:
    yield from section.places.items()
    given: yaml.Node | None = section.values["set"]
    for key, _ in given.value if isinstance(given, yaml.MappingNode) else ():
        yield f"set.{key.value}", place_of(key)


def _values(node: yaml.Node | None, title: str, findings: Findings) -> dict[str, Value]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {
        name: read_value(value, name, findings)
        for name, _, value in named_nodes(node, title, findings)
    }


def _end(name: str, section: Section, findings: Findings) -> End:
    node: yaml.Node | None = section.values[name]
    place = section.place_of(name)
    # A section with the fields of a value is one; any other has the members of a key.
    if isinstance(node, yaml.MappingNode) and not _is_value(node):
        return End(None, _values(node, f"edge {name}", findings), place)
    value = None if node is None else read_value(node, name, findings)
    return End(value, {}, place)


def _is_value(node: yaml.MappingNode) -> bool:
    names = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    return len(names) == 1 and names <= set(shapes.VALUE.names)


def read_value(node: yaml.Node, name: str, findings: Findings) -> Value:
    """A value: an expression, or a section with one of the fields of a value."""
    place = place_of(node)
    if isinstance(node, yaml.ScalarNode):
        if not node.value.strip():
            findings.add(place, f"'{name}' is empty", hint=_WAYS)
        return Expression(str(node.value), place)
    if not isinstance(node, yaml.MappingNode):
        findings.add(place, f"'{name}' is no value", hint=_WAYS)
        return Constant(None, place)
    section = read_section(node, shapes.VALUE, findings)
    if len(section.places) != 1:
        findings.add(place, f"'{name}' needs one way to make its value", hint=_WAYS)
        return Constant(None, place)
    if section.has("template"):
        return _phrase(section.text("template"), place, findings)
    if section.has("embed"):
        return Embedded(section.text("embed"), place)
    return _constant(section.values["value"], place, findings)


def _constant(node: yaml.Node, place: Place, findings: Findings) -> Constant:
    try:
        return Constant(plain(node), place)
    except (ValueError, yaml.YAMLError) as failure:
        findings.add(place, f"this is no constant: {failure}")
        return Constant(None, place)


def _phrase(text: str, place: Place, findings: Findings) -> Phrase:
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
        findings.add(place, "the braces of this template do not pair", hint=hint)
        return Phrase((text,), place)
    return Phrase(tuple(parts), place)


def _explodes(section: Section, findings: Findings) -> Iterator[Explode]:
    for text in section.values["explode"]:
        found = _EXPLODE.fullmatch(text)
        if found is None:
            findings.add(
                section.place_of("explode"),
                f"'{text}' does not say what its elements are called",
                hint="write ARRAY as NAME",
            )
        else:
            yield Explode(found[1].strip(), found[2], section.place_of("explode"))


def _chunk(node: yaml.Node | None, findings: Findings) -> Chunk | None:
    if node is None:
        return None
    section = read_section(node, shapes.CHUNK, findings)
    words, overlap = section.values["words"], section.values["overlap"]
    if overlap >= words:
        findings.add(section.place_of("overlap"), "chunk: 'overlap' must be less than 'words'")
        overlap = 0
    return Chunk(section.text("text"), words, overlap, section.place_of("text"))
