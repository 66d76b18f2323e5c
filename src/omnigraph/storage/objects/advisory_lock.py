"""An advisory lock: processes of one machine that write to one place take turns.

The lock only saves work. A writer without it, because the store is remote, the file system has no
locks, or another holder takes too long, loses nothing: of two that create one object, one wins
anyway, and the other repeats its work. The kernel releases the lock of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

# Longer than a few commits take; a holder that is stopped costs others no more than this.
WAIT_S_MAX: Final = 0.1
_RETRY_EVERY_S: Final = 0.0005


@contextmanager
def acquire_lock(uri: str, folder: str) -> Iterator[bool]:
    """Lock a folder of a store; yields False if this store has no locks.

    A writer that has waited should read what others wrote before it prepares its own write.
    """
    descriptor = None if "://" in uri else _open_folder(f"{uri}/{folder}")
    if descriptor is None:
        yield False
        return
    try:
        _wait(descriptor)
        yield True
    finally:
        # This releases the lock, too.
        os.close(descriptor)


def _open_folder(path: str) -> int | None:
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _wait(descriptor: int) -> None:
    """Wait for the lock, but no longer than the bound."""
    give_up_at = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < give_up_at:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_RETRY_EVERY_S)
        except OSError:
            return
        else:
            return
