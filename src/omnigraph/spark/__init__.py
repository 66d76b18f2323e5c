"""Graphs on Spark: bulk work as tasks of a Spark session, on this machine or on a cluster.

In: a graph at a pinned snapshot, or data to bring into a branch. Out: DataFrames, files, or one
commit through the same transaction as every other write. Guarantee: executors write files that
nothing refers to until the driver commits, and an answer of each task counts once, so retried
and speculative tasks never show twice.

Modules, in order of control flow: `java` (which one, its start-up cache, made by `warming`),
`session` (the caller's, or ours, whose Java is started by `gateway`), `jobs` (the driver's side of
a job), `tasks` (the executors' side), `progress`, `cancelling`; `entry` (what `Graph.spark` is),
`scans` (pinned fragments, read by tasks), `read` and `frames` (DataFrames of types), `datasource`
(the same for SQL), `feed` (changes between commits), `export`, `maintenance`, `load` (bulk loads),
`query` (the read language).
"""
