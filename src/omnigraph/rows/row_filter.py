"""Which rows satisfy conditions, for any provider of columns.

A provider may answer a condition without fetching values: by raw numbers, codes of texts or an
index. All other conditions are evaluated on its columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.typed_tree import Expr
from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.evaluator import Params, RowColumns, evaluate
from omnigraph.rows.pushdown import iter_conjuncts
from omnigraph.rows.row_order import RowIndices

Mask: TypeAlias = npt.NDArray[np.bool_]

# When so small a part of the rows is left, further conditions are tested at those alone.
_NARROWED_FACTOR: Final = 4


class FilterColumns(RowColumns, Protocol):
    """Rows of which some are selected by conditions."""

    def evaluate_directly(self, condition: Expr, params: Params) -> Mask | None:
        """Where a condition is true, without its values; None if they have to be fetched."""

    def take(self, places: RowIndices) -> FilterColumns:
        """Some of the rows."""


def compute_mask(
    conditions: Iterable[Expr], rows: FilterColumns, params: Params, *, among: Mask | None = None
) -> Mask:
    """Which rows satisfy all conditions, and are among some; unknown is not true."""
    mask, some = among, rows
    places: RowIndices | None = None
    for condition in iter_conjuncts(conditions):
        if mask is not None:
            kept = np.count_nonzero(mask)
            if not kept:
                break
            if kept * _NARROWED_FACTOR <= some.num_rows:
                places = np.flatnonzero(mask)
                some = rows.take(places)
        truth = evaluate_condition(condition, some, params)
        if mask is None:
            mask = truth
        elif places is None:
            mask = mask & truth
        else:
            # The rows that were left at the last narrowing, of which more are dropped by now.
            kept_places = places[truth & mask.take(places)]
            mask = np.zeros(rows.num_rows, np.bool_)
            mask[kept_places] = True
    return np.ones(rows.num_rows, np.bool_) if mask is None else mask


def evaluate_condition(condition: Expr, rows: FilterColumns, params: Params) -> Mask:
    """Where one condition is true."""
    found = rows.evaluate_directly(condition, params)
    return evaluate_truth(condition, rows, params) if found is None else found


def evaluate_truth(condition: Expr, rows: RowColumns, params: Params) -> Mask:
    """Where a condition is true by the values of its columns."""
    found = evaluate(condition, rows, params)
    if isinstance(found, pa.Scalar):
        return np.full(rows.num_rows, found.as_py() is True)
    mask: Mask = to_numpy(found)
    return mask
