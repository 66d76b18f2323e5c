"""Text of a source as messages show it: short, on one line, and safe for a terminal."""

from __future__ import annotations

import re

_QUOTED_CHARACTERS_MAX = 60
_MESSAGE_CHARACTERS_MAX = 600
_LONG_NAME = re.compile(rf"\w{{{_QUOTED_CHARACTERS_MAX + 1},}}")


def sanitize_text(text: str) -> str:
    """A piece of source text to be quoted in a message: cut, and without control characters."""
    return escape_unprintable(_truncate_text(text, _QUOTED_CHARACTERS_MAX))


def sanitize_message(message: str) -> str:
    """A whole message: long names and long messages are cut, control characters are escaped."""
    if len(message) > _QUOTED_CHARACTERS_MAX:
        message = _LONG_NAME.sub(
            lambda found: _truncate_text(found[0], _QUOTED_CHARACTERS_MAX), message
        )
        message = _truncate_text(message, _MESSAGE_CHARACTERS_MAX)
    return escape_unprintable(message)


def escape_unprintable(text: str, *, keep: str = "") -> str:
    """The text with control and other unprintable characters as escapes, but for some."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else _escape_character(each) for each in text
    )


def _truncate_text(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[:characters_max] + "…"


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
