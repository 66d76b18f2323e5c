"""Problems and notices of a graph, as they are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, TypeVar

import pyarrow as pa

from omnigraph.errors import CorruptObjectError, OmnigraphError, StorageError

# How many entities with the same problem are named one by one; the others are counted.
NAMED_MAX: Final = 20

Result = TypeVar("Result")
# What damage makes actions raise. The last two: a path or a number in a damaged object that nothing
# of ours would have written.
Failure: TypeAlias = OmnigraphError | ValueError | pa.ArrowException
FAILURES: Final = (OmnigraphError, ValueError, pa.ArrowException)

# Between what a store said and the files that were found to be to blame.
BLAMED: Final = " (damaged: "

# Ctrl-C while Lance is at work comes back as the text of an error of Lance. A path may hold the
# word too, but never alone.
_INTERRUPT: Final = re.compile(r"(^|\s)KeyboardInterrupt(:|\s|$)")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that must not be: `kind` for programs, `where` it is, and what is wrong there."""

    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is odd and harmless; `message` goes on where `where` stops."""

    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where} {self.message}"


class Problems:
    """What a check has found so far, each problem and each notice once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}
        self._notices: dict[Notice, None] = {}
        self._failures: set[tuple[str, str, str]] = set()

    def add(self, kind: str, where: str, message: str) -> None:
        """Report a problem."""
        self._found[Problem(kind, where, message)] = None

    def add_ids(self, kind: str, where: str, ids: pa.Array, message: str) -> None:
        """Report the same problem of several entities; `{id}` in the message stands for each."""
        for entity_id in ids[:NAMED_MAX].to_pylist():
            self.add(kind, where, message.format(id=entity_id))
        if len(ids) > NAMED_MAX:
            self.add(kind, where, f"… and {len(ids) - NAMED_MAX} more")

    def add_notice(self, kind: str, where: str, message: str) -> None:
        """Report something that is not a problem."""
        self._notices[Notice(kind, where, message)] = None

    def attempt(self, kind: str, where: str, action: Callable[[], Result]) -> Result | None:
        """What an action gives; a failure is a problem, and gives None."""
        try:
            return action()
        except FAILURES as error:
            self.add_failure(kind, where, error)
        return None

    def add_failure(self, kind: str, where: str, error: Failure) -> None:
        """Report what an action raised; the same failure of the same table is reported once."""
        if is_interrupt(error):
            _raise_interrupt(error)
        match error:
            case CorruptObjectError():
                self.add(kind, error.path, error.reason)
            case StorageError():
                failure = (error.path, error.operation, error.reason.partition(BLAMED)[0])
                if failure not in self._failures:
                    self._failures.add(failure)
                    message = f"{error.operation} failed: {error.reason}"
                    self.add(kind, f"{where} ({error.path})", message)
            case OmnigraphError():
                self.add(kind, where, error.message)
            case _:
                self.add(kind, where, f"cannot be used: {error}")

    def list_problems(self) -> tuple[Problem, ...]:
        """Every problem, in the order in which they were found."""
        return tuple(self._found)

    def list_notices(self) -> tuple[Notice, ...]:
        """Every notice, in the order in which they were found."""
        return tuple(self._notices)


@contextmanager
def translate_interrupts() -> Iterator[None]:
    """Around reads: a Ctrl-C that comes back as an error of the store is a Ctrl-C again."""
    try:
        yield
    except FAILURES as error:
        if is_interrupt(error):
            _raise_interrupt(error)
        raise


def is_interrupt(error: BaseException) -> bool:
    """Whether an error only says that Ctrl-C was pressed."""
    match error:
        case KeyboardInterrupt():
            return True
        case StorageError():
            is_interrupted = _INTERRUPT.search(error.reason) is not None
        case pa.ArrowException():
            is_interrupted = _INTERRUPT.search(str(error)) is not None
        case _:
            # Other messages may quote what a user has written.
            is_interrupted = False
    return is_interrupted or (error.__cause__ is not None and is_interrupt(error.__cause__))


def _raise_interrupt(error: BaseException) -> NoReturn:
    raise KeyboardInterrupt from error
