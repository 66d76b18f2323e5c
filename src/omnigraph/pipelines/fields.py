"""What a section of a definition may hold, and reading one strictly, with the place of everything.

A `Shape` lists the fields of a section; the reference page is made of the same lists. Reading
collects problems instead of stopping at the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import yaml

from omnigraph.diagnostics.shown import shown
from omnigraph.diagnostics.suggest import did_you_mean
from omnigraph.durations import seconds_of
from omnigraph.errors import PipelineInvalid, Problem
from omnigraph.pipelines.places import Place

_NESTING_MAX: Final = 32
START: Final = Place(1)


class Kind(Enum):
    """What the value of a field is; its value is the wording of the reference."""

    TEXT = "text"
    TEXTS = "a text, or a list of texts"
    INTEGER = "integer"
    BOOLEAN = "true or false"
    SPAN = "time span: `30s`, `5m`, `2h`"
    SQL = "Spark SQL expression"
    SECTION = "section"
    SECTIONS = "list of sections"
    NAMED = "sections by name"
    VALUES = "values by property"
    VALUE = "value"
    ANY = "see below"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a section: its name, what it holds, what it means, and its default."""

    name: str
    kind: Kind
    meaning: str
    is_required: bool = False
    default: object = None
    # The only texts there are; empty for any.
    choices: tuple[str, ...] = ()
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of a section, under the title it has in messages and in the reference."""

    title: str
    meaning: str
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(each.name for each in self.fields)


@dataclass
class Findings:
    """The problems of one file."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    # The outermost part of the document that begins at each place.
    paths: Mapping[Place, str] = field(default_factory=dict)

    def add(self, place: Place, message: str, *, hint: str | None = None) -> None:
        """Report a problem."""
        path = self.paths.get(place)
        self.problems.append(
            Problem(self.file, place.line, place.column, message, hint=hint, path=path)
        )

    def raise_if_any(self) -> None:
        """Refuse the file if anything is wrong with it."""
        if self.problems:
            raise PipelineInvalid(in_order(self.problems, first=self.file))


def in_order(problems: Iterable[Problem], *, first: str) -> list[Problem]:
    """Each problem once, by its place; those of one file come before those of all others."""

    def place(problem: Problem) -> tuple[bool, str, int, int]:
        return problem.file != first, problem.file, problem.line, problem.column

    return sorted(dict.fromkeys(problems), key=place)


@dataclass(frozen=True, slots=True)
class Section:
    """A section that was read: the values of its fields, defaults included, and their places."""

    place: Place
    values: Mapping[str, Any]  # Any: what the kind of each field says
    places: Mapping[str, Place]

    def text(self, name: str) -> str:
        """The text of a field that has one."""
        value = self.values[name]
        return value if isinstance(value, str) else ""

    def text_or_none(self, name: str) -> str | None:
        """The text of a field that may be left out."""
        value = self.values[name]
        return value if isinstance(value, str) else None

    def place_of(self, name: str) -> Place:
        """Where a field is written, or where its section starts."""
        return self.places.get(name, self.place)

    def has(self, name: str) -> bool:
        """Whether the field is written down."""
        return name in self.places


def read_document(text: str, findings: Findings) -> yaml.Node | None:
    """The tree of a text; what is empty, or not YAML at all, is refused at once."""
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        place = START if mark is None else Place(mark.line + 1, mark.column + 1)
        findings.add(place, f"this is not YAML: {failure.problem or failure.context}")
    except (yaml.YAMLError, RecursionError) as failure:
        findings.add(START, f"this is not YAML: {failure}")
    else:
        if node is not None:
            findings.paths = _paths(node)
            return node
        findings.add(START, "the file is empty")
    findings.raise_if_any()
    return None


def _paths(root: yaml.Node) -> dict[Place, str]:
    """The outermost part of a document that begins at each place: a path of names and numbers."""
    found: dict[Place, str] = {}
    waiting: list[tuple[yaml.Node, str, int]] = [(root, "", 0)]
    while waiting:
        node, path, depth = waiting.pop()
        inner: list[tuple[yaml.Node, str, int]] = []
        if isinstance(node, yaml.MappingNode):
            named = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
            for key, value in named:
                own = f"{path}.{shown(key.value)}".removeprefix(".")
                for place in (place_of(key), place_of(value)):
                    found[place] = min(found.get(place, own), own, key=len)
                inner.append((value, own, depth + 1))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                own = f"{path}[{number}]"
                found[place_of(value)] = min(found.get(place_of(value), own), own, key=len)
                inner.append((value, own, depth + 1))
        # An alias may hold what it stands in.
        waiting += inner if depth < _NESTING_MAX else []
    return found


