"""Reading and replacing the files that commands are given."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from omnigraph.cli.command_errors import fail

# A file larger than this is not a schema or a query file but a mistake.
TEXT_BYTES_MAX = 64 * 1024 * 1024
STANDARD_INPUT = Path("-")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class FileError(Exception):
    """A file that cannot be read or replaced; the message names it."""


def read_source(path: Path) -> bytes:
    """The bytes of a schema or query file, or of standard input; a problem ends the command."""
    try:
        return _read_standard_input() if path == STANDARD_INPUT else read_bytes(path)
    except FileError as problem:
        fail(str(problem))


def read_bytes(path: Path) -> bytes:
    """The bytes of a file of a sensible size."""
    try:
        with path.open("rb") as file:
            return _read_stream(file, str(path))
    except OSError as failure:
        raise FileError(f"{path}: {failure.strerror or failure}") from failure


def _read_standard_input() -> bytes:
    if sys.stdin is None:
        raise FileError("standard input is closed")
    return _read_stream(sys.stdin.buffer, "standard input")


def _read_stream(stream: IO[bytes], name: str) -> bytes:
    # Sizes are not asked for: a device has none and never ends.
    data = stream.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        raise FileError(f"{name}: larger than the {TEXT_BYTES_MAX} bytes a text file may have")
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


def require_lock_support() -> None:
    """Refuse a system on which processes cannot take turns."""
    if os.name != "posix":
        fail("a baseline is written on POSIX systems only")


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock beside a path; the lock file stays, or two could hold locks on two files."""
    import fcntl

    lock = path.with_name(f"{path.name}.lock")
    with _translate_errors(lock), lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file whole and durably, and only then give it its name."""
    target = path.resolve()
    with _translate_errors(path), _open_temporary(target) as (temporary, file):
        file.writelines(chunks)
        file.flush()
        os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
        if not os.path.samestat(os.fstat(file.fileno()), target.stat()):
            raise FileError(f"{path}: another process replaced the file at the same time")


@contextmanager
def _open_temporary(target: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield Path(name), file
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        fail(f"{path}: {failure.strerror or failure}")
    except FileError as problem:
        fail(str(problem))
