"""Columns of text under each other, also where characters take two places in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from omnigraph.diagnostics.shown import escape_unprintable


def align_columns(rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Rows as lines; the columns named by `right` are moved to the right."""
    shown = [[escape_unprintable(cell) for cell in row] for row in rows]
    widths = measure_columns(shown)
    numeric = set(right)
    return [
        "  ".join(
            _pad_left(cell, width) if position in numeric else pad_text(cell, width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]


def measure_columns(rows: Iterable[Sequence[str]]) -> list[int]:
    """The places that the widest text of every column takes."""
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def pad_text(text: str, width: int) -> str:
    """The text, followed by space up to a width."""
    return text + " " * (width - cell_len(text))


def _pad_left(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
