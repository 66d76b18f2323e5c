"""Writing to the two output streams."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len

from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph.lang.diagnostics import Diagnostic

_LINE_END = "\n"

# A document is held back until it is whole: so much in memory, a larger one in a temporary file.
_BUFFERED_BYTES_MAX = 16 * 1024 * 1024
_PART_CHARACTERS = 1024 * 1024
# By severity.
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def prepare_streams() -> None:
    """Let both streams show every text: what an encoding lacks is printed as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class OutputError(Exception):
    """Standard output cannot be written; the cause says why."""


def finish_output() -> None:
    """Write what is still held back."""
    if sys.stdout is not None:
        with _translate_output_errors():
            sys.stdout.flush()


@contextmanager
def _translate_output_errors() -> Iterator[None]:
    """Raise failures of standard output as `OutputError`."""
    try:
        yield
    except OSError as failure:
        raise OutputError(failure.strerror or str(failure)) from failure


def print_bytes(chunks: Iterable[bytes]) -> None:
    """Bytes on standard output as they are."""
    for chunk in chunks:
        with _translate_output_errors():
            sys.stdout.buffer.write(chunk)


def print_json(document: object) -> None:
    """One document, indented by two, ending in a line end."""
    text = encode_json(document)
    with _translate_output_errors():
        typer.echo(text)


def encode_json(document: object) -> str:
    """A document as it is printed: indented by two, with the characters that the output has."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return json.dumps(document, indent=2, ensure_ascii=encoding != "utf8")


def print_lines(lines: Iterable[str]) -> None:
    """Plain lines on standard output."""
    for line in lines:
        with _translate_output_errors():
            typer.echo(line)


def print_document(lines: Iterable[str]) -> None:
    """One document whose lines are made as it is read: printed when it is whole, or not at all."""
    with tempfile.SpooledTemporaryFile(
        _BUFFERED_BYTES_MAX, mode="w+", encoding="utf-8", errors="surrogatepass", newline=""
    ) as held:
        for line in lines:
            held.write(f"{line}\n")
        held.seek(0)
        while part := held.read(_PART_CHARACTERS):
            with _translate_output_errors():
                typer.echo(part, nl=False)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Findings on standard error, the first line of each coloured when it is a terminal."""
    from rich.console import Console
    from rich.text import Text

    from omnigraph.lang.diagnostic_views import render_human

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for found in diagnostics:
        first, _, rest = render_human(found).partition("\n")
        console.print(Text(first, style=_STYLES[found.severity.value]))
        console.print(Text(rest))


def print_problems(problems: Iterable[str]) -> None:
    """Failures on standard error, a line each."""
    for problem in problems:
        typer.echo(f"error: {escape_unprintable(problem, keep=_LINE_END)}", err=True)


def print_warning(warning: str) -> None:
    """What works, and will not for ever, on standard error."""
    typer.echo(f"warning: {escape_unprintable(warning, keep=_LINE_END)}", err=True)


def print_hint(hint: str) -> None:
    """What to do about a failure, on standard error."""
    typer.echo(f"hint: {escape_unprintable(hint, keep=_LINE_END)}", err=True)


def format_count(number: int, noun: str, *, plural: str | None = None) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def format_time(time: datetime) -> str:
    """A time for people, as commands take it too: to the millisecond, so that commits differ."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
