"""Equality between the rows of two components: values to numbers, numbers to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.ast import CompareOp
from omnigraph.query.tree_walk import variables_of
from omnigraph.query.typed_tree import Compare, Constant, Expr, Member, PropertyValue
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import (
    Values,
    comparable_type_of,
    flatten_chunks,
    to_comparable,
    to_numpy,
)
from omnigraph.rows.evaluator import evaluate
from omnigraph.schema.property_types import ListType, PropertyType, Scalar
from omnigraph.sorted_search import find_positions

_LOW_BITS = np.int64(32)
_LOW_MASK = np.int64(2**32 - 1)


@dataclass(frozen=True, slots=True)
class Equality:
    """Two expressions that must be equal: one over the rows, one over the new component.

    Both become `kind` to be looked up; where that rounds, `is_exact` is false, and the condition
    itself has to be tested too.
    """

    left: Expr
    right: Expr
    kind: pa.DataType
    is_exact: bool
    # The type of a list of such values, if the first node of the component has them.
    list_type: PropertyType | None = None

    def compute_left(self, context: ExecutionContext, batch: Batch) -> pa.Array:
        """The values of the rows there are."""
        return _compute_keys(self.left, context, batch, self.kind)

    def build_membership(self, context: ExecutionContext, batch: Batch) -> Expr | None:
        """The condition that the first node of the component has a value of some rows."""
        if self.list_type is None:
            return None
        values = self.compute_left(context, batch).drop_null().unique().to_pylist()
        return Member(self.right, Constant(tuple(values), self.list_type))

    def compute_right(self, context: ExecutionContext, batch: Batch) -> pa.Array:
        """The values of the rows of the new component."""
        return _compute_keys(self.right, context, batch, self.kind)


def equality_of(condition: Expr, own: frozenset[str], root: str) -> Equality | None:
    """The equality that a condition states between the variables of a component and others.

    `root` is the variable that the component starts with.
    """
    if not isinstance(condition, Compare) or condition.op is not CompareOp.EQ:
        return None
    for left, right in ((condition.left, condition.right), (condition.right, condition.left)):
        if (
            variables_of(right)
            and variables_of(right) <= own
            and variables_of(left)
            and not variables_of(left) & own
        ):
            return _build_equality(left, right, root)
    return None


class JoinKeys:
    """The rows of a component by the values of their keys."""

    def __init__(
        self, context: ExecutionContext, equalities: Sequence[Equality], other: Batch
    ) -> None:
        self._context = context
        self._equalities = equalities
        self._dictionaries: list[pa.Array] = []
        # The combinations of the codes so far with those of each further key, ascending.
        self._combinations: list[RowIndices] = []
        codes = self._build(other)
        known = np.flatnonzero(codes >= 0)
        count = int(codes.max(initial=-1)) + 1
        # The last place is for values that the component does not have.
        self._counts = np.bincount(codes.take(known), minlength=count + 1)
        self._firsts = np.cumsum(self._counts) - self._counts
        ordered = (codes.take(known) << _LOW_BITS) | known
        ordered.sort()
        self._order: RowIndices = ordered & _LOW_MASK

    def encode_rows(self, batch: Batch) -> RowIndices:
        """A number for the key of each row; that of the last place if no row has it."""
        found: RowIndices | None = None
        for number, equality in enumerate(self._equalities):
            dictionary = self._dictionaries[number]
            values = equality.compute_left(self._context, batch)
            indices = pc.index_in(values, value_set=dictionary)
            codes = to_numpy(indices.fill_null(-1)).astype(np.int64)
            found = codes if found is None else self._combine_codes(found, codes, number)
        assert found is not None
        return np.where(found < 0, len(self._counts) - 1, found)

    def count_rows(self, codes: RowIndices) -> RowIndices:
        """How many rows of the component have each key."""
        return self._counts.take(codes)

    def find_rows(self, codes: RowIndices, within: RowIndices) -> RowIndices:
        """The row of the component that is so far into those of a key."""
        return self._order.take(self._firsts.take(codes) + within)

    def _build(self, other: Batch) -> RowIndices:
        found: RowIndices | None = None
        for equality in self._equalities:
            encoded = equality.compute_right(self._context, other).dictionary_encode()
            self._dictionaries.append(encoded.dictionary)
            codes = to_numpy(encoded.indices.fill_null(-1)).astype(np.int64)
            if found is None:
                found = codes
            else:
                together = _pack_codes(found, codes, len(encoded.dictionary))
                self._combinations.append(np.unique(together[together >= 0]))
                found = self._combine_codes(found, codes, len(self._dictionaries) - 1)
        assert found is not None
        return found

    def _combine_codes(self, codes: RowIndices, more: RowIndices, number: int) -> RowIndices:
        together = _pack_codes(codes, more, len(self._dictionaries[number]))
        known = self._combinations[number - 1]
        places, is_known = find_positions(together, known)
        return np.where(is_known & (together >= 0), places, -1)


def _pack_codes(codes: RowIndices, more: RowIndices, size: int) -> RowIndices:
    return np.where((codes >= 0) & (more >= 0), codes * size + more, -1)


def _build_equality(left: Expr, right: Expr, root: str) -> Equality | None:
    types = (left.type, right.type)
    kinds = [
        comparable_type_of(arrow_type_of(each)) for each in types if isinstance(each, PropertyType)
    ]
    if pa.types.is_nested(kinds[0]):
        return None
    if kinds[0] == kinds[1]:
        list_type = _list_type_of(right, root)
        return Equality(left, right, _lookup_type_of(kinds[0]), is_exact=True, list_type=list_type)
    if not all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in kinds):
        return None
    # Equal numbers are equal when rounded too.
    return Equality(left, right, pa.float64(), is_exact=False)


def _list_type_of(expr: Expr, root: str) -> PropertyType | None:
    """The type of a list of the values of a property of one variable."""
    if not isinstance(expr, PropertyValue) or expr.variable != root:
        return None
    scalar = expr.type.scalar
    return None if scalar in (None, Scalar.BOOL) else PropertyType(ListType(scalar))


def _lookup_type_of(kind: pa.DataType) -> pa.DataType:
    return pa.int8() if pa.types.is_boolean(kind) else kind


def _compute_keys(
    expr: Expr, context: ExecutionContext, batch: Batch, kind: pa.DataType
) -> pa.Array:
    """Values to look up: neither null nor NaN equals anything, and there is one zero."""
    found = evaluate(expr, context.rows_of(batch), context.params)
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, batch.num_rows)
    values: Values = flatten_chunks(to_comparable(found))
    if values.type != kind:
        values = values.cast(kind, safe=False)
    if pa.types.is_floating(kind):
        numbers = to_numpy(values) + kind.to_pandas_dtype()(0)
        is_unknown = np.isnan(numbers) | to_numpy(values.is_null())
        values = pa.array(numbers, kind, mask=is_unknown)
    return values
