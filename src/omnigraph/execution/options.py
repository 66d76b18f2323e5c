"""How a read may run: where it reads from, and what it may use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.query.settings import SETTINGS


class Access(StrEnum):
    """Where a read gets nodes and edges from; its answer is the same."""

    AUTO = "auto"
    TOPOLOGY = "topology"
    LOOKUPS = "lookups"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The choices of a request; no memory or time means no bound of its own."""

    access: Access = Access.AUTO
    memory_bytes: int | None = None
    timeout_s: float | None = None
    work_limit: int = int(SETTINGS["traversal_work_limit"].default)


DEFAULTS: Final = ReadOptions()