def read_section(node: yaml.Node | None, shape: Shape, findings: Findings) -> Section:
    """A section of a shape; whatever is unknown, missing or of another kind is a problem."""
    if node is None or not isinstance(node, yaml.MappingNode):
        place = START if node is None else place_of(node)
        findings.add(place, f"{shape.title}: expects fields: {', '.join(shape.names)}")
        return Section(place, {each.name: each.default for each in shape.fields}, {})
    known = {each.name: each for each in shape.fields}
    values: dict[str, Any] = {each.name: each.default for each in shape.fields}  # Any: as above
    places: dict[str, Place] = {}
    for name, place, value in named_nodes(node, shape.title, findings):
        if name not in known:
            hint = did_you_mean(name, known) or f"known are {', '.join(known)}"
            findings.add(place, f"{shape.title}: unknown field '{shown(name)}'", hint=hint)
            continue
        places[name] = place
        values[name] = _value(value, known[name], shape, findings)
    for each in shape.fields:
        if each.is_required and each.name not in places:
            findings.add(place_of(node), f"{shape.title}: '{each.name}' is missing")
    return Section(place_of(node), values, places)


def named_nodes(
    node: yaml.MappingNode, title: str, findings: Findings
) -> Iterator[tuple[str, Place, yaml.Node]]:
    """The members of a mapping; a name that is no text, or that comes twice, is a problem."""
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            findings.add(place_of(key), f"{title}: a name must be a text")
        elif key.value in seen:
            findings.add(place_of(key), f"{title}: '{shown(key.value)}' is given twice")
        else:
            seen.add(key.value)
            yield key.value, place_of(key), value


def plain(node: yaml.Node, depth: int = 0) -> Any:  # Any: a value of YAML
    """The value of a tree, as YAML understands it; dates stay the texts they are written as."""
    if depth > _NESTING_MAX:
        raise ValueError("it is nested too deeply")
    match node:
        case yaml.ScalarNode():
            if node.tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:binary"):
                return node.value
            return yaml.SafeLoader("").construct_object(node)
        case yaml.SequenceNode():
            return [plain(each, depth + 1) for each in node.value]
        case yaml.MappingNode():
            return {key.value: plain(value, depth + 1) for key, value in node.value}
        case _:
            raise ValueError("it is no value")


def place_of(node: yaml.Node) -> Place:
    """Where a tree starts."""
    return Place(int(node.start_mark.line) + 1, int(node.start_mark.column) + 1)


def _value(
    node: yaml.Node, field_: Field, shape: Shape, findings: Findings
) -> Any:  # Any: what the kind of the field says
    match field_.kind:
        case Kind.SECTION | Kind.ANY | Kind.VALUE:
            return node
        case Kind.SECTIONS:
            return _sequence(node, field_, shape, findings)
        case Kind.NAMED | Kind.VALUES:
            if isinstance(node, yaml.MappingNode):
                return node
            return _misfit(node, field_, shape, findings)
        case Kind.TEXTS:
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            return tuple(_text(each, field_, shape, findings) for each in items)
        case _:
            return _scalar(node, field_, shape, findings)


def _sequence(
    node: yaml.Node, field_: Field, shape: Shape, findings: Findings
) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return tuple(node.value)
    _misfit(node, field_, shape, findings)
    return ()


def _scalar(
    node: yaml.Node, field_: Field, shape: Shape, findings: Findings
) -> Any:  # Any: a text, a number or a Boolean
    if field_.kind in (Kind.TEXT, Kind.SQL):
        return _text(node, field_, shape, findings)
    value = plain(node) if isinstance(node, yaml.ScalarNode) else None
    match field_.kind, value:
        case Kind.BOOLEAN, bool():
            return value
        case Kind.INTEGER, int() if not isinstance(value, bool) and value >= field_.minimum:
            return value
        case Kind.SPAN, int() | str() if (seconds := seconds_of(str(value))) is not None:
            return seconds
        case _:
            return _misfit(node, field_, shape, findings)


def _text(node: yaml.Node, field_: Field, shape: Shape, findings: Findings) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        _misfit(node, field_, shape, findings)
        return ""
    # A number or a date is taken as it is written: `branch: 2026` is a name.
    value = str(node.value)
    if field_.choices and value not in field_.choices:
        hint = did_you_mean(value, field_.choices) or f"known are {', '.join(field_.choices)}"
        message = f"{shape.title}: '{shown(value)}' is no {field_.name}"
        findings.add(place_of(node), message, hint=hint)
        return field_.choices[0]
    if not value.strip():
        findings.add(place_of(node), f"{shape.title}: '{field_.name}' is empty")
    return value


def _misfit(
    node: yaml.Node, field_: Field, shape: Shape, findings: Findings
) -> Any:  # Any: the default of the field
    wanted = field_.kind.value
    if field_.kind is Kind.INTEGER and field_.minimum:
        wanted = f"{wanted} of at least {field_.minimum}"
    findings.add(place_of(node), f"{shape.title}: '{field_.name}' expects: {wanted}")
    return field_.default
