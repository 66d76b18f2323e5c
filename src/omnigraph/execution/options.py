"""How a read may run: where it reads from, and what it may use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.execution.budget import Budget


class Access(StrEnum):
    """Where a read gets nodes and edges from; its answer is the same."""

    AUTO = "auto"
    TOPOLOGY = "topology"
    LOOKUPS = "lookups"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The choices of a request; no budget means no bound of its own."""

    access: Access = Access.AUTO
    budget: Budget | None = None


DEFAULT_OPTIONS: Final = ReadOptions()
