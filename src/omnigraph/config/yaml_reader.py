"""What a section of a YAML file may hold, and reading one strictly, with the place of everything.

A `SectionSchema` lists the fields of a section; the reference page is generated from the same
lists. Reading collects problems instead of stopping at the first one. Scalars are those of YAML
1.2: `yes`, `on`, `010` and `12:30` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import yaml

from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.durations import parse_duration
from omnigraph.errors import ConfigInvalidError, Problem
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar

_NESTING_MAX: Final = 32
# The parser of the library calls itself for every level, and ends the process when it runs out.
_PARSED_NESTING_MAX: Final = 200
_DIGITS_MAX: Final = 4_000
# Values of one file, each counted as often as aliases repeat it.
_VALUES_MAX: Final = 1_000_000
_TAG: Final = "tag:yaml.org,2002:"

# The core schema of YAML 1.2, in the order in which plain scalars are matched.
_SCALARS: Final = (
    ("null", r"|~|null|Null|NULL"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
)

_KNOWN_TAGS: Final = frozenset(
    {
        *(_TAG + name for name, _ in _SCALARS),
        *(_TAG + name for name in ("str", "map", "seq", "timestamp", "binary")),
    }
)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A line and a column, both from 1."""

    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


DOCUMENT_START: Final = Position(1)


class _Loader(yaml.CSafeLoader):
    """The parser of libyaml, with the plain scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # Any: as the library declares


for _tag, _pattern in _SCALARS:
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_pattern})\Z"), None)
# Printers that decide by these what to quote are understood by the parser.
SCALAR_RESOLVERS: Final = _Loader.yaml_implicit_resolvers


class FieldKind(Enum):
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
class FieldSpec:
    """A field of a section: its name, what it holds, what it means, and its default."""

    name: str
    kind: FieldKind
    description: str
    is_required: bool = False
    default: object = None
    # The only texts there are; empty for any.
    choices: tuple[str, ...] = ()
    minimum: int = 0
    # What a text is called among the choices, if it has other names too.
    normalize: Callable[[str], str] = str


@dataclass(frozen=True, slots=True)
class SectionSchema:
    """The fields of a section, under the title it has in messages and in the reference."""

    title: str
    description: str
    fields: tuple[FieldSpec, ...]

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
    paths: Mapping[Position, str] = field(default_factory=dict)
    # What a file with problems is refused with.
    error: type[ConfigInvalidError] = ConfigInvalidError

    def add_problem(
        self, place: Position, message: str, *, hint: str | None = None, code: str = "invalid_value"
    ) -> None:
        """Report a problem."""
        path = self.paths.get(place)
        self.problems.append(
            Problem(self.file, place.line, place.column, message, hint=hint, path=path, code=code)
        )

    def raise_if_any(self) -> None:
        """Refuse the file if anything is wrong with it."""
        if self.problems:
            raise self.error(sort_problems(self.problems, first=self.file))


def sort_problems(problems: Iterable[Problem], *, first: str) -> list[Problem]:
    """Each problem once, by its place; those of one file come before those of all others."""

    def sort_key_of(problem: Problem) -> tuple[bool, str, int, int]:
        return problem.file != first, problem.file, problem.line, problem.column

    return sorted(dict.fromkeys(problems), key=sort_key_of)


@dataclass(frozen=True, slots=True)
class Section:
    """A section that was read: the values of its fields, defaults included, and their places."""

    position: Position
    values: Mapping[str, Any]  # Any: what the kind of each field says
    positions: Mapping[str, Position]

    def get_text(self, name: str) -> str:
        """The text of a field that has one."""
        value = self.values[name]
        return value if isinstance(value, str) else ""

    def find_text(self, name: str) -> str | None:
        """The text of a field that may be left out."""
        value = self.values[name]
        return value if isinstance(value, str) else None

    def position_of(self, name: str) -> Position:
        """Where a field is written, or where its section starts."""
        return self.positions.get(name, self.position)

    def has_field(self, name: str) -> bool:
        """Whether the field is written down."""
        return name in self.positions


def read_text(path: Path, findings: Findings) -> str:
    """The text of a file; one that cannot be read is refused at once."""
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        before = failure.object[: failure.start].decode(errors="replace")
        message = f"the file is not UTF-8 text: byte 0x{failure.object[failure.start]:02x}"
        findings.add_problem(_locate_end(before), message, code="unreadable_file")
        raise findings.error(findings.problems) from failure
    except (OSError, ValueError) as failure:
        message = f"the file cannot be read: {describe_failure(failure)}"
        findings.add_problem(DOCUMENT_START, message, code="unreadable_file")
        raise findings.error(findings.problems) from failure


def _locate_end(text: str) -> Position:
    """The place of what follows a text."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def parse_document(text: str, findings: Findings) -> yaml.Node:
    """The tree of a text; what is empty, or not YAML at all, is refused at once.

    A name that is given twice, at any depth, is a problem.
    """
    try:
        _check_nesting(text)
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        if node is not None:
            _require_finite(node)
    except yaml.MarkedYAMLError as failure:
        place = _locate_failure(failure, text)
        message = f"this is not YAML: {failure.problem or failure.context}"
        findings.add_problem(place, message, code="invalid_yaml")
    except yaml.reader.ReaderError as failure:
        message = f"this is not YAML: the character #x{failure.character:04x} is not allowed"
        place = _locate_end(text[: failure.position])
        findings.add_problem(place, message, code="invalid_yaml")
    else:
        if node is not None:
            findings.paths = _collect_paths(node)
            _check_names(node, findings)
            return node
        findings.add_problem(DOCUMENT_START, "the file is empty", code="invalid_yaml")
    raise findings.error(sort_problems(findings.problems, first=findings.file))


