"""Tests of text, a column at a time: parts and prefixes, and the options of text predicates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import repeat
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExecutionError
from omnigraph.query.ast import TextFunction
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import Expr, TextMatch, Value
from omnigraph.rows.comparison import Poll, Values, flatten_chunks, skip_poll, to_numpy
from omnigraph.rows.text_analysis import BLOCK_BYTES, split_blocks

# How many edits `fuzzy` forgives when it does not say.
_FUZZY_EDITS = 2
_OPTION_MAX = 2**32
# One pattern looks for so many parts in the time of one or two; of 3,000 it takes a thousand times
# as long, because its states no longer fit the memory that Arrow gives it.
_PATTERN_PARTS_MAX: Final = 64
_PATTERN_LETTERS_MAX: Final = 1_024
# Pairs of texts that Python compares between two polls: each may take a microsecond.
_PAIRS_PER_POLL: Final = 2**14


def contains(text: str | Values, part: str | Values, poll: Poll = skip_poll) -> Values:
    """Where the text contains the part, letter for letter; null where either is null."""
    if isinstance(part, str) and not isinstance(text, str):
        return _test_blocks(text, lambda block: pc.match_substring(block, part), poll)
    return _test_pairs(operator.contains, text, part, poll)


def contains_any(texts: Values, parts: Sequence[str], poll: Poll = skip_poll) -> Values:
    """Where the text contains one of the parts, of which there is at least one; nulls stay null."""
    found = []
    for group in _group_parts(parts):
        poll()
        pattern = "|".join(map(re.escape, group))
        found.append(
            contains(texts, group[0], poll)
            if len(group) == 1
            else _test_blocks(texts, partial(pc.match_substring_regex, pattern=pattern), poll)
        )
    return reduce(pc.or_, found)


def has_prefix(text: str | Values, prefix: str | Values, poll: Poll = skip_poll) -> Values:
    """Where the text starts with the prefix, letter for letter; null where either is null."""
    if isinstance(prefix, str) and not isinstance(text, str):
        return _test_blocks(text, lambda block: pc.starts_with(block, prefix), poll)
    return _test_pairs(str.startswith, text, prefix, poll)


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


def _group_parts(parts: Sequence[str]) -> Iterator[list[str]]:
    """The distinct parts, so few at a time that a pattern of them stays small."""
    group: list[str] = []
    for part in dict.fromkeys(parts):
        letters = sum(map(len, group)) + len(part)
        if group and (len(group) == _PATTERN_PARTS_MAX or letters > _PATTERN_LETTERS_MAX):
            yield group
            group = []
        group.append(part)
    yield group


def _test_blocks(texts: Values, test: Callable[[Values], Values], poll: Poll) -> Values:
    """A test of texts, of so many bytes between two polls."""
    if texts.nbytes <= BLOCK_BYTES:
        return test(texts)
    found = []
    for block in split_blocks(texts):
        poll()
        found.append(test(block))
    return pa.chunked_array(found, pa.bool_())


def _test_pairs(
    test: Callable[[str, str], bool], left: str | Values, right: str | Values, poll: Poll
) -> Values:
    """A test of Python's own texts: Arrow has none whose second operand is a column."""
    sides = [flatten_chunks(side) if isinstance(side, Values) else side for side in (left, right)]
    columns = [side for side in sides if not isinstance(side, str)]
    longest = max(columns, key=lambda column: column.nbytes)
    found, start = [], 0
    for block in split_blocks(longest, rows_max=_PAIRS_PER_POLL):
        poll()
        pairs = [side if isinstance(side, str) else side.slice(start, len(block)) for side in sides]
        found.append(_test_few_pairs(test, pairs))
        start += len(block)
    return pa.chunked_array(found, pa.bool_())


def _test_few_pairs(test: Callable[[str, str], bool], sides: Sequence[str | pa.Array]) -> pa.Array:
    columns = [side for side in sides if not isinstance(side, str)]
    is_known = reduce(pc.and_, [column.is_valid() for column in columns])
    texts = [
        repeat(side) if isinstance(side, str) else side.fill_null("").to_pylist() for side in sides
    ]
    found = np.fromiter(map(test, *texts), np.bool_, len(columns[0]))
    return pa.array(found, pa.bool_(), mask=to_numpy(pc.invert(is_known)))
