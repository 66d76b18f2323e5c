"""How far a long command is, shown while it runs and only to people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Progressed(Protocol):
    """Told how much is done, of how much if that is known, and what is being done."""

    def __call__(self, done: int, total: int | None = None, phase: str = "loading") -> None:
        """Show it."""


@contextmanager
def progress_bar() -> Iterator[Progressed | None]:
    """A bar on standard error, gone at the end; None when that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} records"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading", total=None)

        def progressed(done: int, total: int | None = None, phase: str = "loading") -> None:
            bar.update(task, completed=done, total=total, description=phase)

        yield progressed
