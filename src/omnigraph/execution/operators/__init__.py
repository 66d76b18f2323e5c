"""Patterns: chains of operators to rows of bound variables.

In: a chain of scans, traversals, filters, blocks and ranks, and a reading (a source of nodes and
edges by number, parameters, a budget). Out: a batch, or a stream of them. Guarantee: the rows are
those of the plan, whatever the source; memory is asked for before it is taken; time and
cancellation are looked at between morsels.

`run` streams rows through the steps that `build` makes of operators. `components` scans, and joins
what no traversal connects, by `join_keys`; `expand` walks to new nodes and `closing` between bound
ones, both over `hops`; `conditions` tests the nodes that are reached; `blocks` are correlated
patterns. `steps` says what a step is; `rows` is what all of them do with
rows.
"""
