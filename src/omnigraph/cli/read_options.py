"""Groups of options of the verbs that run reads: what a read may use, how a table looks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from omnigraph.cli.views.rows import CELL_WIDTH_MAX, CELL_WIDTH_MIN, TableLayout

_SIZE: Final = re.compile(r"(\d+)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What a read may use."""

    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Stop the query when it has run for so long."
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Refuse the query if it needs more; bytes, or with K, M, G or T.",
            show_default="a quarter of the machine",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.timeout is not None and (math.isnan(self.timeout) or self.timeout < 0):
            raise typer.BadParameter(f"--timeout: {self.timeout:g} is not a time to wait")
        # Whether the size can be read is known before the graph is opened.
        _ = self.memory_bytes

    @property
    def memory_bytes(self) -> int | None:
        """The memory in bytes."""
        if self.memory is None:
            return None
        found = _SIZE.fullmatch(self.memory.strip())
        if found is None:
            raise typer.BadParameter(f"--memory: '{self.memory}' is no size such as 512M or 2G")
        return int(found[1]) * _UNITS[found[2].upper()]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table shows long values."""

    max_width: Annotated[
        int,
        typer.Option(
            "--max-width",
            metavar="N",
            help=f"So many characters of a table's column; {CELL_WIDTH_MIN} at least.",
        ),
    ] = CELL_WIDTH_MAX
    is_wrapped: Annotated[
        bool,
        typer.Option("--wrap", help="Continue a longer value of a table on the next line."),
    ] = False

    @property
    def layout(self) -> TableLayout:
        """The layout in force."""
        return TableLayout(max(self.max_width, CELL_WIDTH_MIN), is_wrapped=self.is_wrapped)
