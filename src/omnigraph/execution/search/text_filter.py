"""Which nodes have a text that satisfies a predicate, by the index of the whole field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.search.bm25 import TextField
from omnigraph.execution.search.field_cache import field_cache_of
from omnigraph.execution.search.field_index import Mask, RowIds
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.text_segment import NO_TEXT, TextSegment
from omnigraph.execution.sources.graph_source import DenseIds, Nodes
from omnigraph.query.ast import TextFunction
from omnigraph.query.typed_tree import Expr, TextMatch
from omnigraph.rows.comparison import Poll, skip_poll, to_numpy
from omnigraph.rows.evaluator import Params, evaluate_constant, poll_of
from omnigraph.rows.pushdown import iter_conjuncts
from omnigraph.rows.text_search import TextQuery, match_texts, read_text_query
from omnigraph.rows.view import View
from omnigraph.rows.vocabulary import ABSENT

# So few texts are examined one by one, unless the field is in memory already.
FEW_TEXTS: Final = 1_000
# And so is a small part of all of them: to make the field would take many times as long.
SMALL_SHARE: Final = 0.1
# So many texts that may have a phrase are read at once.
_PHRASE_TEXTS: Final = 2**16


def match_rows(field: TextField, query: TextQuery, poll: Poll = skip_poll) -> Mask:
    """Which rows satisfy a predicate, by place; of a phrase, which have all of its words."""
    if query.function is TextFunction.PREFIX:
        return _find_prefixed(field, query.prefix)
    tokens = query.tokens
    if query.function in (TextFunction.ALL_WORDS, TextFunction.PHRASE):
        parts = (_find_near(field, [token], 0, poll) for token in tokens)
        return reduce(np.logical_and, parts) if tokens else _find_near(field, [], 0, poll)
    return _find_near(field, tokens, query.edits, poll)


def _find_near(field: TextField, wanted: list[str], edits: int, poll: Poll) -> Mask:
    """The rows with a token within so many edits of one of some others."""

    def find_codes(segment: TextSegment) -> Iterable[int]:
        if edits:
            return map(int, segment.vocabulary.find_near(wanted, edits, poll))
        return [code for code in map(segment.vocabulary.find_code, wanted) if code != ABSENT]

    found = np.zeros(field.starts[-1], np.bool_)
    for start, segment in zip(field.starts, field.segments, strict=False):
        poll()
        found[segment.find_rows_with(find_codes(segment)) + np.int64(start)] = True
    return found


def _find_prefixed(field: TextField, prefix: str) -> Mask:
    found = np.zeros(field.starts[-1], np.bool_)
    for start, segment in zip(field.starts, field.segments, strict=False):
        codes = segment.vocabulary.find_prefixed(prefix) if prefix else range(0)
        found[segment.find_rows_with(codes) + np.int64(start)] = True
    return found


def search_rows(asked: FieldRef, query: TextQuery, params: Params, *, row_ids: RowIds) -> pa.Array:
    """Where rows of the version asked for satisfy a predicate, or have all words of a phrase.

    It is null where the text is.
    """
    if not len(row_ids):
        return pa.array([], pa.bool_())
    asked = _choose_words(asked, query)
    field = field_cache_of(asked.view).get_texts(asked, check=poll_of(params))
    places = field.find_row_indices(row_ids)
    is_null = np.concatenate([segment.lengths == NO_TEXT for segment in field.segments])
    if not len(is_null):
        return pa.nulls(len(row_ids), pa.bool_())
    # A row that the version does not have any more has no place.
    mask = is_null.take(places) | (places < 0)
    return pa.array(match_rows(field, query, poll_of(params)).take(places), mask=mask)


def search_nodes(
    asked: FieldRef, match: TextMatch, params: Params, nodes: Nodes, numbers: DenseIds
) -> pa.Array | None:
    """Where nodes satisfy a predicate, null where the text is; None to look at their texts."""
    query = read_text_query(match, lambda expr: evaluate_constant(expr, params))
    if query is None:
        return pa.nulls(len(numbers), pa.bool_())
    if not _should_use_index(_choose_words(asked, query), len(numbers)):
        return None
    found = search_rows(asked, query, params, row_ids=nodes.fetch_row_ids(numbers))
    if query.function is not TextFunction.PHRASE:
        return found
    is_found, poll = to_numpy(found).copy(), poll_of(params)
    candidates = np.flatnonzero(is_found)
    for start in range(0, len(candidates), _PHRASE_TEXTS):
        poll()
        at = candidates[start : start + _PHRASE_TEXTS]
        texts = nodes.fetch_values(match.property, numbers[at])
        is_found[at] = to_numpy(match_texts(texts, query, poll))
    return pa.array(is_found, mask=to_numpy(found.is_null()))


def _choose_words(asked: FieldRef, query: TextQuery) -> FieldRef:
    """The field of the words as they are written, if a predicate is about them."""
    return replace(asked, is_stemmed=query.function is not TextFunction.PREFIX)


def _should_use_index(asked: FieldRef, count: int) -> bool:
    """Whether the field answers for so many texts, rather than a look at each of them."""
    fields = field_cache_of(asked.view)
    are_many = count > max(FEW_TEXTS, SMALL_SHARE * asked.pin.rows)
    return fields.has_field(asked) or (are_many and fields.can_keep_texts(asked))


def find_text_candidates(
    view: View, type_name: str, conditions: Sequence[Expr], params: Params
) -> tuple[RowIds | None, list[Expr]]:
    """The rows that satisfy all text predicates among conditions, and the other conditions.

    Without a text predicate there are no such rows: every row is a candidate. A predicate about
    more texts than are kept in memory counts among the others, and so does a phrase, of which the
    rows have all words.
    """
    left: list[Expr] = []
    row_ids: RowIds | None = None
    for condition in iter_conjuncts(conditions):
        query = _read_indexed_query(view, type_name, condition, params)
        if query is None or not isinstance(condition, TextMatch):
            left.append(condition)
            continue
        asked = FieldRef(view, type_name, condition.property)
        if row_ids is None:
            row_ids = _find_matching_rows(asked, query, params)
        else:
            row_ids = row_ids[to_numpy(search_rows(asked, query, params, row_ids=row_ids))]
        if query.function is TextFunction.PHRASE:
            left.append(condition)
    return row_ids, left


def _read_indexed_query(
    view: View, type_name: str, condition: Expr, params: Params
) -> TextQuery | None:
    """What a text predicate looks for, if its field is kept in memory."""
    if not isinstance(condition, TextMatch):
        return None
    query = read_text_query(condition, lambda expr: evaluate_constant(expr, params))
    if query is None:
        return None
    asked = _choose_words(FieldRef(view, type_name, condition.property), query)
    return query if field_cache_of(view).can_keep_texts(asked) else None


def _find_matching_rows(asked: FieldRef, query: TextQuery, params: Params) -> RowIds:
    asked = _choose_words(asked, query)
    field = field_cache_of(asked.view).get_texts(asked, check=poll_of(params))
    found = match_rows(field, query, poll_of(params))
    parts = [
        segment.row_ids[found[start:stop] if alive is None else found[start:stop] & alive]
        for segment, alive, start, stop in zip(
            field.segments, field.alive, field.starts, field.starts[1:], strict=False
        )
    ]
    return np.sort(np.concatenate(parts))
