"""The vocabulary of definitions as JSON Schema, by which editors complete and check YAML.

It is made of `config_schema`. A text may be written as a number or a truth value, as YAML has it;
what depends on several fields is left to `pipeline validate`.
"""

from __future__ import annotations

from typing import Final

from omnigraph.config.yaml_reader import FieldKind, FieldSpec, SectionSchema
from omnigraph.pipelines.config import config_schema as fields
from omnigraph.pipelines.config.csv_dialect import CSV_SECTION
from omnigraph.pipelines.config.operations_schema import (
    DRIFT,
    EXPECTATION,
    HOOK,
    LINEAGE,
    METRICS,
    OP,
)
from omnigraph.schema.schema_shape import JsonObject

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[JsonObject] = {"type": ["string", "number", "boolean"]}
_SPAN: Final[JsonObject] = {"type": ["string", "integer"], "pattern": "^[0-9]{1,12}[smhdw]?$"}
# The sections that fields hold: of one kind, or several by a name that the user gives.
_SECTIONS: Final = {
    ("pipeline", "retry"): fields.RETRY,
    ("pipeline", "into"): fields.TARGET,
    ("pipeline", "lineage"): LINEAGE,
    ("pipeline", "metrics"): METRICS,
    ("pipeline", "on_failure"): HOOK,
    ("pipeline", "on_success"): HOOK,
    ("target", "run_branch"): fields.RUN_BRANCH,
    ("map", "nodes"): fields.NODE_RULE,
    ("map", "edges"): fields.EDGE_RULE,
    ("node", "chunk"): fields.CHUNK,
    ("edge", "chunk"): fields.CHUNK,
    ("node", "op"): OP,
    ("edge", "op"): OP,
    ("node", "expect"): EXPECTATION,
    ("edge", "expect"): EXPECTATION,
    ("files", "csv"): CSV_SECTION,
    ("files", "drift"): DRIFT,
    ("postgres", "incremental"): fields.INCREMENTAL,
    ("http", "incremental"): fields.INCREMENTAL,
    ("http", "oauth"): fields.OAUTH,
    ("http", "paging"): fields.PAGING,
}
_SOURCE: Final[JsonObject] = {"$ref": "#/$defs/source"}
_VALUE: Final[JsonObject] = {"anyOf": [_TEXT, {"$ref": "#/$defs/value"}]}
_TEXTS_BY_NAME: Final[JsonObject] = {"additionalProperties": {"type": [*_TEXT["type"], "null"]}}
_PLAIN: Final[dict[FieldKind, JsonObject]] = {
    FieldKind.BOOLEAN: {"type": "boolean"},
    FieldKind.SPAN: _SPAN,
    FieldKind.VALUE: _VALUE,
    FieldKind.VALUES: {"type": "object", "additionalProperties": _VALUE},
}
# What fields hold that no section describes alone.
_SPECIAL: Final[dict[tuple[str, str], JsonObject]] = {
    ("pipeline", "graphs"): {"additionalProperties": {"anyOf": [_TEXT, {"$ref": "#/$defs/graph"}]}},
    ("pipeline", "providers"): {
        "properties": {"source": {"type": "object", "additionalProperties": _SOURCE}},
        "additionalProperties": False,
    },
    ("pipeline", "source"): _SOURCE,
    ("pipeline", "sources"): {"additionalProperties": _SOURCE},
    ("target", "map"): {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/map"}]},
    ("value", "value"): {},
    **{
        ("edge", name): {"anyOf": [_VALUE, {"type": "object", "additionalProperties": _VALUE}]}
        for name in ("from", "to")
    },
}


def build_json_schema() -> JsonObject:
    """The schema of a definition; the parts of it are among its `$defs` by their titles."""
    kinds = {each.title: each for each in fields.SOURCES.values()}
    sources = [_build_source(each) for each in kinds.values()]
    reference = {"type": "string", "pattern": r"^provider\.source\."}
    sections = [each for each in fields.SECTION_SCHEMAS if each.title not in kinds]
    return {
        "$schema": DIALECT,
        "title": "A pipeline of Omnigraph",
        "$ref": "#/$defs/pipeline",
        "$defs": {
            **{each.title: _build_section(each) for each in sections},
            "source": {"anyOf": [reference, *sources]},
        },
    }


def _build_source(shape: SectionSchema) -> JsonObject:
    built = _build_section(shape)
    names = [name for name, each in fields.SOURCES.items() if each is shape]
    kind = {**built["properties"]["kind"], "type": "string", "enum": names}
    return {**built, "properties": {**built["properties"], "kind": kind}}


def _build_section(shape: SectionSchema) -> JsonObject:
    found: JsonObject = {
        "type": "object",
        "description": shape.description,
        "properties": {each.name: _build_field(each, shape) for each in shape.fields},
        "additionalProperties": False,
    }
    required = [each.name for each in shape.fields if each.is_required]
    return {**found, "required": required} if required else found


def _build_field(field: FieldSpec, shape: SectionSchema) -> JsonObject:
    found: JsonObject = {"description": field.description, **_build_kind(field, shape)}
    if field.default not in (None, ()):
        default = field.default
        found["default"] = list(default) if isinstance(default, tuple) else default
    return found


def _build_kind(field: FieldSpec, shape: SectionSchema) -> JsonObject:
    """What a field holds."""
    place = (shape.title, field.name)
    match field.kind:
        case FieldKind.TEXT | FieldKind.SQL | FieldKind.TEXTS:
            text = _build_text(field)
            several = {"anyOf": [text, {"type": "array", "items": text}]}
            return several if field.kind is FieldKind.TEXTS else text
        case FieldKind.INTEGER:
            return {"type": "integer", "minimum": field.minimum}
        case FieldKind.SECTION | FieldKind.SECTIONS:
            section: JsonObject = {"$ref": f"#/$defs/{_SECTIONS[place].title}"}
            is_one = field.kind is FieldKind.SECTION
            return section if is_one else {"type": "array", "items": section}
        case FieldKind.NAMED:
            return {"type": "object", **_SPECIAL.get(place, _TEXTS_BY_NAME)}
        case _:
            return _PLAIN.get(field.kind) or _SPECIAL[place]


def _build_text(field: FieldSpec) -> JsonObject:
    # A choice with other spellings is not an enumeration: `UTF8` is `utf-8`.
    if field.choices and field.normalize is str:
        return {"enum": list(field.choices)}
    return _TEXT
