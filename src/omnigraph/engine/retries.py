"""Writes that others overtook, tried again after pauses that grow."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from omnigraph.errors import ConflictError

Result = TypeVar("Result")

# Enough for dozens of writers of one entity.
RETRIES_DEFAULT: Final = 32
_PAUSE_FIRST_S: Final = 0.01
_PAUSE_MAX_S: Final = 1.0


def retry_conflicts(work: Callable[[], Result], *, retries: int) -> Result:
    """What some work returns, done again after a conflict, so many times at most.

    The pauses grow and are random, because writers that wait equally long meet again.
    """
    for attempt in range(retries):
        try:
            return work()
        except ConflictError:
            longest = min(_PAUSE_MAX_S, _PAUSE_FIRST_S * 2**attempt)
            time.sleep(random.uniform(0, longest))  # noqa: S311 — not a secret
    return work()
