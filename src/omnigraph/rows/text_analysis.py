"""Whole columns of texts to tokens: words are cut out of the bytes, and each word is analysed once.

The separators of ASCII are separators everywhere, so bytes alone cut a text into runs that have
none of them inside. Tokens never reach across a run, hence those of a text are those of its runs.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.rows.comparison import Values

Codes: TypeAlias = npt.NDArray[np.int32]
# From a text to what it is searched by.
Analyzer: TypeAlias = Callable[[str], list[str]]

# Cutting takes a few times the bytes of the texts, which should stay in the caches of a core.
BLOCK_BYTES: Final = 4 * 1024**2
_SEPARATOR: Final = 0
# To analyse so many new words takes less than a tenth of a second.
RUNS_PER_CHECK: Final = 2**12

# Longer runs are rarely words, and would only bloat an index.
TOKEN_CHARACTERS_MAX = 40
STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
    "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
    "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip

# Stemming is the slowest part by far, and texts repeat their words; 20 MB when full.
_STEMS_MAX: Final = 200_000
WORD: Final = re.compile(r"[^\W_]+")

# Latin letters that no decomposition takes apart.
_LETTERS = {
    "æ": "ae", "ð": "d", "đ": "d", "ħ": "h", "ı": "i", "ĸ": "q", "ł": "l", "ŋ": "n",
    "ø": "o", "œ": "oe", "ß": "ss", "þ": "th", "ŧ": "t",
}  # fmt: skip


def _build_byte_table() -> npt.NDArray[np.uint8]:
    """Each byte of a run in lower case, and every other one as a separator."""
    runs = [chr(byte).lower().encode() if chr(byte).isalnum() else b"\0" for byte in range(128)]
    return np.frombuffer(b"".join(runs) + bytes(range(128, 256)), np.uint8)


_LOWER: Final = _build_byte_table()


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of texts in order: the place of the text of each, and its code.

    `vocabulary` holds the distinct tokens, in the order of their codes.
    """

    texts: Codes
    codes: Codes
    vocabulary: list[str]


def tokenize_texts(
    texts: Values, analyze: Analyzer | None = None, *, check: Callable[[], None] = lambda: None
) -> Tokens:
    """The tokens of all texts; a null has none. `check` is called now and then, and may raise."""
    vocabulary = _TokenEncoder(analyze or analyze_text)
    places: list[Codes] = []
    codes: list[Codes] = []
    done = 0
    for block in split_blocks(texts):
        check()
        runs = split_runs(block)
        run_places = np.repeat(np.arange(done, done + len(block), dtype=np.int32), runs.counts)
        found_places, found = vocabulary.encode_runs(runs.texts, run_places, check)
        places.append(found_places)
        codes.append(found)
        done += len(block)
    return Tokens(_concatenate_codes(places), _concatenate_codes(codes), vocabulary.tokens_by_code)


def _concatenate_codes(parts: list[Codes]) -> Codes:
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def split_blocks(texts: Values, *, rows_max: int = sys.maxsize) -> Iterator[pa.Array]:
    """The texts in pieces of about so many bytes, each at least one text and so many at most."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        if not len(chunk):
            continue
        offsets = offsets_of(chunk)
        start = 0
        while start < len(chunk):
            reach = np.searchsorted(offsets, offsets[start] + BLOCK_BYTES, side="right")
            stop = min(max(int(reach) - 1, start + 1), start + rows_max, len(chunk))
            yield chunk.slice(start, stop - start)
            start = stop


def offsets_of(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Where the bytes of each text start in their buffer, and where those of the last one end."""
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(texts.buffers()[1], kind)
    return offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)


class Runs(NamedTuple):
    """The runs of texts in lower case: how many each text has, and at which byte each starts."""

    counts: npt.NDArray[np.int64]
    # Counted from the first byte of the first text.
    starts: npt.NDArray[np.int64]
    texts: pa.DictionaryArray


def split_runs(texts: pa.Array) -> Runs:
    """The runs of texts."""
    if texts.null_count:
        texts = texts.fill_null("")
    offsets = offsets_of(texts)
    data = texts.buffers()[2]
    if data is None or offsets[-1] == offsets[0]:
        nothing = np.empty(0, np.int64)
        no_runs = pa.array([], pa.utf8()).dictionary_encode()
        return Runs(np.zeros(len(texts), np.int64), nothing, no_runs)
    lower = _LOWER.take(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]])
    offsets = offsets - offsets[0]
    is_run = lower != _SEPARATOR
    is_start = is_run.copy()
    is_start[1:] &= ~is_run[:-1]
    # Texts touch each other in the buffer, but no run reaches from one into the next.
    first_bytes = offsets[:-1][offsets[:-1] < len(lower)]
    is_start[first_bytes] = is_run[first_bytes]
    starts = np.flatnonzero(is_start)
    counts = np.diff(np.searchsorted(starts, offsets))
    kept = lower[is_run]
    ends = np.append((np.cumsum(is_run, dtype=np.int32) - 1)[starts], np.int32(len(kept)))
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(kept)]
    runs = pa.StringArray.from_buffers(len(starts), buffers[1], buffers[2])
    return Runs(counts, starts, runs.dictionary_encode())


