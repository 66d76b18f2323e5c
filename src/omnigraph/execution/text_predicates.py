"""Tests of text, a column at a time: parts, prefixes, and words as full-text search sees them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cache, reduce
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.execution.exact import Values, flat, numpy_of
from omnigraph.execution.text import analyze, is_within
from omnigraph.query.ast import TextFunction
from omnigraph.query.typed import Expr, TextMatch, Value
from omnigraph.query.walk import subexpressions

# How many edits `fuzzy` forgives when it does not say.
_FUZZY_EDITS = 2
_OPTION_MAX = 2**32


def contains(text: str | Values, part: str | Values) -> Values:
    """Where the text contains the part, letter for letter; null where either is null."""
    if isinstance(part, str) and not isinstance(text, str):
        return pc.match_substring(text, part)
    return _pairwise(operator.contains, text, part)


def starts_with(text: str | Values, prefix: str | Values) -> Values:
    """Where the text starts with the prefix, letter for letter; null where either is null."""
    if isinstance(prefix, str) and not isinstance(text, str):
        return pc.starts_with(text, prefix)
    return _pairwise(str.startswith, text, prefix)


def matches(texts: Values, query: str | None, edits: int) -> pa.Array:
    """Which texts have a token within so many edits of a token of the query; never null."""
    wanted = sorted(set(analyze(query or "")))

    @cache
    def is_wanted(token: str) -> bool:
        return any(is_within(token, each, edits) for each in wanted)

    # Words are stemmed by Python code, so every distinct text is looked at only once.
    distinct = flat(texts).dictionary_encode()
    found = [
        text is not None and any(map(is_wanted, analyze(text)))
        for text in (distinct.dictionary.to_pylist() if wanted else [])
    ]
    if not any(found):
        return pa.repeat(pa.scalar(False), len(texts))
    return pa.array(found, pa.bool_()).take(distinct.indices).fill_null(False)


def check_options(conditions: Iterable[Expr], constant: Callable[[Expr], Value]) -> None:
    """Refuse a bad option of a text predicate, whether or not a row would meet it."""
    for condition in conditions:
        for part in subexpressions(condition):
            if isinstance(part, TextMatch):
                edits_of(part, constant)


def edits_of(match: TextMatch, constant: Callable[[Expr], Value]) -> int:
    """How many edits a text predicate forgives."""
    if match.edits is None:
        return _FUZZY_EDITS if match.function is TextFunction.FUZZY else 0
    value = constant(match.edits)
    if not isinstance(value, int) or not 0 <= value < _OPTION_MAX:
        raise ExecutionError(f"a search option must be at least 0 and fit 32 bits: {value}")
    return value


def _pairwise(
    test: Callable[[str, str], bool], left: str | Values, right: str | Values
) -> pa.Array:
    """A test of Python's own texts: Arrow has none whose second operand is a column."""
    sides = [flat(side) if isinstance(side, Values) else side for side in (left, right)]
    columns = [side for side in sides if not isinstance(side, str)]
    is_known = reduce(pc.and_, [column.is_valid() for column in columns])
    texts = [
        repeat(side) if isinstance(side, str) else side.fill_null("").to_pylist() for side in sides
    ]
    found = np.fromiter(map(test, *texts), np.bool_, len(columns[0]))
    return pa.array(found, pa.bool_(), mask=numpy_of(pc.invert(is_known)))
