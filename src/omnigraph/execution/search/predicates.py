"""Which nodes have a text with a token of a query, by the index of the whole field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.execution.expressions import Params, constant
from omnigraph.execution.pushdown import conjuncts
from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.bm25 import matching_rows
from omnigraph.execution.search.fields import fields_of
from omnigraph.execution.search.segment_types import Mask, RowIds
from omnigraph.execution.source import Numbers
from omnigraph.execution.text_predicates import edits_of
from omnigraph.execution.view import View
from omnigraph.query.typed import Expr, TextMatch

if TYPE_CHECKING:
    from omnigraph.execution.reading import Reading

# So few texts are looked at one by one, unless the field is in memory already.
FEW_TEXTS: Final = 1_000
# And so is a small part of all of them: to make the field would take many times as long.
SMALL_SHARE: Final = 0.1


def text_mask(
    asked: Asked,
    match: TextMatch,
    params: Params,
    *,
    row_ids: RowIds,
    check: Callable[[], None] = lambda: None,
) -> Mask:
    """Which rows of a table satisfy a text predicate; all of them are in the version asked for."""
    field = fields_of(asked.view).text(asked, check=check)
    found = matching_rows(field, *_query(match, params))
    return found.take(field.places(row_ids)) if len(row_ids) else np.empty(0, np.bool_)


def searched(match: TextMatch, numbers: Numbers, reading: Reading) -> Mask | None:
    """Which nodes satisfy a text predicate; None if it is cheaper to look at their texts."""
    type_name = reading.nodes_of[match.variable]
    asked = Asked(reading.view, type_name, match.property)
    if not is_answered(asked, len(numbers)):
        return None
    row_ids = reading.source.nodes(type_name).row_ids(numbers)
    return text_mask(asked, match, reading.params, row_ids=row_ids, check=reading.budget.check)


def is_answered(asked: Asked, count: int) -> bool:
    """Whether the field answers for so many texts, rather than a look at each of them."""
    fields = fields_of(asked.view)
    are_many = count > max(FEW_TEXTS, SMALL_SHARE * asked.pin.rows)
    return fields.has(asked) or (are_many and fields.keeps_texts(asked))


def text_candidates(
    view: View, type_name: str, conditions: Sequence[Expr], params: Params
) -> tuple[RowIds | None, list[Expr]]:
    """The rows that satisfy all text predicates among conditions, and the other conditions.

    Without a text predicate there are no such rows: every row is a candidate. A predicate about
    more texts than are kept in memory counts among the others.
    """
    left: list[Expr] = []
    row_ids: RowIds | None = None
    for condition in conjuncts(conditions):
        asked = _asked(view, type_name, condition)
        if asked is None or not isinstance(condition, TextMatch):
            left.append(condition)
        elif row_ids is None:
            row_ids = _matching(asked, condition, params)
        else:
            row_ids = row_ids[text_mask(asked, condition, params, row_ids=row_ids)]
    return row_ids, left


def _asked(view: View, type_name: str, condition: Expr) -> Asked | None:
    """The field that a text predicate is about, if it is kept in memory."""
    if not isinstance(condition, TextMatch):
        return None
    asked = Asked(view, type_name, condition.property)
    return asked if fields_of(view).keeps_texts(asked) else None


def _matching(asked: Asked, match: TextMatch, params: Params) -> RowIds:
    field = fields_of(asked.view).text(asked)
    found = matching_rows(field, *_query(match, params))
    parts = [
        segment.row_ids[found[start:stop] if alive is None else found[start:stop] & alive]
        for segment, alive, start, stop in zip(
            field.segments, field.alive, field.starts, field.starts[1:], strict=False
        )
    ]
    return np.sort(np.concatenate(parts))


def _query(match: TextMatch, params: Params) -> tuple[str | None, int]:
    edits = edits_of(match, lambda expr: constant(expr, params))
    query = constant(match.query, params)
    assert query is None or isinstance(query, str)
    return query, edits
