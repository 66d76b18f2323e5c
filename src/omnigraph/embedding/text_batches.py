"""Cuts texts into batches of which each fits into one request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

# What every provider takes in one request.
BATCH_TEXTS_MAX: Final = 128
BATCH_CHARACTERS_MAX: Final = 100_000


def cut_batches(texts: Sequence[str], *, texts_max: int = BATCH_TEXTS_MAX) -> Iterator[slice]:
    """Where each batch begins and ends; a text that is too long by itself is one of its own."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    start = 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + BATCH_CHARACTERS_MAX, side="right"))
        end = max(start + 1, min(fitting, start + texts_max))
        yield slice(start, end)
        start = end
