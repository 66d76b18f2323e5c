"""Physical operators: they turn a pattern into rows of bound variables, and rows into a result.

In: an ordered pattern and an `ExecutionContext`. Out: a batch of rows, groups, or a result table.
Guarantee: the rows are those of the logical plan, whatever the source; memory is reserved before it
is allocated; time and cancellation are checked between morsels.

    pattern_executor       builds the operators of a pattern and streams morsels through them
    scan_operator          scans, look-ups by id, and hash joins of unconnected components
    join_keys              the keys of those joins
    expand_operator        traversals to new nodes, and between bound nodes
    traversal_hops         one hop over several edge types, or several hops by distance
    filter_operator        conditions on rows and on nodes, and the interface of an operator
    node_guard             nodes that an operator meets on its way, and may not pass
    semi_join_operator     correlated blocks: `exists`, `not`, `count`
    lateral_operator       blocks whose variables are kept: `optional`, `each`
    value_operators        the items of lists, and values that are bound to variables
    table_operator         table functions
    enumerate_operator     on whole types: enumerates only the variables that the result needs
    factorize_operator     weights of nodes for the variables that are not enumerated
    neighbour_sums         sums and extremes over the neighbours of every node
    checked_ints           counts and sums as exact integers that do not wrap
    result_executor        the steps after the pattern, in order
    group_operator         groups and aggregates, of values or of weights
    sort_operator          rows in the order of keys
    page_operator          ordered rows after a position
    row_keys               the integers that rows are grouped and sorted by
    stage_operator         what a stage carries on, and reads that are combined
    project_operator       the columns of the result
    graph_projection       the nodes and edges of rows, for `return graph`
    profiler               rows and time of each step, for `explain`
"""
