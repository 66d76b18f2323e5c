"""Checks the texts of proposals where they enter."""

from __future__ import annotations

from typing import Final

from omnigraph.engine import arguments
from omnigraph.errors import InvalidArgumentError

TITLE_CHARACTERS_MAX: Final = 200
LINK_CHARACTERS_MAX: Final = 2_000
# An event is one object, which every reader of its proposal reads.
BODY_BYTES_MAX: Final = 64 * 1024


def require_title(argument: str, value: object) -> str:
    """A line that is not empty."""
    line = _require_line(argument, value, TITLE_CHARACTERS_MAX)
    if not line.strip():
        raise InvalidArgumentError(argument, "it is empty")
    return line


def require_optional_line(argument: str, value: object) -> str | None:
    """A line that may be left out."""
    return None if value is None else _require_line(argument, value, LINK_CHARACTERS_MAX)


def _require_line(argument: str, value: object, characters_max: int) -> str:
    line = arguments.require_text(argument, value)
    if len(line) > characters_max:
        reason = f"it has {len(line)} characters; the limit is {characters_max}"
        raise InvalidArgumentError(argument, reason)
    if not line.isprintable():
        raise InvalidArgumentError(argument, "it has characters that cannot be shown in a line")
    return line


def require_body(argument: str, value: object) -> str:
    """A text that is not empty, of any number of lines."""
    text = arguments.require_text(argument, value)
    if not text.strip():
        raise InvalidArgumentError(argument, "it is empty")
    return _require_size(argument, text)


def require_name(argument: str, value: object) -> str:
    """The name of a type or a property, or an id, as long as a body may be."""
    text = arguments.require_text(argument, value)
    if not text:
        raise InvalidArgumentError(argument, "it is empty")
    return _require_size(argument, text)


def _require_size(argument: str, text: str) -> str:
    nbytes = len(text.encode())
    if nbytes > BODY_BYTES_MAX:
        reason = f"it has {nbytes} bytes; the limit is {BODY_BYTES_MAX}"
        raise InvalidArgumentError(argument, reason)
    return text


def require_optional_body(argument: str, value: object) -> str | None:
    """The same, and one that is left out."""
    return None if value is None else require_body(argument, value)
