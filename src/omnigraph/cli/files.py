"""Reading and replacing the files that commands are given."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from omnigraph.cli.failures import fail

# A file larger than this is not a schema or a query file but a mistake.
TEXT_BYTES_MAX = 64 * 1024 * 1024
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class FileError(Exception):
    """A file that cannot be read or replaced; the message names it."""


def read_source(path: Path) -> bytes:
    """The bytes of a schema or query file; the command fails if there is a problem."""
    try:
        return read_bytes(path)
    except FileError as problem:
        fail(str(problem))


def read_bytes(path: Path) -> bytes:
    """The bytes of a file of a sensible size."""
    try:
        with path.open("rb") as file:
            # Sizes are not asked for: a device has none and never ends.
            data = file.read(TEXT_BYTES_MAX + 1)
    except OSError as failure:
        raise FileError(f"{path}: {failure.strerror or failure}") from failure
    if len(data) > TEXT_BYTES_MAX:
        raise FileError(f"{path}: larger than the {TEXT_BYTES_MAX} bytes a text file may have")
    return data


def replace_text(path: Path, text: str) -> None:
    """Replace what a path leads to in one step: a crash leaves the old text or the new one."""
    target = path.resolve()
    temporary = None
    try:
        mode = target.stat().st_mode
        if not mode & _WRITABLE:
            raise FileError(f"{path}: the file is read-only")
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(stat.S_IMODE(mode))
        Path(temporary).replace(target)
    except OSError as failure:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise FileError(f"{path}: {failure.strerror or failure}") from failure
