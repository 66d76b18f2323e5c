"""How a command fails: the error it raises, its exit code, and a request to end."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from itertools import pairwise
from types import FrameType
from typing import ClassVar, Final, NoReturn

from omnigraph.error_codes import ErrorCode

FAILED: Final = 1
LOST_PRECONDITION: Final = 4
# What shells report of a program that Ctrl-C ended, or that was asked to end.
INTERRUPTED: Final = 130
TERMINATED: Final = 143


class CommandError(Exception):
    """A command that cannot go on: why, what to do, and what programs call it."""

    code: ClassVar[ErrorCode] = ErrorCode.BAD_REQUEST
    reason: ClassVar[str] = "command_refused"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def fail(message: str, *, hint: str | None = None) -> NoReturn:
    """End the command with exit code 1, saying why it cannot go on and what to do."""
    raise CommandError(message, hint=hint)


class Terminated(KeyboardInterrupt):
    """This process was asked to end, by `kill` or by a system that stops its services."""


def handle_termination() -> None:
    """Let a command that is asked to end do what it does on Ctrl-C."""
    signal.signal(signal.SIGTERM, _raise_terminated)


def exit_code_of(stop: KeyboardInterrupt) -> int:
    """The exit code of a command that was stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _raise_terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; known also where the line cannot be parsed."""
    given = list(arguments)
    options = given[: given.index("--")] if "--" in given else given
    is_format = ("--format", "json") in pairwise(options)
    return is_format or "--json" in options or "--format=json" in options
