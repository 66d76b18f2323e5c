"""Replacing a file in one step, by one process at a time: the old content or the new, whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from omnigraph.cli.failures import fail
from omnigraph.cli.files import FileError


def require_lock_support() -> None:
    """Refuse a system on which processes cannot take turns."""
    if os.name != "posix":
        fail("a baseline is written on POSIX systems only")


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock beside a path; the lock file stays, or two could hold locks on two files."""
    import fcntl  # noqa: PLC0415 — only POSIX has it

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
            raise FileError(f"{path}: somebody else replaced the file at the same time")


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
