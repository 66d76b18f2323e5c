"""Read plans, from the optimizer to the result.

In: a view (a snapshot with its schema and tables), a read plan, parameters and options. Out: a
`Result` in Arrow, or an explanation of the run. Guarantee: an answer depends on the snapshot alone,
not on the order of rows in files, on an index, on a cache or on the access path; memory, time and
cancellation are bounded by the budget of the request.

    executor            runs and explains plans: requirements, access path, plan
    admission           short reads run one at a time, long reads and searches beside them
    query_budget        the bounds and options of one request
    execution_context   what every operator of one read is given
    sources             nodes and edges by number: whole types, index look-ups, or one table
    optimizer           join order, factorization and the physical plan
    operators           the physical operators, over batches of rows
    algorithms          graph algorithms, on the arrays of whole types
    batch               rows of bound variables, as numbers; cut, joined, weighed and pruned
    sorted_arrays       sets of numbers and of pairs of numbers
    search              text predicates, BM25, nearest vectors and ranks
    type_scan           rows of one type that satisfy conditions, also for writers and diffs
    result              the result, and its forms
"""
