"""Reads files that people write: regular ones of a bounded size.

A path in a configuration may be a pipe that never answers, or a device that never ends. What a
server reads for others stays in the folder that they sent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

# Far more than people write; a file of data by mistake is refused before it fills the memory.
FILE_BYTES_MAX: Final = 16 << 20
# A variable of the context: a reader that some part forgets to hand an argument to would read all.
_CONFINED_TO: Final[ContextVar[Path | None]] = ContextVar("confined_to", default=None)


@contextmanager
def confine_reads(folder: Path) -> Iterator[None]:
    """Refuse, in this thread, to read files and to list folders outside of a folder."""
    token = _CONFINED_TO.set(folder.resolve())
    try:
        yield
    finally:
        _CONFINED_TO.reset(token)


def require_confined(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` for a path that may not be read here."""
    folder = _CONFINED_TO.get()
    if folder is not None and not Path(path).resolve().is_relative_to(folder):
        raise OSError(None, "it is outside of the configuration")


def read_file(path: str | os.PathLike[str], *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The bytes of a file; raises `OSError` for what is not a regular file, or too large."""
    require_confined(path)
    # Opening a pipe would else wait for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is not a regular file")
        if found.st_size > bytes_max:
            raise OSError(None, f"it has more than {bytes_max >> 20} MiB")
        data = os.read(handle, found.st_size)
        # A file system may give the bytes in pieces.
        while len(data) < found.st_size and (more := os.read(handle, found.st_size)):
            data += more
    finally:
        os.close(handle)
    return data


def describe_failure(error: OSError | ValueError) -> str:
    """Why a file was not read, without its path: a path may also have a character that none has."""
    if isinstance(error, UnicodeEncodeError):
        return f"the name {error.object[error.start : error.end]!a} is not UTF-8"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
