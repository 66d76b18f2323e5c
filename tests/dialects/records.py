"""Records of both dialects: what each member may be, and how a refusal is worded."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dialects.values import from_json
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType

Members = dict[str, Any]  # Any: JSON

_BEYOND_BLANKS = re.compile(r"[^ \t\r\n]")


class Record(NamedTuple):
    """A record: its place and type, the id it came with, its properties and an edge's ends."""

    number: int
    type_: NodeType | EdgeType
    given_id: str | None
    values: Members


class RecordReader:
    """Reads the records of a text; `number` is the line, or the record if compatible, it is at."""

    def __init__(self, catalog: Catalog, *, is_strict: bool, is_patch: bool = False) -> None:
        self._catalog, self._is_strict, self.number = catalog, is_strict, 0
        self._is_patch = is_patch

    def records(self, text: str) -> list[Record]:
        """Every record; a ValueError says what is wrong with the one at `number`."""
        return [self._record(value) for value in self._values(text)]

    def _values(self, text: str) -> Iterator[Any]:
        members = _unique_members if self._is_strict else dict
        decoder = json.JSONDecoder(object_pairs_hook=members, parse_constant=_refuse_constant)
        if self._is_strict:
            for self.number, line in enumerate(text.split("\n"), start=1):
                if line.strip():
                    yield decoder.decode(line)
            return
        end = 0
        while found := _BEYOND_BLANKS.search(text, end):
            self.number += 1
            value, end = decoder.raw_decode(text, found.start())
            yield value

    def _record(self, value: Any) -> Record:
        if not isinstance(value, dict):
            raise ValueError("a record must be one object")
        if "type" not in value and "edge" not in value:
            raise ValueError("expected 'type' or 'edge' field, exactly one of 'type' or 'edge'")
        # A lone surrogate is no text: encoding refuses it.
        json.dumps(value, ensure_ascii=False).encode()
        kind = "type" if "type" in value else "edge"
        name, nodes = _text(value, kind), self._catalog.nodes
        type_ = nodes.get(name) if kind == "type" else self._catalog.find_edge(name)
        if type_ is None:
            raise ValueError(f"unknown {kind} '{name}'")
        data = value.get("data", {})
        if self._is_strict:
            _refuse_unknown(value, data, type_)
        data = data if isinstance(data, dict) else {}
        ends = {"@src": _text(value, "from"), "@dst": _text(value, "to")} if kind == "edge" else {}
        values = ends | self._properties(data, type_)
        return Record(self.number, type_, self._given_id(value, data, type_), values)

    def _properties(self, data: Members, type_: NodeType | EdgeType) -> Members:
        values: Members = {}
        for name, property_ in type_.properties.items():
            is_optional = self._is_patch or property_.default is not None
            if is_optional and name not in data and name not in (type_.key or ()):
                continue
            try:
                values[name] = from_json(data.get(name), property_.type, is_strict=self._is_strict)
            except (ValueError, OverflowError) as failure:
                raise ValueError(f"{type_.name}.{name}: {failure}") from failure
            if values[name] is None and not property_.type.is_nullable:
                raise ValueError(f"non-nullable property '{name}' has null or invalid values")
        return values

    def _given_id(self, value: Members, data: Members, type_: NodeType | EdgeType) -> str | None:
        given_id = _text(value, "id") if "id" in value else None
        if "id" not in data or "id" in type_.properties:
            return given_id
        if given_id is not None:
            raise ValueError("the id stands both beside the type and in 'data'")
        is_ignored = isinstance(type_, EdgeType) and not self._is_strict
        return None if is_ignored and not isinstance(data["id"], str) else _text(data, "id")


def _text(members: Members, name: str) -> str:
    if name not in members:
        raise ValueError(f"requires field '{name}'")
    if not isinstance(members[name], str):
        raise ValueError(f"field '{name}' must be a string")
    return str(members[name])


def _refuse_unknown(value: Members, data: Any, type_: NodeType | EdgeType) -> None:
    if {"type", "edge"} <= value.keys():
        raise ValueError("exactly one of 'type' or 'edge' is needed")
    if not isinstance(data, dict):
        raise ValueError("field 'data' must be an object")
    is_edge = isinstance(type_, EdgeType)
    envelope = {"edge", "from", "to", "id", "data"} if is_edge else {"type", "id", "data"}
    unknown = [(name, "unknown top-level field") for name in value if name not in envelope]
    for name in data.keys() - type_.properties.keys() - {"id"}:
        is_end = is_edge and name in ("src", "dst")
        unknown.append((name, "reserved structural state" if is_end else "unknown input field"))
    for name, problem in unknown:
        is_physical = name.startswith("_")
        raise ValueError(f"{'reserved physical state' if is_physical else problem} '{name}'")


def _unique_members(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise ValueError(f"duplicate JSON member '{name}'")
        found[name] = value
    return found


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"invalid strict JSON: {constant} is not a number")
