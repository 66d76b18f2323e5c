"""The topology: whole types in memory, with dense numbers, columns and sorted adjacency lists.

In: a view, and what is cached of older versions of its tables. Out: a `Source` whose numbers are
array positions. Guarantee: a number means the same entity until the query ends, also if arrays are
evicted or rebuilt in the meantime; arrays with different numberings are never combined.

    topology_source     a snapshot as a source
    topology_nodes      the nodes of one type
    topology_edges      the edges of one type, with neighbours in both directions
    topology_entities   what both have: ids, ranks and properties
    topology_filter     which entities satisfy conditions
    topology_columns    the values of a column in the order of numbers
    adjacency_lists     the neighbours of every node, and every edge
    changed_adjacency   adjacency lists with a few changes
    edge_endpoints      the node numbers at the ends of edges
    text_arrays         texts by number, numbers by text, and their order
    text_index          a hash table of texts
    topology_rows       the rows of one table version, each with its number
    topology_refresh    the rows of a later version, from what changed
    entity_numbering    which numbering an array belongs to
    append_array        arrays that versions share: appended in place, a few elements replaced
    memory_cache        the memory bound on all arrays, with eviction
    cache_files         the same arrays in files that outlive the process
"""
