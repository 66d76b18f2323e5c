"""Reads the documents that a cluster stores: each field is of its kind, or the whole is refused.

A document that was damaged, or that another program wrote, is never half understood.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]  # Any: a JSON document


def parse_object(data: bytes) -> JsonObject:
    """A JSON object whose texts can be written again; raises `ValueError`."""
    try:
        found = json.loads(data)
        # Half of a surrogate pair stands in no text that a program writes, and can name no object.
        if b"\\u" in data:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return require_object(found, "the document")


def require_object(value: object, name: str) -> JsonObject:
    """A value that is a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def require_objects(value: object, name: str) -> dict[str, JsonObject]:
    """A value that is an object of objects."""
    found = require_object(value, name)
    if not all(isinstance(each, dict) for each in found.values()):
        raise ValueError(f"{name} holds something that is not an object")
    return found


def require_text(value: object, name: str) -> str:
    """A value that is a text."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def require_optional_text(value: object, name: str) -> str | None:
    """A value that is a text, or null."""
    return None if value is None else require_text(value, name)


def require_texts(value: object, name: str) -> list[str]:
    """A value that is a list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name} is not a list of texts")
    return value


def require_number(value: object, name: str) -> int:
    """A value that is a whole number from 0 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is not a number")
    return value


def require_fields(
    value: Mapping[str, Any],  # Any: values of JSON
    known: Collection[str],
    name: str,
    *,
    optional: Collection[str] = (),
) -> None:
    """Raise unless an object has exactly the known fields, of which some may be left out."""
    if unknown := sorted(value.keys() - known):
        raise ValueError(f"{name} has fields that this program does not know: {', '.join(unknown)}")
    if missing := sorted(set(known) - value.keys() - set(optional)):
        raise ValueError(f"{name} lacks {', '.join(missing)}")
