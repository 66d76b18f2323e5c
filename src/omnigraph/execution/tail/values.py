"""The values of expressions at rows."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.exact import Values
from omnigraph.execution.expressions import evaluate
from omnigraph.execution.reading import ExecutionContext
from omnigraph.query import typed
from omnigraph.query.typed import Expr


def evaluate_rows(expr: Expr, batch: Batch, reading: ExecutionContext) -> Values:
    """A value for each row; a node is its id, and a score is the one its rank gave the row."""
    if isinstance(expr, typed.Score):
        assert batch.scores is not None, "a rank comes before all that reads its scores"
        return batch.scores
    found = evaluate(expr, reading.rows_of(batch), reading.params)
    if not isinstance(found, pa.Scalar):
        return found
    # Arrow repeats a vector once or more, but not zero times.
    return pa.repeat(found, max(batch.num_rows, 1)).slice(0, batch.num_rows)
