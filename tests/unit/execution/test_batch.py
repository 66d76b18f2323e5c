"""What rows keep when they are weighed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch, multiply_weights
from omnigraph.execution.operators.checked_ints import CheckedInts, Weights


def test_weighed_rows_keep_all_that_they_bind() -> None:
    rows = Batch(
        3,
        {"a": np.arange(3, dtype=np.int32)},
        outer=np.array([5, 6, 7]),
        scores=pa.array([0.5, 0.25, 0.125]),
        values={"x": pa.array(["p", "q", "r"])},
    )
    more = Weights(CheckedInts(np.array([2, 0, 3]), 3))
    found = multiply_weights(rows, more)
    assert found.nodes["a"].tolist() == [0, 2]
    assert found.outer is not None
    assert found.outer.tolist() == [5, 7]
    assert found.scores is not None
    assert found.scores.to_pylist() == [0.5, 0.125]
    assert found.values["x"].to_pylist() == ["p", "r"]
    assert found.weights is not None
    assert found.weights.counts is not None
    assert found.weights.counts.values.tolist() == [2, 3]
