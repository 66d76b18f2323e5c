"""Reading the files that commands are given."""

from __future__ import annotations

from pathlib import Path

import typer

from omnigraph.cli.views import fail

# A file larger than this is not a schema or a query file but a mistake.
TEXT_BYTES_MAX = 64 * 1024 * 1024


def read_text(path: Path) -> bytes:
    """The bytes of a text file, or a failure that names it."""
    try:
        size = path.stat().st_size
        if size > TEXT_BYTES_MAX:
            fail(f"{path}: {size} bytes is more than the {TEXT_BYTES_MAX} a text file may have")
        return path.read_bytes()
    except OSError as failure:
        fail(f"{path}: {failure.strerror or failure}")


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step: a crash leaves the old text or the new one."""
    temporary = path.with_name(f".{path.name}.omnigraph")
    try:
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except OSError as failure:
        temporary.unlink(missing_ok=True)
        fail(f"{path}: {failure.strerror or failure}")


def refuse_together(first: str, second: str) -> None:
    """Exit as for any wrong combination of arguments."""
    raise typer.BadParameter(f"{first} and {second} are mutually exclusive")
