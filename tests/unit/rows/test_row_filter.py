"""Rows that satisfy conditions: however many are left after each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.ast import CompareOp
from omnigraph.query.typed_tree import Compare, Constant, Expr, PropertyValue, SystemName
from omnigraph.rows.evaluator import Params
from omnigraph.rows.row_filter import compute_mask
from omnigraph.schema.property_types import Scalar, make_scalar_type

I64 = make_scalar_type(Scalar.I64)


@dataclass(frozen=True)
class Numbers:
    """Rows of numbers by name; `answered` are those that need no values."""

    columns: dict[str, npt.NDArray[np.int64]]
    answered: frozenset[str] = frozenset()
    taken: list[int] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def get_property(self, _variable: str, name: str) -> pa.ChunkedArray:
        assert name not in self.answered
        return pa.chunked_array([pa.array(self.columns[name])])

    def get_system_field(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        raise AssertionError(name)

    def evaluate_directly(self, condition: Expr, _params: Params) -> npt.NDArray[np.bool_] | None:
        assert isinstance(condition, Compare)
        assert isinstance(condition.left, PropertyValue)
        assert isinstance(condition.right, Constant)
        name, bound = condition.left.property, condition.right.value
        assert isinstance(bound, int)
        if name not in self.answered:
            return None
        mask: npt.NDArray[np.bool_] = np.less(self.columns[name], bound)
        return mask

    def take(self, places: npt.NDArray[np.int64]) -> Numbers:
        self.taken.append(len(places))
        some = {name: values[places] for name, values in self.columns.items()}
        return Numbers(some, self.answered, self.taken)


def below(name: str, bound: int) -> Expr:
    return Compare(CompareOp.LT, PropertyValue("v", name, I64), Constant(bound, I64))


@given(st.integers(0, 2**32), st.lists(st.integers(0, 100), min_size=1, max_size=5), st.booleans())
def test_rows_satisfy_every_condition(seed: int, bounds: list[int], is_direct: bool) -> None:
    random = np.random.default_rng(seed)
    names = [f"n{place}" for place in range(len(bounds))]
    columns = {name: random.integers(0, 100, 40) for name in names}
    answered = frozenset(names if is_direct else names[::2])
    among = random.random(40) < 0.7 if seed % 2 else None
    conditions = [below(*each) for each in zip(names, bounds, strict=True)]
    found = compute_mask(conditions, Numbers(columns, answered), {}, among=among)
    expected = np.ones(40, np.bool_) if among is None else among
    for name, bound in zip(names, bounds, strict=True):
        expected = expected & (columns[name] < bound)
    assert found.tolist() == expected.tolist()


def test_few_rows_are_tested_alone_by_what_follows() -> None:
    rows = Numbers({"a": np.arange(100), "b": np.arange(100), "c": np.arange(100)})
    found = compute_mask([below("a", 20), below("b", 15), below("c", 2)], rows, {})
    assert np.flatnonzero(found).tolist() == [0, 1]
    assert rows.taken == [20]


@pytest.mark.parametrize("count", [0, 3])
def test_without_a_condition_every_row_will_do(count: int) -> None:
    rows = Numbers({"a": np.arange(count)})
    assert compute_mask([], rows, {}).tolist() == [True] * count
