"""JSON text to plain objects, as strictly as the standard has it: no NaN, no lone surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from omnigraph.diagnostics.shown import sanitize_message, sanitize_text
from omnigraph.writers.inputs.reading import RecordError

_BEYOND_BLANKS = re.compile(r"[^ \t\r\n]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_line(line: str) -> Any:  # Any: JSON
    """The one value of a line; a member that comes twice is refused at any depth."""
    try:
        value = _STRICT.decode(line)
    except (ValueError, RecursionError) as failure:
        raise _build_broken_error(failure, 0) from failure
    _require_characters(line, value)
    return value


def decode_next(text: str, start: int) -> tuple[Any, int] | None:  # Any: JSON
    """The next value of a text from a place on, and where it ends; None after the last."""
    found = _BEYOND_BLANKS.search(text, start)
    if found is None:
        return None
    try:
        value, end = _COMPATIBLE.raw_decode(text, found.start())
    except (ValueError, RecursionError) as failure:
        raise _build_broken_error(failure, found.start()) from failure
    if _SURROGATE_ESCAPE.search(text, start, end):
        _require_characters(text[start:end], value)
    return value, end


class BrokenJsonError(RecordError):
    """A text that is no JSON; more of it may be missing."""


def _build_broken_error(failure: Exception, start: int) -> RecordError:
    if isinstance(failure, RecursionError):
        return BrokenJsonError("invalid strict JSON: nested too deeply", rule="json")
    if isinstance(failure, json.JSONDecodeError):
        return BrokenJsonError(
            f"invalid strict JSON: {failure.msg} at character {failure.pos - start + 1}",
            rule="json",
        )
    return BrokenJsonError(sanitize_message(str(failure)), rule="json")


def _require_characters(text: str, value: Any) -> None:
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as failure:
            raise RecordError(
                "surrogates not allowed: a text holds half of a character"
            ) from failure
        except RecursionError as failure:
            raise _build_broken_error(failure, 0) from failure


def _build_unique_members(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(members)
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"duplicate JSON member '{sanitize_text(name)}'")
            seen.add(name)
    return found


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"invalid strict JSON: {constant} is not a number")


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_build_unique_members, parse_constant=_reject_constant
)
_COMPATIBLE: Final = json.JSONDecoder(parse_constant=_reject_constant)
