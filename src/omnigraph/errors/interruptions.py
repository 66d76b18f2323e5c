"""Errors that are what became of an interruption on its way through a library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def interruption_of(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption while which an error came up, if there was one.

    A library that is interrupted in a call may tell how its clean-up failed instead. What is raised
    because of an interruption, by those who know of it, is not meant.
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
