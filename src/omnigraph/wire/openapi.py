"""The OpenAPI document of the routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from omnigraph.wire.protocol_names import ARROW, BYTES, IF_COMMIT_HEADER, JSON, LINES
from omnigraph.wire.wire_model import Answer, WireModel
from omnigraph.wire.wire_routes import RouteSpec

JsonObject = dict[str, Any]  # Any: a JSON document
SECURITY: Final = "bearer_token"
_REFERENCE: Final = "#/components/schemas/{model}"
_STREAMS: Final = {LINES: {"type": "string"}, BYTES: {"type": "string", "format": "binary"}}
_STREAMS[ARROW] = _STREAMS[BYTES]


class _SchemaWriter(GenerateJsonSchema):
    """Schemas as other generators of the field write them: no titles, and null as a type."""

    def field_title_should_be_set(self, *_: Any) -> bool:  # Any: a schema of the library
        """Never: the name of a field says it."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("default", ...) is None:
            del found["default"]
        return found

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if isinstance(inner.get("type"), str):
            return {**inner, "type": [inner["type"], "null"]}
        return {"oneOf": [{"type": "null"}, inner]}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        found.pop("title", None)
        model = schema["cls"]
        if issubclass(model, Answer):
            # An absent member is never null; and what further members there will be is open.
            found.pop("additionalProperties", None)
            optional = set(found.get("properties", {})) - set(found.get("required", ()))
            for name in optional:
                found["properties"][name] = _drop_null(found["properties"][name])
        return found


def _drop_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    if isinstance(schema.get("type"), list):
        return {**schema, "type": next(each for each in schema["type"] if each != "null")}
    if "oneOf" in schema:
        others = [each for each in schema["oneOf"] if each != {"type": "null"}]
        rest = {name: value for name, value in schema.items() if name != "oneOf"}
        return {**others[0], **rest} if len(others) == 1 else {**rest, "oneOf": others}
    return schema


def build_openapi(
    routes: Iterable[RouteSpec], *, version: str, has_auth: bool = True
) -> JsonObject:
    """The document; a server without tokens has no security in it."""
    listed = sorted(routes, key=lambda route: (route.path, route.method))
    references, components = _collect_schemas(listed)
    paths: JsonObject = {}
    for route in listed:
        operation = _describe_route(route, references)
        if has_auth and not route.is_open:
            operation["security"] = [{SECURITY: []}]
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    schemes = {SECURITY: {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Omnigraph API", "version": version, "license": {"name": "MIT"}},
        "paths": paths,
        "components": {
            "schemas": components,
            **({"securitySchemes": schemes} if has_auth else {}),
        },
    }


_References = Mapping[tuple[type[WireModel], JsonSchemaMode], JsonSchemaValue]


def _collect_schemas(routes: Sequence[RouteSpec]) -> tuple[_References, JsonObject]:
    wanted = dict.fromkeys(each for route in routes for each in _iter_models(route))
    writer = _SchemaWriter(by_alias=True, ref_template=_REFERENCE)
    found, components = writer.generate_definitions(
        [(model, mode, model.__pydantic_core_schema__) for model, mode in wanted]
    )
    for schema in components.values():
        schema.pop("title", None)
    return {key: found[key] for key in wanted}, dict(sorted(components.items()))


def _iter_models(route: RouteSpec) -> Iterator[tuple[type[WireModel], JsonSchemaMode]]:
    if route.body is not None:
        yield route.body, "validation"
    for model in (*route.answers, route.failure):
        yield model, "validation"


def _describe_route(route: RouteSpec, references: _References) -> JsonObject:
    document: JsonObject = {
        "operationId": route.operation,
        "tags": [route.tag],
        "summary": route.summary,
        **({} if route.successor is None else {"deprecated": True}),
    }
    if parameters := [*_describe_path(route), *_describe_query(route), *_describe_headers(route)]:
        document["parameters"] = parameters
    if route.body is not None or route.body_media != JSON:
        schema = (
            _STREAMS.get(route.body_media) or references[_require_model(route.body), "validation"]
        )
        document["requestBody"] = {
            "required": route.is_body_required,
            "content": {route.body_media: {"schema": schema}},
        }
    document["responses"] = _describe_answers(route, references)
    return document


def _require_model(model: type[WireModel] | None) -> type[WireModel]:
    assert model is not None, "a JSON body has a model"
    return model


def _describe_path(route: RouteSpec) -> Iterator[JsonObject]:
    for segment in route.segments:
        if segment.startswith("{"):
            name = segment[1:-1]
            yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _describe_query(route: RouteSpec) -> Iterator[JsonObject]:
    if route.query is None:
        return
    schema = route.query.model_json_schema(by_alias=True, schema_generator=_SchemaWriter)
    for name, found in schema["properties"].items():
        described = _drop_null(found)
        text = described.pop("description", None)
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _expand_references(described, schema.get("$defs", {})),
            **({} if text is None else {"description": text}),
        }


def _expand_references(schema: Any, definitions: JsonObject) -> Any:  # Any: a JSON value
    match schema:
        case {"$ref": str(reference)}:
            found = definitions[reference.rpartition("/")[2]]
            named = ("title", "description")
            return {name: value for name, value in found.items() if name not in named}
        case dict():
            return {name: _expand_references(value, definitions) for name, value in schema.items()}
        case _:
            return schema


def _describe_headers(route: RouteSpec) -> Iterator[JsonObject]:
    for name in route.headers:
        yield {
            "name": name,
            "in": "header",
            "required": name == IF_COMMIT_HEADER,
            "schema": {"type": "string"},
        }


def _describe_answers(route: RouteSpec, references: _References) -> JsonObject:
    content: JsonObject = {}
    for media in route.answer_media:
        found = [references[model, "validation"] for model in route.answers]
        schema = found[0] if len(found) == 1 else {"oneOf": found}
        content[media] = {"schema": _STREAMS.get(media, schema)}
    described: dict[int, JsonObject] = {200: {"description": "Done."}}
    if content:
        described[200]["content"] = content
    described |= {status: {"description": text} for status, text in route.statuses.items()}
    failure = {JSON: {"schema": references[route.failure, "validation"]}}
    for status in route.failures:
        described[status] = {"description": HTTPStatus(status).phrase}
        if route.method != "HEAD":
            described[status]["content"] = failure
    return {str(status): described[status] for status in sorted(described)}
