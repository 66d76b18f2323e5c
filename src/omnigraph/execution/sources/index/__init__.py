"""Look-ups: a snapshot by numbers, of which only what a query meets is read.

In: a view. Out: a `source.Source` with the same answers as the topology. Nothing whole is loaded
unless a query asks for everything: numbers are given to nodes and edges in the order in which the
query meets them, tables are asked by id, by row and by the ends of edges, and what was read stays
until the query ends. So the cost of a selective read follows its answer, given the BTREE indexes
on ids and ends; without them a look-up reads one column of the table.

Modules in order of control flow: `source` (the source), `nodes` and `edges` (one type each),
`adjacency` (the edges at the nodes that were asked about), `entities` (what nodes and edges have
in common), `fetched` (values that were read), `numbering` (numbers for ids and for rows).
"""
