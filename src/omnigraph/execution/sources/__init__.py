"""Sources: the nodes and edges of a snapshot by number, for the operators.

In: a view, and the types that a plan reads. Out: a `Source`. Guarantee: every source gives the same
answers; within one source a number means one node or edge until the query ends. A source differs
only in cost.

    source_cache   the sources of one graph, shared by its reads
    graph_source   the interface of a source
    topology       whole types in memory: columns and adjacency lists
    index          only what a query touches, read through the indexes of the tables
    table_source   the nodes of one type, scanned from their table
    type_set_source  nodes of several types by one number, over another source
"""
