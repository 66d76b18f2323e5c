"""JSON text to plain objects, as strictly as the standard has it: no NaN, no lone surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from omnigraph.diagnostics.shown import readable, shown
from omnigraph.writers.inputs.reading import Refused

_BEYOND_BLANKS = re.compile(r"[^ \t\r\n]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_line(line: str) -> Any:  # Any: JSON
    """The one value of a line; a member that comes twice is refused at any depth."""
    try:
        value = _STRICT.decode(line)
    except (ValueError, RecursionError) as failure:
        raise _broken(failure, 0) from failure
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
        raise _broken(failure, found.start()) from failure
    if _SURROGATE_ESCAPE.search(text, start, end):
        _require_characters(text[start:end], value)
    return value, end


class BrokenJson(Refused):
    """A text that is no JSON; more of it may be missing."""


def _broken(failure: Exception, start: int) -> Refused:
    if isinstance(failure, RecursionError):
        return BrokenJson("invalid strict JSON: nested too deeply", rule="json")
    if isinstance(failure, json.JSONDecodeError):
        return BrokenJson(
            f"invalid strict JSON: {failure.msg} at character {failure.pos - start + 1}",
            rule="json",
        )
    return BrokenJson(readable(str(failure)), rule="json")


def _require_characters(text: str, value: Any) -> None:
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as failure:
            raise Refused("surrogates not allowed: a text holds half of a character") from failure
        except RecursionError as failure:
            raise _broken(failure, 0) from failure


def _unique_members(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(members)
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"duplicate JSON member '{shown(name)}'")
            seen.add(name)
    return found


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"invalid strict JSON: {constant} is not a number")


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_constant=_refuse_constant
)
_COMPATIBLE: Final = json.JSONDecoder(parse_constant=_refuse_constant)