def _locate_failure(failure: yaml.MarkedYAMLError, text: str) -> Position:
    mark = failure.problem_mark or failure.context_mark
    if mark is None:
        return DOCUMENT_START
    lines = text.splitlines()
    # What is missing at the end of a text is reported in its last line, not after it.
    if mark.line >= len(lines) > 0:
        return Position(len(lines), len(lines[-1]) + 1)
    return Position(mark.line + 1, mark.column + 1)


def _check_nesting(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _PARSED_NESTING_MAX:
            problem = "it is nested too deeply"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _require_finite(root: yaml.Node) -> None:
    """Refuse a tree whose aliases make it endless, or far larger or deeper than it is written."""
    sizes: dict[int, tuple[int, int]] = {}
    waiting = [(root, False)]
    entered = set[int]()
    while waiting:
        node, is_left = waiting.pop()
        inner = _list_inner(node)
        if is_left:
            found = [sizes[id(each)] for each in inner if id(each) in sizes]
            count = 1 + sum(size for size, _ in found)
            depth = 1 + max((below for _, below in found), default=0)
            # What is still being measured contains itself.
            if len(found) < len(inner) or depth > _NESTING_MAX or count > _VALUES_MAX:
                problem = "it is nested too deeply, or its aliases repeat too much"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            sizes[id(node)] = count, depth
        elif id(node) not in entered:
            entered.add(id(node))
            waiting += [(node, True), *((each, False) for each in inner)]


def _list_inner(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.SequenceNode():
            return list(node.value)
        case yaml.MappingNode():
            return [each for pair in node.value for each in pair]
        case _:
            return []


def _check_names(root: yaml.Node, findings: Findings) -> None:
    """Report tags of other programs, names that are not texts, and names that come twice."""
    waiting, visited = [root], set[int]()
    while waiting:
        node = waiting.pop()
        # An alias may hold what it stands in.
        if id(node) in visited:
            continue
        visited.add(id(node))
        inner: list[yaml.Node] = []
        if node.tag not in _KNOWN_TAGS:
            # The tag is not repeated: a password may begin with its mark.
            message = "a tag is not known here: put a text that begins with '!' in quotes"
            findings.add_problem(position_of(node), message)
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            inner = [value for _, value in node.value]
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    findings.add_problem(position_of(key), "a name must be a text")
                    continue
                if key.value in seen:
                    message = f"'{sanitize_text(key.value)}' is given twice"
                    findings.add_problem(position_of(key), message, code="duplicate_key")
                seen.add(key.value)
        waiting += inner


def _collect_paths(root: yaml.Node) -> dict[Position, str]:
    """The outermost part of a document that begins at each place: a path of names and numbers."""
    found: dict[Position, str] = {}
    waiting: list[tuple[yaml.Node, str, int]] = [(root, "", 0)]
    while waiting:
        node, path, depth = waiting.pop()
        inner: list[tuple[yaml.Node, str, int]] = []
        if isinstance(node, yaml.MappingNode):
            named = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
            for key, value in named:
                own = f"{path}.{sanitize_text(key.value)}".removeprefix(".")
                for place in (position_of(key), position_of(value)):
                    found[place] = min(found.get(place, own), own, key=len)
                inner.append((value, own, depth + 1))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                own = f"{path}[{number}]"
                found[position_of(value)] = min(found.get(position_of(value), own), own, key=len)
                inner.append((value, own, depth + 1))
        # An alias may hold what it stands in.
        waiting += inner if depth < _NESTING_MAX else []
    return found


def read_section(node: yaml.Node | None, shape: SectionSchema, findings: Findings) -> Section:
    """A section of a shape; whatever is unknown, missing or of another kind is a problem."""
    if node is None or not isinstance(node, yaml.MappingNode):
        place = DOCUMENT_START if node is None else position_of(node)
        findings.add_problem(place, f"{shape.title}: expects fields: {', '.join(shape.names)}")
        return Section(place, {each.name: each.default for each in shape.fields}, {})
    known = {each.name: each for each in shape.fields}
    values: dict[str, Any] = {each.name: each.default for each in shape.fields}  # Any: as above
    places: dict[str, Position] = {}
    for name, place, value in iter_named_nodes(node):
        if name not in known:
            hint = suggest_similar(name, known) or f"known are {', '.join(known)}"
            message = f"{shape.title}: unknown field '{sanitize_text(name)}'"
            findings.add_problem(place, message, hint=hint, code="unknown_field")
            continue
        places[name] = place
        values[name] = _read_value(value, known[name], shape, findings)
    for each in shape.fields:
        if each.is_required and each.name not in places:
            message = f"{shape.title}: '{each.name}' is missing"
            findings.add_problem(position_of(node), message, code="missing_field")
    return Section(position_of(node), values, places)


def require_version(
    section: Section, known: int, findings: Findings, *, code: str = "invalid_value"
) -> None:
    """Report a version of the format other than the known one; one of another kind is reported."""
    version = section.values["version"]
    if version not in (None, known):
        where, message = section.position_of("version"), f"version {version} is not known"
        findings.add_problem(where, message, hint=f"write {known}", code=code)


def is_null(node: yaml.Node) -> bool:
    """Whether a value is left empty, or says `null`."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def iter_named_nodes(node: yaml.MappingNode) -> Iterator[tuple[str, Position, yaml.Node]]:
    """The members of a mapping, each name once; `parse_document` reported the others."""
    seen: set[str] = set()
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value not in seen:
            seen.add(key.value)
            yield key.value, position_of(key), value


def decode_node(node: yaml.Node, depth: int = 0) -> Any:  # Any: a value of YAML
    """The value of a tree as YAML 1.2 understands it; dates stay the texts they are written as."""
    if depth > _NESTING_MAX:
        raise ValueError("it is nested too deeply")
    match node:
        case yaml.ScalarNode():
            return _decode_scalar(str(node.value), str(node.tag).removeprefix(_TAG))
        case yaml.SequenceNode():
            return [decode_node(each, depth + 1) for each in node.value]
        case yaml.MappingNode():
            # Other names were reported by `parse_document`.
            named = ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
            return {key.value: decode_node(value, depth + 1) for key, value in named}
        case _:
            raise ValueError("it is not a value")


def _decode_scalar(text: str, tag: str) -> str | int | float | bool | None:
    match tag:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        # More digits than that, which Python would refuse to read, are a text like any other.
        case "int" if len(text) <= _DIGITS_MAX:
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        case "float":
            return float(re.sub(r"\.(?=[in])", "", text.lower()))
        case _:
            # Of a tag that is not known, too: `parse_document` reported it.
            return text


def position_of(node: yaml.Node) -> Position:
    """Where a tree starts."""
    return Position(int(node.start_mark.line) + 1, int(node.start_mark.column) + 1)


def _read_value(
    node: yaml.Node, field_: FieldSpec, shape: SectionSchema, findings: Findings
) -> Any:  # Any: what the kind of the field says
    match field_.kind:
        case FieldKind.SECTION | FieldKind.ANY | FieldKind.VALUE:
            return node
        case FieldKind.SECTIONS:
            return _read_sequence(node, field_, shape, findings)
        case FieldKind.NAMED | FieldKind.VALUES:
            if isinstance(node, yaml.MappingNode):
                return node
            return _report_mismatch(node, field_, shape, findings)
        case FieldKind.TEXTS:
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            return tuple(_read_text(each, field_, shape, findings) for each in items)
        case _:
            return _read_scalar(node, field_, shape, findings)


def _read_sequence(
    node: yaml.Node, field_: FieldSpec, shape: SectionSchema, findings: Findings
) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return tuple(node.value)
    _report_mismatch(node, field_, shape, findings)
    return ()


def _read_scalar(
    node: yaml.Node, field_: FieldSpec, shape: SectionSchema, findings: Findings
) -> Any:  # Any: a text, a number or a Boolean
    if field_.kind in (FieldKind.TEXT, FieldKind.SQL):
        return _read_text(node, field_, shape, findings)
    value = decode_node(node) if isinstance(node, yaml.ScalarNode) else None
    match field_.kind, value:
        case FieldKind.BOOLEAN, bool():
            return value
        case FieldKind.INTEGER, int() if not isinstance(value, bool) and value >= field_.minimum:
            return value
        case FieldKind.SPAN, int() | str() if (seconds := parse_duration(str(value))) is not None:
            return seconds
        case _:
            return _report_mismatch(node, field_, shape, findings)


def _read_text(node: yaml.Node, field_: FieldSpec, shape: SectionSchema, findings: Findings) -> str:
    if not isinstance(node, yaml.ScalarNode) or is_null(node):
        _report_mismatch(node, field_, shape, findings)
        return field_.choices[0] if field_.choices else ""
    # A number or a date is taken as it is written: `branch: 2026` is a name.
    value = field_.normalize(str(node.value))
    if field_.choices and value not in field_.choices:
        hint = suggest_similar(value, field_.choices) or f"known are {', '.join(field_.choices)}"
        message = f"{shape.title}: '{sanitize_text(value)}' is not a value of {field_.name}"
        findings.add_problem(position_of(node), message, hint=hint)
        return field_.choices[0]
    if not value.strip():
        findings.add_problem(position_of(node), f"{shape.title}: '{field_.name}' is empty")
    return value


def _report_mismatch(
    node: yaml.Node, field_: FieldSpec, shape: SectionSchema, findings: Findings
) -> Any:  # Any: the default of the field
    wanted = field_.kind.value
    if field_.kind is FieldKind.INTEGER and field_.minimum:
        wanted = f"{wanted} of at least {field_.minimum}"
    findings.add_problem(position_of(node), f"{shape.title}: '{field_.name}' expects: {wanted}")
    return field_.default
