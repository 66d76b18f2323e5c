"""The optimizer: the order in which a pattern is matched, and which variables are not enumerated.

In: a read plan and an `ExecutionContext`. Out: its result, or an explanation of the run. Guarantee:
the answer is that of the plan as written, whatever the order, the statistics and the source.

    read_planner       caches analyzed plans and runs each in the cheapest way
    plan_split         where the pattern of a plan ends, the steps after it, and what it reads
    access_path        which source a plan reads from, and when types are loaded
    pattern_graph      the pattern as variables, traversals and tests, without an order
    aggregation_plan   which variables and values an aggregate needs
    factor_trees       the variables that are not enumerated, as trees
    graph_statistics   counts and estimates of nodes, edges and degrees
    join_order         the cheapest start, and the order of traversals after it
    physical_plan      all of these as a physical plan, and when it is outdated
    explain_plan       the operators of a run with access paths, rows and times
"""
