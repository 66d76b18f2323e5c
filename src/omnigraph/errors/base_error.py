"""The root of the errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def interruption_of(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption while which an error came up, if there was one.

    A library that is interrupted in a call may report how its clean-up failed. What is raised
    explicitly because of an interruption does not count.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        if isinstance(found.__cause__, KeyboardInterrupt):
            return None
        found = found.__context__
    return found


@contextmanager
def raise_interruptions() -> Iterator[None]:
    """Raise the interruption itself where an error is what became of it."""
    try:
        yield
    except Exception as error:
        if (interruption := interruption_of(error)) is not None:
            raise type(interruption) from error
        raise
