"""The elements of a GraphML document, one after the other, with their data by name.

XML has one reader in Python's library that does not hold the document in memory, and it calls a
function for each tag: a million elements take seconds, where a table takes a fraction of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from xml.parsers import expat

from omnigraph.lang.quoting import sanitize_text
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.writers.inputs.row_sink import RecordError

_KINDS: Final = {"node": TypeKind.NODE, "edge": TypeKind.EDGE}
_ROOT: Final = "graphml"
_FOR_ALL: Final = "all"
_NESTED_HINT: Final = "write one graph of nodes and edges: a table has no graph inside of a node"


class Element(NamedTuple):
    """A node, or an edge with its ends; `data` has its texts by the names of their attributes."""

    kind: TypeKind
    line: int
    id: str | None
    source: str
    target: str
    data: dict[str, str]


class _Key(NamedTuple):
    """A declared attribute; without a name it is of use to one program only."""

    name: str | None
    kinds: tuple[TypeKind, ...]


class GraphmlError(RecordError):
    """A document that cannot be read on, and the line where that is."""

    def __init__(self, line: int, message: str, hint: str | None = None) -> None:
        super().__init__(message, rule="graphml", hint=hint)
        self.line = line


class GraphmlParser:
    """Takes a document in blocks, and gives its elements away when they end."""

    def __init__(self, keep: Callable[[Element], None]) -> None:
        # The attributes that are declared for each kind of element, with their defaults.
        self.declared: dict[TypeKind, dict[str, str | None]] = {
            kind: {} for kind in _KINDS.values()
        }
        self._keep = keep
        self._keys: dict[str, _Key] = {}
        self._element: Element | None = None
        # The attribute whose text is read, and what was read of it.
        self._open: _Key | None = None
        self._text: list[str] | None = None
        self._is_started = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start_tag
        parser.EndElementHandler = self._end_tag
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._refuse_entity
        # Another document may declare what is not declared here.
        parser.SkippedEntityHandler = self._refuse_skipped_entity

    def read_block(self, block: bytes, *, is_last: bool = False) -> None:
        """Read on in the document."""
        try:
            self._parser.Parse(block, is_last)
        except expat.ExpatError as failure:
            problem = f"not well-formed XML: {expat.ErrorString(failure.code)}"
            raise GraphmlError(failure.lineno, problem) from failure

    def _start_tag(self, tag: str, attributes: dict[str, str]) -> None:
        if self._text is not None:
            raise self._build_error(f"the text of an attribute has a tag inside: <{tag}>")
        name = tag.rpartition(":")[2]
        if not self._is_started and name != _ROOT:
            raise self._build_error(f"a GraphML document begins with <{_ROOT}>, not <{tag}>")
        self._is_started = True
        if name in _KINDS:
            self._start_element(name, attributes)
        elif name == "data" and self._element is not None:
            self._start_data(attributes)
        elif name == "key":
            self._declare_key(attributes)
        elif name == "default" and self._open is not None and self._open.name is not None:
            self._text = []
        elif name == "hyperedge" or (name == "graph" and self._element is not None):
            raise self._build_error(f"<{name}> cannot be loaded here", _NESTED_HINT)

    def _end_tag(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in _KINDS and self._element is not None:
            element, self._element = self._element, None
            self._keep(element)
        elif name in ("data", "default") and self._text is not None:
            self._end_text("".join(self._text))
            self._text = None
        if name in ("data", "key"):
            self._open = None

    def _add_text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        if self._element is not None:
            raise self._build_error(f"<{name}> is inside of another element", _NESTED_HINT)
        kind = _KINDS[name]
        needed = ("id",) if kind is TypeKind.NODE else ("source", "target")
        for each in needed:
            if each not in attributes:
                raise self._build_error(f"<{name}> has no '{each}'")
        self._element = Element(
            kind,
            self._parser.CurrentLineNumber,
            attributes.get("id"),
            attributes.get("source", ""),
            attributes.get("target", ""),
            {},
        )

    def _start_data(self, attributes: dict[str, str]) -> None:
        id_ = attributes.get("key", "")
        self._open = self._keys.get(id_)
        if self._open is None:
            raise self._build_error(f"the key '{sanitize_text(id_)}' is not declared")
        self._text = None if self._open.name is None else []

    def _declare_key(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("for", _FOR_ALL)
        kinds = tuple(_KINDS.values()) if kind == _FOR_ALL else (_KINDS.get(kind),)
        known = tuple(each for each in kinds if each is not None)
        self._open = _Key(attributes.get("attr.name"), known)
        self._keys[attributes.get("id", "")] = self._open
        for each in known:
            if self._open.name is not None:
                self.declared[each].setdefault(self._open.name, None)

    def _end_text(self, text: str) -> None:
        assert self._open is not None, "a text is that of an attribute"
        name = self._open.name
        assert name is not None, "the text of an attribute without a name is not read"
        if self._element is None:
            for kind in self._open.kinds:
                self.declared[kind][name] = text
        elif name in self._element.data:
            raise self._build_error(f"the attribute '{sanitize_text(name)}' is there twice")
        else:
            self._element.data[name] = text

    def _refuse_entity(self, *_declaration: object) -> None:
        # An entity may stand for any number of others, and for a file.
        raise self._build_error("a document that declares entities is not read")

    def _refuse_skipped_entity(self, name: str, _is_parameter: bool) -> None:
        raise self._build_error(
            f"the entity '{sanitize_text(name)}' is not declared in the document"
        )

    def _build_error(self, problem: str, hint: str | None = None) -> GraphmlError:
        return GraphmlError(self._parser.CurrentLineNumber, problem, hint)
