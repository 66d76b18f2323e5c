"""Graphs on Spark: bulk work as tasks of a Spark session, on this machine or on a cluster.

In: a graph at a pinned snapshot, or data for a branch. Out: DataFrames, files, or one commit
through the same transaction as every other write. Guarantee: executors write files that nothing
refers to until the driver commits; one result of each task counts, so retried and speculative tasks
have no visible effect.

    graph_api           what `Graph.spark` offers
    spark_session       the session of the caller, or one of our own
    java_runtime        the Java that Spark runs on, and its start-up cache
    java_warmup         the program that creates this cache
    spark_jobs          the driver's side of a job
    spark_tasks         the executors' side of a job
    job_cancellation    cancels jobs when their caller is interrupted
    spark_failures      failures of Spark as errors of ours
    spark_types         our types as Spark types
    type_scans          one type at one snapshot, read by tasks
    graph_frames        types and changes as DataFrames, and a graph as vertices and edges
    datasource          `format("omnigraph")`: what Spark calls
    datasource_options  its options, and errors as Spark passes them on
    datasource_feed     changes of a branch, for batches and streams
    datasource_writers  `df.write` and `df.writeStream`
    sql_conditions      SQL conditions and Spark filters, as tables evaluate them
    sql_analysis        the types of SQL expressions, or why they cannot be resolved
    query               the read language
    frame_load          bulk loads of DataFrames
    spark_maintenance   compaction and index builds by tasks
"""
