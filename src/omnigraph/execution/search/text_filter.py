"""Which nodes have a text with a token of a query, by the index of the whole field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.execution.search.bm25 import match_rows
from omnigraph.execution.search.field_cache import field_cache_of
from omnigraph.execution.search.field_index import Mask, RowIds
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.sources.graph_source import DenseIds, Nodes
from omnigraph.query.typed_tree import Expr, TextMatch
from omnigraph.rows.evaluator import Params, evaluate_constant, poll_of
from omnigraph.rows.pushdown import iter_conjuncts
from omnigraph.rows.text_predicates import edits_of
from omnigraph.rows.view import View

# So few texts are examined one by one, unless the field is in memory already.
FEW_TEXTS: Final = 1_000
# And so is a small part of all of them: to make the field would take many times as long.
SMALL_SHARE: Final = 0.1


def match_texts(
    asked: FieldRef,
    match: TextMatch,
    params: Params,
    *,
    row_ids: RowIds,
) -> Mask:
    """Which rows of a table satisfy a text predicate; all of them are in the version asked for."""
    field = field_cache_of(asked.view).get_texts(asked, check=poll_of(params))
    found = match_rows(field, *_evaluate_query(match, params))
    return found.take(field.find_row_indices(row_ids)) if len(row_ids) else np.empty(0, np.bool_)


def search_nodes(
    asked: FieldRef, match: TextMatch, params: Params, nodes: Nodes, numbers: DenseIds
) -> Mask | None:
    """Which nodes satisfy a text predicate; None if it is cheaper to look at their texts."""
    if not _should_use_index(asked, len(numbers)):
        return None
    return match_texts(asked, match, params, row_ids=nodes.fetch_row_ids(numbers))


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
    more texts than are kept in memory counts among the others.
    """
    left: list[Expr] = []
    row_ids: RowIds | None = None
    for condition in iter_conjuncts(conditions):
        asked = _find_field_ref(view, type_name, condition)
        if asked is None or not isinstance(condition, TextMatch):
            left.append(condition)
        elif row_ids is None:
            row_ids = _find_matching_rows(asked, condition, params)
        else:
            row_ids = row_ids[match_texts(asked, condition, params, row_ids=row_ids)]
    return row_ids, left


def _find_field_ref(view: View, type_name: str, condition: Expr) -> FieldRef | None:
    """The field that a text predicate is about, if it is kept in memory."""
    if not isinstance(condition, TextMatch):
        return None
    asked = FieldRef(view, type_name, condition.property)
    return asked if field_cache_of(view).can_keep_texts(asked) else None


def _find_matching_rows(asked: FieldRef, match: TextMatch, params: Params) -> RowIds:
    field = field_cache_of(asked.view).get_texts(asked, check=poll_of(params))
    found = match_rows(field, *_evaluate_query(match, params))
    parts = [
        segment.row_ids[found[start:stop] if alive is None else found[start:stop] & alive]
        for segment, alive, start, stop in zip(
            field.segments, field.alive, field.starts, field.starts[1:], strict=False
        )
    ]
    return np.sort(np.concatenate(parts))


def _evaluate_query(match: TextMatch, params: Params) -> tuple[str | None, int]:
    edits = edits_of(match, lambda expr: evaluate_constant(expr, params))
    query = evaluate_constant(match.query, params)
    assert query is None or isinstance(query, str)
    return query, edits
