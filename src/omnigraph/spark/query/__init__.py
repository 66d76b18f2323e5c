"""Read plans on Spark: the rows of a pattern as data frames, and their result.

In: a read plan, a view and parameters. Out: the result that the local engine gives. Guarantee: our
own code in the tasks decides what an expression, a group or an order means; Spark only joins,
deduplicates, partitions and sorts by values that this code computed.

    spark_query          runs a plan within its budget
    column_layout        which columns hold what a plan binds
    pattern_lowering     operators of the pattern to frames and joins, and correlated blocks
    query_frames         a frame, and the steps that its tasks still have to run
    table_scans          tables read by tasks, with conditions
    traversal_joins      traversals as joins
    result_stage         groups, order, limits and columns of the result
    partial_aggregates   aggregates in two steps
    whole_groups         aggregates that need all rows of a group in one task
    sort_encoding        what Spark sorts as we would
"""

from omnigraph.spark.query.spark_query import run_query

__all__ = ["run_query"]