class _TokenEncoder:
    """The codes of tokens, and the tokens of the runs that were met."""

    def __init__(self, analyze: Analyzer) -> None:
        self._analyze = analyze
        self.tokens_by_code: list[str] = []
        self._codes: dict[str, int] = {}
        self._of_runs: dict[str, tuple[int, ...]] = {}

    def encode_runs(
        self, runs: pa.DictionaryArray, places: Codes, check: Callable[[], None]
    ) -> tuple[Codes, Codes]:
        """The tokens of runs: the place of each, and its code."""
        distinct: list[tuple[int, ...]] = []
        for start in range(0, len(runs.dictionary), RUNS_PER_CHECK):
            check()
            some = runs.dictionary.slice(start, RUNS_PER_CHECK).to_pylist()
            distinct += map(self._encode_run, some)
        counts = np.fromiter(map(len, distinct), np.int64, len(distinct))
        codes = np.fromiter((code for each in distinct for code in each), np.int32)
        indices = runs.indices.to_numpy()
        if not len(codes):
            return np.empty(0, np.int32), codes
        firsts = np.cumsum(counts) - counts
        if counts.max() == 1:
            is_token = counts.take(indices) > 0
            return places[is_token], codes.take(firsts.take(indices[is_token]))
        repeats = counts.take(indices)
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        found = codes.take(np.repeat(firsts.take(indices), repeats) + within)
        return np.repeat(places, repeats), found

    def _encode_run(self, run: str) -> tuple[int, ...]:
        found = self._of_runs.get(run)
        if found is None:
            found = self._of_runs[run] = tuple(map(self._assign_code, self._analyze(run)))
        return found

    def _assign_code(self, token: str) -> int:
        code = self._codes.get(token)
        if code is None:
            code = self._codes[token] = len(self.tokens_by_code)
            self.tokens_by_code.append(token)
        return code


def analyze_text(text: str) -> list[str]:
    """The tokens of a text, in order and with repetitions."""
    return [_stem_word(word) for word in map(_fold_word, WORD.findall(text)) if word]


def analyze_places(text: str) -> list[str]:
    """The same tokens, and an empty one for each word that is left out."""
    return [word and _stem_word(word) for word in map(_fold_word, WORD.findall(text))]


def split_words(text: str) -> list[str]:
    """The words that tokens are made of, before they are stemmed."""
    return [word for word in map(_fold_word, WORD.findall(text)) if word]


def fold_text(text: str) -> str:
    """A text in lower case without accents."""
    return _without_accents(text.lower())


def _fold_word(word: str) -> str:
    """A word in lower case without accents; empty for one that no index has."""
    folded = fold_text(word) if len(word) <= TOKEN_CHARACTERS_MAX else ""
    return "" if folded in STOP_WORDS else folded


def _without_accents(word: str) -> str:
    return word if word.isascii() else "".join(map(_fold_to_ascii, word))


def _fold_to_ascii(character: str) -> str:
    # Only letters that become plain ASCII are folded: the breve of a Cyrillic й is not an accent.
    apart = unicodedata.normalize("NFKD", _LETTERS.get(character, character))
    letters = "".join(part for part in apart if not unicodedata.combining(part))
    return letters if letters.isascii() else character


def _stem_word(word: str) -> str:
    # Every ending that is taken off is made of letters.
    return word if word[-1].isdigit() else _stem_letters(word)


@lru_cache(_STEMS_MAX)
def _stem_letters(word: str) -> str:
    # The library imports the rules of thirty languages, and most programs stem nothing.
    import snowballstemmer  # noqa: PLC0415

    # A stemmer holds the word it works on, so threads must not share one.
    found: str = snowballstemmer.stemmer("english").stemWord(word)
    return found


def is_within(left: str, right: str, edits_max: int) -> bool:
    """Whether one text becomes the other by at most so many one-character edits (Levenshtein)."""
    if abs(len(left) - len(right)) > edits_max:
        return False
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            replaced = previous[column - 1] + (character != other)
            current.append(min(replaced, previous[column] + 1, current[-1] + 1))
        if min(current) > edits_max:
            return False
        previous = current
    return previous[-1] <= edits_max
