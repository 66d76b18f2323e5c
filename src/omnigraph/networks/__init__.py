"""A snapshot as a graph of another library, in memory.

In: a view, and the types that are wanted. Out: an object of the library. Guarantee: every node and
edge of the types is in it, and the ends of edges whatever their types are; a library that is not
installed is a `LibraryMissingError` with the command that installs it.

    numbered_graph    nodes numbered from 0, edges as pairs of numbers, properties as columns
    networkx_graph    networkx
    rustworkx_graph   rustworkx
    igraph_graph      igraph
    pyg_graph         PyTorch Geometric
"""
