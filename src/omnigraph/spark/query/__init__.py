"""Read plans on Spark: the rows of a pattern as data frames, and their result.

In: a read plan, a view and parameters. Out: the same result that the local engine gives. Guarantee:
what an expression, a group or an order means is decided by our own code in the tasks; Spark only
brings rows together: it joins, tells apart, partitions and sorts by what our code made of them.

`run` is the way in, and `time_limit` its clock. `layout` says which columns hold what a plan binds,
and `wire` how our types pass through Spark. `pattern` makes frames (`frames`) of operators: of
nodes and edges read from `tables`, which test `conditions`, joined by `equalities`, `traversals`
and `blocks`. `tail` groups (`partials`), sorts and shows `rows`.
"""

from omnigraph.spark.query.spark_query import run_query

__all__ = ["run_query"]
