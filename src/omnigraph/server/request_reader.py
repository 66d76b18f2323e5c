"""The parts of a request as their models: query strings, and bodies within their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from omnigraph.server.exchange import Call, RequestRefusedError
from omnigraph.server.request_failures import refuse_too_large

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]  # Any: events of ASGI
Model = TypeVar("Model", bound=BaseModel)

# More parameters than any route has, and few enough to parse at once.
_FIELDS_MAX: Final = 1_000
# Problems of one body that its answer lists.
_PROBLEMS_MAX: Final = 5
_NULL: Final = b"null"


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


def read_query(call: Call, model: type[Model]) -> Model:
    """The query string as its model; a field is repeated only where the model has a list."""
    found: dict[str, list[str]] = {}
    for name, value in _parse_fields(call.query_string):
        found.setdefault(name, []).append(value)
    lists = {
        field.alias or name
        for name, field in model.model_fields.items()
        if "list" in str(field.annotation)
    }
    given: dict[str, Any] = {}  # Any: a text or texts
    for name, values in found.items():
        if name not in lists and len(values) > 1:
            raise RequestRefusedError(400, f"parameter '{name}' is given {len(values)} times")
        given[name] = values if name in lists else values[0]
    try:
        return model.model_validate(given, strict=False)
    except ValidationError as error:
        raise RequestRefusedError(400, _describe_problems(error)) from None


def _parse_fields(query_string: bytes) -> list[tuple[str, str]]:
    if not query_string:
        return []
    try:
        return parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_FIELDS_MAX,
        )
    except ValueError:
        raise RequestRefusedError(400, "the query string cannot be read") from None


async def read_body(
    call: Call, receive: Receive, *, bytes_max: int, timeout_s: float, resource: str
) -> bytes:
    """The whole body; one that is too large, or takes too long, is refused before its end."""
    declared = call.find_header(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > bytes_max:
        raise refuse_too_large(resource, limit=bytes_max, actual=int(declared))
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise ClientGoneError
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > bytes_max:
                    raise refuse_too_large(resource, limit=bytes_max, actual=size)
                if not event.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        message = f"the body was not complete after {timeout_s:g} seconds"
        headers = ((b"connection", b"close"),)
        raise RequestRefusedError(400, message, headers=headers) from None


def parse_body(data: bytes, model: type[Model], *, is_required: bool) -> Model:
    """A JSON body as its model; one that is optional may be empty or null."""
    if not is_required and data.strip() in {b"", _NULL}:
        data = b"{}"
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise RequestRefusedError(400, _describe_problems(error)) from None


def require_media(call: Call, media: str, *, is_required: bool) -> None:
    """Refuse a body of another kind than the route takes; parameters of the type are ignored."""
    given = call.find_header(b"content-type")
    if given is None and not is_required:
        return
    if given is None or given.partition(";")[0].strip().lower() != media:
        found = "no Content-Type" if given is None else "another Content-Type"
        headers = ((b"connection", b"close"),)
        raise RequestRefusedError(415, f"{found}: send {media}", headers=headers)


def _describe_problems(error: ValidationError) -> str:
    """What is wrong, without the values, which may be secret or long."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = []
    for problem in problems[:_PROBLEMS_MAX]:
        place = ".".join(map(str, problem["loc"]))
        lines.append(f"{place}: {problem['msg']}" if place else problem["msg"])
    more = len(problems) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more else "")
