"""Text predicates by a look at each text: words, all of them, phrases, beginnings, near words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ast import TextFunction
from omnigraph.query.typed_tree import Expr, TextMatch, Value
from omnigraph.rows.comparison import Poll, Values, flatten_chunks, skip_poll, to_numpy
from omnigraph.rows.stoppable_call import call_stoppably
from omnigraph.rows.text_analysis import (
    Tokens,
    analyze_places,
    analyze_text,
    fold_text,
    split_words,
    tokenize_texts,
)
from omnigraph.rows.text_predicates import edits_of
from omnigraph.rows.vocabulary import find_near_tokens

_Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What a text predicate looks for in one request."""

    function: TextFunction
    text: str
    edits: int = 0

    @property
    def tokens(self) -> list[str]:
        """The distinct words to look for, stemmed, in their order."""
        return sorted(set(analyze_text(self.text)))

    @property
    def phrase(self) -> list[tuple[int, str]]:
        """The words in their sequence, each with the number of words before it from the first."""
        found = [(at, token) for at, token in enumerate(analyze_places(self.text)) if token]
        return [(at - found[0][0], token) for at, token in found]

    @property
    def prefix(self) -> str:
        """How a word begins, in the letters that words are compared by."""
        return fold_text(self.text)


def read_text_query(match: TextMatch, constant: Callable[[Expr], Value]) -> TextQuery | None:
    """What a predicate looks for; None if that is null. A bad option is refused either way."""
    edits = edits_of(match, constant)
    text = constant(match.query)
    assert text is None or isinstance(text, str)
    return None if text is None else TextQuery(match.function, text, edits)


def match_texts(texts: Values, query: TextQuery, poll: Poll = skip_poll) -> pa.Array:
    """Which texts satisfy a predicate; null where a text is."""
    # Texts repeat, and cutting one into words costs more than finding whether it is new.
    distinct = call_stoppably(
        lambda: flatten_chunks(texts).dictionary_encode(), poll, nbytes=texts.nbytes
    )
    found = _MATCHERS[query.function](distinct.dictionary, query, poll)
    return pa.array(found).take(distinct.indices)


def _match_any(texts: pa.Array, query: TextQuery, poll: Poll) -> _Mask:
    tokens = tokenize_texts(texts, check=poll)
    vocabulary = pa.array(tokens.vocabulary, pa.utf8())
    return _find_texts_with(
        tokens, find_near_tokens(vocabulary, query.tokens, query.edits, poll), len(texts)
    )


def _match_all(texts: pa.Array, query: TextQuery, poll: Poll) -> _Mask:
    tokens, wanted = tokenize_texts(texts, check=poll), query.tokens
    codes = {token: code for code, token in enumerate(tokens.vocabulary)}
    found = np.full(len(texts), bool(wanted))
    for token in wanted:
        poll()
        wanted_codes = [codes[token]] if token in codes else []
        found &= _find_texts_with(tokens, wanted_codes, len(texts))
    return found


def _match_prefix(texts: pa.Array, query: TextQuery, poll: Poll) -> _Mask:
    tokens = tokenize_texts(texts, split_words, check=poll)
    is_wanted = pc.starts_with(pa.array(tokens.vocabulary, pa.utf8()), query.prefix)
    codes = np.flatnonzero(to_numpy(is_wanted))
    return _find_texts_with(tokens, codes if query.prefix else [], len(texts))


def _match_phrase(texts: pa.Array, query: TextQuery, poll: Poll) -> _Mask:
    found, wanted = np.zeros(len(texts), np.bool_), query.phrase
    if not wanted:
        return found
    tokens = tokenize_texts(texts, analyze_places, check=poll)
    codes = {token: code for code, token in enumerate(tokens.vocabulary)}
    last = wanted[-1][0]
    starts = np.arange(len(tokens.codes) - last) if len(tokens.codes) > last else np.arange(0)
    for distance, token in wanted:
        poll()
        starts = starts[tokens.codes.take(starts + distance) == codes.get(token, -1)]
    # The texts follow each other, and no phrase reaches from one into the next.
    starts = starts[tokens.texts.take(starts) == tokens.texts.take(starts + last)]
    found[tokens.texts.take(starts)] = True
    return found


def _find_texts_with(tokens: Tokens, codes: list[int] | npt.NDArray[np.int64], count: int) -> _Mask:
    """Which texts have one of some tokens."""
    found = np.zeros(count, np.bool_)
    is_wanted = np.zeros(len(tokens.vocabulary), np.bool_)
    is_wanted[np.array(codes, np.int64)] = True
    found[tokens.texts[is_wanted.take(tokens.codes)]] = True
    return found


_MATCHERS: Final[dict[TextFunction, Callable[[pa.Array, TextQuery, Poll], _Mask]]] = {
    TextFunction.SEARCH: _match_any,
    TextFunction.MATCH_TEXT: _match_any,
    TextFunction.FUZZY: _match_any,
    TextFunction.ALL_WORDS: _match_all,
    TextFunction.PREFIX: _match_prefix,
    TextFunction.PHRASE: _match_phrase,
}
