"""What a file tool embeds: files, types with their fields, and which records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from omnigraph.config.yaml_reader import Findings, decode_node, parse_document, read_text
from omnigraph.errors import InvalidArgumentError

_SEED_OUTPUT: Final = "build/seed.embedded.jsonl"


class FileMode(StrEnum):
    """Which records get vectors."""

    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbeddedType:
    """The property of a type that gets vectors, and the properties whose text they are made of."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """The length of vectors, and the types that have them."""

    dimension: int
    types: Mapping[str, EmbeddedType]


@dataclass(frozen=True, slots=True)
class EmbedFiles:
    """Where records come from and go to, and what is embedded in them."""

    source: Path
    target: Path
    spec: EmbedSpec


@dataclass(frozen=True, slots=True)
class Selection:
    """The records that have a value in a field: of one type, or of any."""

    type_name: str | None
    field: str
    value: str

    def matches(self, type_name: str, data: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a record is selected."""
        if self.type_name not in (None, type_name) or self.field not in data:
            return False
        value = data[self.field]
        return (value if isinstance(value, str) else json.dumps(value)) == self.value


def parse_selection(text: str) -> Selection:
    """A selection from `Type:field=value` or `field=value`."""
    left, equals, value = text.partition("=")
    type_name, colon, field = left.rpartition(":")
    if not equals or not field or (colon and not type_name):
        hint = "write Type:field=value, or field=value for all types"
        raise InvalidArgumentError("select", f"'{text}' selects nothing", hint=hint)
    return Selection(type_name or None, field, value)


def read_spec(path: Path) -> EmbedSpec:
    """The spec in a JSON file."""
    return _build_spec(_read_document(path), path)


def read_seed(path: Path) -> EmbedFiles:
    """The files and the spec that a seed manifest names; its paths are relative to itself."""
    document = _read_document(path)
    raw = _find_text(document, "sources", "raw_seed") or _find_text(document, "seed", "data")
    if raw is None:
        raise _build_error(path, "it names no seed", "write sources: {raw_seed: PATH}")
    target = _find_text(document, "artifacts", "embedded_seed") or _SEED_OUTPUT
    spec = document.get("embeddings")
    if not isinstance(spec, dict):
        hint = "write embeddings: {dimension: N, types: {…}}"
        raise _build_error(path, "it has no section 'embeddings'", hint)
    return EmbedFiles(path.parent / raw, path.parent / target, _build_spec(spec, path))


def _read_document(path: Path) -> dict[str, Any]:  # Any: values of YAML, of which JSON is one form
    findings = Findings(str(path))
    node = parse_document(read_text(path, findings), findings)
    findings.raise_if_any()
    found = decode_node(node)
    if not isinstance(found, dict):
        raise _build_error(path, "it is not a mapping", "begin it with a name and a colon")
    return found


def _find_text(document: Mapping[str, Any], section: str, name: str) -> str | None:  # Any: YAML
    inner = document.get(section)
    found = inner.get(name) if isinstance(inner, dict) else None
    return found if isinstance(found, str) and found else None


def _build_spec(document: Mapping[str, Any], path: Path) -> EmbedSpec:  # Any: JSON
    dimension, types = document.get("dimension"), document.get("types")
    if type(dimension) is not int or dimension < 1:
        raise _build_error(path, "'dimension' is not a positive number", "write dimension: 384")
    if not isinstance(types, dict) or not types:
        hint = "write types: {Doc: {target: vec, fields: [text]}}"
        raise _build_error(path, "'types' names no type", hint)
    return EmbedSpec(
        dimension, {name: _build_type(each, name, path) for name, each in types.items()}
    )


def _build_type(document: Any, name: str, path: Path) -> EmbeddedType:  # Any: JSON
    target = document.get("target") if isinstance(document, dict) else None
    fields = document.get("fields") if isinstance(document, dict) else None
    is_list = isinstance(fields, list) and bool(fields) and all(type(e) is str for e in fields)
    if not isinstance(target, str) or not is_list:
        hint = f"write {name}: {{target: vec, fields: [text]}}"
        raise _build_error(path, f"type '{name}' has no target or no fields", hint)
    return EmbeddedType(target, tuple(fields or ()))


def _build_error(path: Path, problem: str, hint: str) -> InvalidArgumentError:
    return InvalidArgumentError("spec", f"{path}: {problem}", hint=hint)
