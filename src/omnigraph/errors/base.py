"""The root of the errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class OmnigraphError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Callable[..., OmnigraphError], tuple[Any, ...]]:
        """Pickled by its fields: errors cross processes, and each has arguments of its own."""
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(
    error: type[OmnigraphError], args: tuple[Any, ...], fields: dict[str, Any]
) -> OmnigraphError:
    made = error.__new__(error, *args)
    made.__dict__.update(fields)
    return made
