"""Text as full-text search sees it: words without case, accents, stop words and endings."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Longer runs are rarely words, and would only bloat an index.
TOKEN_CHARACTERS_MAX = 40
STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
    "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
    "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip
# Stemming is the slowest part by far, and texts repeat their words; 20 MB when full.
_STEMS_MAX: Final = 200_000
_WORD = re.compile(r"[^\W_]+")
# Latin letters that no decomposition takes apart.
_LETTERS = {
    "æ": "ae", "ð": "d", "đ": "d", "ħ": "h", "ı": "i", "ĸ": "q", "ł": "l", "ŋ": "n",
    "ø": "o", "œ": "oe", "ß": "ss", "þ": "th", "ŧ": "t",
}  # fmt: skip


def analyze_text(text: str) -> list[str]:
    """The tokens of a text, in order and with repetitions."""
    words = (word for word in _WORD.findall(text) if len(word) <= TOKEN_CHARACTERS_MAX)
    folded = (_without_accents(word.lower()) for word in words)
    return [_stem_word(word) for word in folded if word and word not in STOP_WORDS]


def _without_accents(word: str) -> str:
    return word if word.isascii() else "".join(map(_fold_to_ascii, word))


def _fold_to_ascii(character: str) -> str:
    # Only letters that become plain ASCII are folded: the breve of a Cyrillic й is no accent.
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
