"""Matches an expected error text with an error, although wordings differ.

In this order: the text is part of the message; the text starts with a diagnostic code and the error
carries that code; the text holds a fragment that a table maps to our codes.
"""

from __future__ import annotations

import re
from enum import IntEnum

from omnigraph.errors import CompileError, OmnigraphError
from omnigraph.lang.diagnostics import Severity

_CODE = re.compile(r"(?:[STQPL]\d+|OG-[A-Z]{2}-\d+)\b")

# Fragments of other wordings, and the codes our errors carry in their place.
_FRAGMENTS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(r"merge conflicts"), frozenset({"merge_conflicts"})),
    (re.compile(r"branch '[^']*' not found"), frozenset({"branch_not_found"})),
    (re.compile(r"exceeds F32 range"), frozenset({"parameter_error", "load_error"})),
    (re.compile(r"membership"), frozenset({"T7"})),
    (re.compile(r"reserved word"), frozenset({"Q001"})),
    (re.compile(r"parse error"), frozenset({"Q001", "Q002", "Q003", "Q004", "Q005", "S001"})),
)


class Level(IntEnum):
    """How closely an error matched; a strict run takes only the first."""

    TEXT = 1
    CODE = 2
    FRAGMENT = 3


def error_text(error: Exception) -> str:
    """Everything the error says: its message, and its hint if it has one."""
    hint = error.hint if isinstance(error, OmnigraphError) else None
    return f"{error}\n{hint}" if hint else str(error)


def error_codes(error: Exception) -> frozenset[str]:
    """The codes an error carries."""
    if isinstance(error, CompileError):
        return frozenset(each.code for each in error.diagnostics if each.severity is Severity.ERROR)
    return frozenset({error.code}) if isinstance(error, OmnigraphError) else frozenset()


def match_error(expected: str, error: Exception) -> Level | None:
    """How the error matches the expected text, or None if it does not."""
    codes = error_codes(error)
    expected = expected.strip()
    code = _CODE.match(expected)
    if code is not None and code.group() not in codes:
        return None
    # A text that is a code alone would be found inside a longer code, so codes decide first.
    if expected in error_text(error):
        return Level.TEXT
    if code is not None:
        return Level.CODE
    for fragment, meant in _FRAGMENTS:
        if fragment.search(expected) and codes & meant:
            return Level.FRAGMENT
    return None
