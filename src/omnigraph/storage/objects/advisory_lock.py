"""An advisory lock: processes of one machine that write to one place take turns.

A turn is a courtesy. Who writes without one, because the store is remote, the file system has no
locks, or another holder takes too long, loses nothing: of two that create one object, one wins
anyway, and the other has worked in vain. The kernel ends the turn of a process that dies.
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
    """A turn at a folder of a store; False if this store has none.

    Who has waited for others should look at what they did, before working in vain.
    """
    descriptor = None if "://" in uri else _open_folder(f"{uri}/{folder}")
    if descriptor is None:
        yield False
        return
    try:
        _wait(descriptor)
        yield True
    finally:
        # Ends the turn, too.
        os.close(descriptor)


def _open_folder(path: str) -> int | None:
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _wait(descriptor: int) -> None:
    """Wait for a turn, but not for ever."""
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
