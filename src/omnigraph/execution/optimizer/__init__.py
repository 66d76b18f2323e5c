"""Planning: the order in which a pattern is matched, and what of it need not be matched at all.

In: a read plan and a reading. Out: its result, or an account of how it is found. Guarantee: the
answer is that of the plan as it was written, whatever the order, the statistics and the source.

`run` keeps plans with the order chosen for them and runs them. `graph` recovers the pattern of a
plan as variables and traversals, `aggregation` says what an aggregate needs of it, `statistics`
counts, `choice` finds the cheapest start, and `physical` puts this together. On whole types in
memory, `core` enumerates only the variables that are needed; what hangs from them (`trees`) becomes
numbers at their nodes: `weights`, by sums over `neighbours`, of `amounts` that never wrap, of
`values` of columns and of `blocks`. `rows` are both together, and `grouping` makes groups of them.
`bounded` goes several hops from one node, and `projection` shows few rows fast. `explain` tells the
operators of a run with their `access_paths`, and what a `watch` measured of them.
"""
