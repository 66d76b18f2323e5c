"""The end of a read: rows of bound variables become groups, an order, and result columns.

In: a plan, and the rows of its pattern by numbers. Out: a `Result`. Guarantee: the order is total,
sums are exact, and a value is fetched only for the rows whose order, group or result needs it.

    split       where the pattern of a plan ends, and the steps after it
    finish      the steps, one after the other
    grouped     rows to groups, and their aggregates
    ordering    what rows and groups are sorted by
    columns     rows to result columns
    keys        rows to the integers that they are grouped and sorted by
    values      the values of expressions at rows
"""

from omnigraph.execution.tail.finish import finish_rows
from omnigraph.execution.tail.grouped import GroupedRows
from omnigraph.execution.tail.split import ResultStep, SplitPlan, split_plan

__all__ = ["GroupedRows", "ResultStep", "SplitPlan", "finish_rows", "split_plan"]
