"""Stored queries: found in files, and described for programs.

An entry of the catalogue has the parameters of a query, what it is for, its result columns, and
both as JSON Schema.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.config.bounded_files import require_confined
from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.query.ast import MutationBody, Query
from omnigraph.query.parser import ParsedFile
from omnigraph.query.query_compiler import compile_declaration, parse_file, select_query
from omnigraph.query.query_descriptor import Descriptor, Field, describe_parameters, describe_query
from omnigraph.schema.catalog import Catalog

SUFFIX: Final = ".gq"
_WORD: Final = re.compile(rb"\bquery\b")
_DECLARATION: Final = re.compile(rb"\bquery\s+([A-Za-z_][A-Za-z0-9_-]*)")
# The type of a value in JSON, by the kind of a parameter or column. An I64 is a text, because
# many programs read numbers of JSON as doubles.
_JSON_TYPES: Final[Mapping[str, dict[str, Any]]] = {  # Any: JSON
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"type": ["string", "integer"], "pattern": "^-?[0-9]+$"},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "blob": {"type": "string", "format": "uri"},
    "object": {"type": "object"},
}
# What a caller sends: the digits of an I64, and a blob as text.
_PARAMETER_TYPES: Final[Mapping[str, dict[str, Any]]] = {  # Any: JSON
    **_JSON_TYPES,
    "bigint": {"type": "string", "pattern": r"^-?\d+$"},
    "blob": {"type": "string", "contentEncoding": "base64"},
}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query of a catalogue."""

    name: str
    is_mutation: bool
    description: str | None
    instruction: str | None
    parameters: tuple[Field, ...]
    descriptor: Descriptor
    file: str

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The entry of the catalogue; a description is there only if it is declared."""
        texts = {"description": self.description, "instruction": self.instruction}
        return {
            "name": self.name,
            "mcp_expose": True,
            "tool_name": self.name,
            "mutation": self.is_mutation,
            **{name: text for name, text in texts.items() if text is not None},
            "params": [each.to_json() for each in self.parameters],
            **self.descriptor.to_json(),
            "file": self.file,
        }

    def to_json_schema(self) -> dict[str, Any]:  # Any: a JSON document
        """The query as JSON Schema: an object of parameters, and the rows it returns."""
        about = " ".join(text for text in (self.description, self.instruction) if text)
        required = [each.name for each in self.parameters if not each.is_nullable]
        inputs = _build_object_schema(self.parameters, required, _PARAMETER_TYPES)
        columns = [each.name for each in self.descriptor.result]
        row = _build_object_schema(self.descriptor.result, columns, _JSON_TYPES)
        return {
            "name": self.name,
            **({"description": about} if about else {}),
            "inputSchema": {"$schema": _DRAFT, **inputs},
            **(
                {}
                if self.is_mutation
                else {"outputSchema": {"$schema": _DRAFT, "type": "array", "items": row}}
            ),
        }


_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def _build_object_schema(
    fields: Iterable[Field], required: list[str], types: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:  # Any: JSON
    return {
        "type": "object",
        "properties": {each.name: _build_value_schema(each, types) for each in fields},
        "required": required,
        "additionalProperties": False,
    }


def _build_value_schema(
    field: Field, types: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:  # Any: JSON
    if field.kind == "vector":
        size = field.vector_dimension
        items = {"type": "number"}
        schema: dict[str, Any] = {
            "type": "array",
            "items": items,
            "minItems": size,
            "maxItems": size,
        }
    elif field.fields:
        required = [each.name for each in field.fields if not each.is_nullable]
        schema = {"type": "array", "items": _build_object_schema(field.fields, required, types)}
    elif field.kind == "list":
        schema = {"type": "array", "items": dict(types[field.item_kind or "string"])}
    else:
        schema = dict(types[field.kind])
    if field.is_nullable:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
    return schema


def list_query_files(path: Path) -> list[Path]:
    """The files that a path stands for: itself, or every `.gq` directly in a folder, by name."""
    return [path / name for name in list_query_names(path)] if path.is_dir() else [path]


def list_query_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the files that stand directly in a folder and end with `.gq`, in order."""
    require_confined(path)
    with os.scandir(path) as entries:
        # A link that leads nowhere counts: to leave it out would be to delete its queries.
        files = (each for each in entries if each.name.endswith(SUFFIX) and not each.is_dir())
        return sorted(each.name for each in files)


def is_declaring_only(data: bytes, names: Collection[str]) -> bool:
    """Whether a text that declares some names declares no other one; without parsing it.

    False where only a parser can know. Each declaration has the word: as many words as names leave
    no room for another one.
    """
    if data.count(b"query") == len(names):
        return True
    declared = _DECLARATION.findall(data)
    is_plain = len(declared) == len(_WORD.findall(data))
    return is_plain and {name.decode() for name in declared} == set(names)


def compile_stored(query: Query, parsed: ParsedFile, catalog: Catalog, *, file: str) -> StoredQuery:
    """The catalogue entry of a declaration; raises `CompileError` where it does not fit."""
    compiled = compile_declaration(query, parsed, catalog)
    return StoredQuery(
        name=query.name.text,
        is_mutation=isinstance(query.body, MutationBody),
        description=query.description,
        instruction=query.instruction,
        parameters=describe_parameters(compiled.checked),
        descriptor=describe_query(compiled.checked, catalog),
        file=file,
    )


def compile_named(name: str, text: str, catalog: Catalog) -> StoredQuery:
    """The catalogue entry of a stored query, from the text of its file."""
    parsed = parse_file(text, name=f"{name}{SUFFIX}")
    query = select_query(parsed.file, name)
    return compile_stored(query, parsed, catalog, file=f"{name}{SUFFIX}")


def compile_file(data: bytes, catalog: Catalog, *, file: str) -> Iterator[StoredQuery]:
    """The catalogue of a `.gq` file, in the order of its declarations."""
    parsed = parse_file(data, name=file)
    for query in parsed.file.queries:
        yield compile_stored(query, parsed, catalog, file=file)


def list_errors(error: CompileError) -> list[Diagnostic]:
    """What is wrong, without warnings."""
    return [each for each in error.diagnostics if each.severity.value == "error"]
