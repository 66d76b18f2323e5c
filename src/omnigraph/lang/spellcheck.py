"""The nearest known word to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Comparing against more words than this is slow and the guess is no better.
CANDIDATES_MAX = 500
_SIMILARITY_MIN = 0.6


def suggest_similar(word: str, candidates: Iterable[str]) -> str | None:
    """A hint naming the closest candidate, or None when nothing is close."""
    known = {name.lower(): name for name in sorted(set(candidates))[:CANDIDATES_MAX]}
    found = get_close_matches(word.lower()[:64], known, n=1, cutoff=_SIMILARITY_MIN)
    return f"did you mean '{known[found[0]]}'?" if found else None
