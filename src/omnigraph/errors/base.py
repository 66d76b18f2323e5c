"""The root of the errors."""

from __future__ import annotations

from typing import ClassVar


class OmnigraphError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
