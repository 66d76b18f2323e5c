"""Graph algorithms: what the table functions of queries compute.

In: the nodes and edges of some types, from the topology. Out: columns of equal length, one row for
each node, pair of nodes, or source and node. Guarantee: the nodes of an `EdgeGraph` are numbered in
the order of type and id, and all sums follow these numbers, so that a commit gives the same bits
every time, however its types came into memory. Work is done on whole arrays; the budget of the
query is checked between rounds, none of which takes longer than a fraction of a second on the
edges of `ARCS_AT_ONCE`.

    edge_graph             the edges of a selection as arrays and as sparse matrices
    graph_walks            neighbours of many nodes at once, in chunks of a bounded size
    node_degrees           degrees
    pagerank               pagerank
    connected_components   components
    label_propagation      communities by labels
    louvain                communities by modularity
    triangle_counts        triangles
    core_numbers           cores
    distance_blocks        distances from many sources at once, in edges or by weight
    centrality             betweenness, closeness
    neighbour_similarity   similar
    selected_graph         the nodes and edges of a call, from the source of a read
    table_columns          the columns of a call, from its options and its graph
"""
