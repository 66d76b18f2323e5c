"""The distinct tokens of a field, in their order: found by themselves, or by what is near them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TokenIndices: TypeAlias = npt.NDArray[np.int64]
_Letters: TypeAlias = npt.NDArray[np.uint32]

ABSENT: Final = -1
# Tokens whose distances are computed at once: the rows of the computation stay in the caches.
_BLOCK_TOKENS: Final = 16_384
# What a vocabulary takes besides its tokens, from the first search by distance on.
_LETTER_BYTES: Final = 4


class Vocabulary:
    """Distinct tokens in the order of code points; a code is a place among them."""

    def __init__(self, tokens: pa.Array) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.tokens.nbytes) * (1 + _LETTER_BYTES)

    def find_code(self, token: str) -> int:
        """The code of a token; -1 if it is not there."""
        place = bisect_left(range(len(self)), token, key=lambda at: self.tokens[at].as_py())
        is_there = place < len(self) and self.tokens[place].as_py() == token
        return place if is_there else ABSENT

    def find_prefixed(self, prefix: str) -> range:
        """The codes of the tokens that begin with some letters."""

        def read_beginning(at: int) -> str:
            found: str = self.tokens[at].as_py()
            return found[: len(prefix)]

        codes = range(len(self))
        return range(
            bisect_left(codes, prefix, key=read_beginning),
            bisect_right(codes, prefix, key=read_beginning),
        )

    def find_near(
        self, wanted: Iterable[str], edits: int, poll: Callable[[], None] = lambda: None
    ) -> TokenIndices:
        """The codes of the tokens within so many edits of one of those wanted, ascending."""
        return _find_near_words(self._letters, wanted, edits, poll)

    @cached_property
    def _letters(self) -> list[_Words]:
        return _group_by_length(self.tokens)


def find_near_tokens(
    tokens: pa.Array, wanted: Iterable[str], edits: int, poll: Callable[[], None] = lambda: None
) -> TokenIndices:
    """The places of the tokens within so many edits of one of those wanted, ascending."""
    if not edits:
        value_set = pa.array(list(wanted), tokens.type)
        return np.flatnonzero(pc.is_in(tokens, value_set=value_set).to_numpy(zero_copy_only=False))
    return _find_near_words(_group_by_length(tokens), wanted, edits, poll)


class _Words(NamedTuple):
    """Tokens of one length: where they are among all, and their letters, a column per token."""

    indices: TokenIndices
    letters: _Letters


def _group_by_length(tokens: pa.Array) -> list[_Words]:
    lengths = pc.utf8_length(tokens).to_numpy(zero_copy_only=False)
    found = []
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        joined = "".join(tokens.take(pa.array(places)).to_pylist())
        letters = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        letters = letters.reshape(len(places), int(length))
        found.append(_Words(places, np.ascontiguousarray(letters.T)))
    return found


def _find_near_words(
    words: Iterable[_Words], wanted: Iterable[str], edits: int, poll: Callable[[], None]
) -> TokenIndices:
    asked = list(wanted)
    parts: list[TokenIndices] = []
    for places, letters in words:
        for token in asked:
            if abs(len(letters) - len(token)) > edits:
                continue
            for start in range(0, len(places), _BLOCK_TOKENS):
                poll()
                is_near = _is_near(letters[:, start : start + _BLOCK_TOKENS], token, edits)
                parts.append(places[start : start + _BLOCK_TOKENS][is_near])
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _is_near(letters: _Letters, wanted: str, edits: int) -> npt.NDArray[np.bool_]:
    """Which tokens of one length are within so many edits of another one (Levenshtein)."""
    length, count = letters.shape
    # A row of the table of distances, for all tokens at once: of their first letters, so many.
    row = [np.full(count, place, np.uint16) for place in range(length + 1)]
    for number, letter in enumerate(map(ord, wanted), start=1):
        corner, row[0] = row[0], np.full(count, number, np.uint16)
        for place in range(1, length + 1):
            replaced = corner + (letters[place - 1] != letter)
            corner = row[place]
            shorter = np.minimum(row[place - 1], corner)
            row[place] = np.minimum(shorter + np.uint16(1), replaced)
    found: npt.NDArray[np.bool_] = row[length] <= edits
    return found
