"""Reads files that people write: regular ones of a bounded size.

A path in a configuration may be a pipe that never answers, or a device that never ends.
"""

from __future__ import annotations

import os
import stat
from typing import Final

# Far more than people write; a file of data by mistake is refused before it fills the memory.
FILE_BYTES_MAX: Final = 16 << 20


def read_file(path: str | os.PathLike[str], *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The bytes of a file; raises `OSError` for what is not a regular file, or too large."""
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
