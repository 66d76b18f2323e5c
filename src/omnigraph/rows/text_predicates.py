"""Tests of text, a column at a time: parts, prefixes, and words as full-text search sees them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.query.ast import TextFunction
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import Expr, TextMatch, Value
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.text_analysis import analyze_text, tokenize_texts
from omnigraph.rows.vocabulary import find_near_tokens

# How many edits `fuzzy` forgives when it does not say.
_FUZZY_EDITS = 2
_OPTION_MAX = 2**32


def contains(text: str | Values, part: str | Values) -> Values:
    """Where the text contains the part, letter for letter; null where either is null."""
    if isinstance(part, str) and not isinstance(text, str):
        return pc.match_substring(text, part)
    return _test_pairs(operator.contains, text, part)


def has_prefix(text: str | Values, prefix: str | Values) -> Values:
    """Where the text starts with the prefix, letter for letter; null where either is null."""
    if isinstance(prefix, str) and not isinstance(text, str):
        return pc.starts_with(text, prefix)
    return _test_pairs(str.startswith, text, prefix)


def matches(texts: Values, query: str | None, edits: int) -> pa.Array:
    """Which texts have a token within so many edits of a token of the query; never null."""
    wanted = sorted(set(analyze_text(query or "")))
    found = np.zeros(len(texts), np.bool_)
    if wanted and len(texts):
        # Texts repeat, and cutting one into words costs more than telling whether it was met.
        distinct = flatten_chunks(texts).dictionary_encode()
        tokens = tokenize_texts(distinct.dictionary)
        is_wanted = np.zeros(len(tokens.vocabulary), np.bool_)
        is_wanted[find_near_tokens(pa.array(tokens.vocabulary, pa.utf8()), wanted, edits)] = True
        has_one = np.zeros(len(distinct.dictionary) + 1, np.bool_)
        has_one[tokens.texts[is_wanted.take(tokens.codes)]] = True
        # A null has the index after all others.
        found = has_one.take(to_numpy(distinct.indices.fill_null(len(distinct.dictionary))))
    return pa.array(found)


def require_valid_options(conditions: Iterable[Expr], constant: Callable[[Expr], Value]) -> None:
    """Refuse a bad option of a text predicate, whether or not a row would meet it."""
    for condition in conditions:
        for part in iter_subexpressions(condition):
            if isinstance(part, TextMatch):
                edits_of(part, constant)


def edits_of(match: TextMatch, constant: Callable[[Expr], Value]) -> int:
    """How many edits a text predicate forgives."""
    default = _FUZZY_EDITS if match.function is TextFunction.FUZZY else 0
    return evaluate_option(match.edits, constant, default=default, minimum=0)


def evaluate_option(
    expr: Expr | None, constant: Callable[[Expr], Value], *, default: int, minimum: int
) -> int:
    """The value of an optional argument of a search function."""
    value = default if expr is None else constant(expr)
    if not isinstance(value, int) or not minimum <= value < _OPTION_MAX:
        raise ExecutionError(f"a search option must be at least {minimum} and fit 32 bits: {value}")
    return value


def _test_pairs(
    test: Callable[[str, str], bool], left: str | Values, right: str | Values
) -> pa.Array:
    """A test of Python's own texts: Arrow has none whose second operand is a column."""
    sides = [flatten_chunks(side) if isinstance(side, Values) else side for side in (left, right)]
    columns = [side for side in sides if not isinstance(side, str)]
    is_known = reduce(pc.and_, [column.is_valid() for column in columns])
    texts = [
        repeat(side) if isinstance(side, str) else side.fill_null("").to_pylist() for side in sides
    ]
    found = np.fromiter(map(test, *texts), np.bool_, len(columns[0]))
    return pa.array(found, pa.bool_(), mask=to_numpy(pc.invert(is_known)))
