"""The index source: a snapshot by number, of which only what a query touches is read.

In: a view and a budget. Out: a `graph_source.Source`. Guarantee: the answers are those of the
topology. No whole type is loaded unless a query reads all of it: numbers are assigned in the order
in which the query reaches entities, and what was read stays until the query ends. The cost of a
selective read follows its answer where ids and edge ends have BTREE indexes; without them a look-up
scans one column of the table.

    index_source       the source, and the nodes and edges of one type
    lazy_adjacency     the edges at the nodes that were reached, in one direction
    type_reader        the table of one type, and a cache of its columns
    lookup_numbering   numbers for ids and for rows
"""
