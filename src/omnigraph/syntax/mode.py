"""How strictly a text is read."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Lenient takes every text with one meaning, with warnings; strict refuses old forms."""

    LENIENT = "lenient"
    STRICT = "strict"
