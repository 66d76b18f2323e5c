"""Problems of a graph, as they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

from omnigraph.errors import CorruptObject, OmnigraphError, StorageError

# How many entities with the same problem are named one by one; the others are counted.
NAMED_MAX: Final = 20

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that must not be: `kind` for programs, `where` it is, and what is wrong there."""

    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Problems:
    """What a check has found so far, each problem once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def add(self, kind: str, where: str, message: str) -> None:
        """Report a problem."""
        self._found[Problem(kind, where, message)] = None

    def add_ids(self, kind: str, where: str, ids: pa.Array, message: str) -> None:
        """Report the same problem of several entities; `{id}` in the message stands for each."""
        for entity_id in ids[:NAMED_MAX].to_pylist():
            self.add(kind, where, message.format(id=entity_id))
        if len(ids) > NAMED_MAX:
            self.add(kind, where, f"… and {len(ids) - NAMED_MAX} more")

    def attempt(self, kind: str, where: str, action: Callable[[], Result]) -> Result | None:
        """What an action gives; a failure is a problem, and gives None."""
        try:
            return action()
        except CorruptObject as error:
            self.add(kind, error.path, error.reason)
        except StorageError as error:
            self.add(kind, f"{where} ({error.path})", f"{error.operation} failed: {error.reason}")
        except OmnigraphError as error:
            self.add(kind, where, error.message)
        except (ValueError, pa.ArrowException) as error:
            # A path or a number in a damaged object that nothing of ours would have written.
            self.add(kind, where, f"cannot be used: {error}")
        return None

    def all(self) -> tuple[Problem, ...]:
        """Every problem, in the order in which they were found."""
        return tuple(self._found)
