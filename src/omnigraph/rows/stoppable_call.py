"""Long calls of native libraries, which a request does not wait for when it has to stop."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Final, TypeVar

T = TypeVar("T")

# Such calls take a few tenths of a second from so many bytes on.
BYTES_MIN: Final = 32 * 1024**2
# How often a request looks whether it has to stop.
_POLL_SECONDS: Final = 0.02


def call_stoppably(work: Callable[[], T], check: Callable[[], None], *, nbytes: int) -> T:
    """The result of work on so many bytes; what `check` raises meanwhile abandons it.

    The work releases the interpreter and changes nothing: a thread ends it, and nothing reads it.
    """
    if nbytes < BYTES_MIN:
        return work()
    found: list[T] = []
    failures: list[BaseException] = []
    is_done = Event()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as failure:  # noqa: BLE001 — raised where it was called
            failures.append(failure)
        finally:
            is_done.set()

    Thread(target=run, name="omnigraph-call", daemon=True).start()
    while not is_done.wait(_POLL_SECONDS):
        check()
    if failures:
        raise failures[0]
    return found[0]
