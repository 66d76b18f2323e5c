"""Whole types in memory: entities by dense numbers, neighbours in arrays.

In: a view, and what is known of older versions of its tables. Out: a `Source` whose numbers are
places in arrays. It guarantees that a number means the same entity for as long as a query runs,
whatever is given up or made again meanwhile, and that pieces with different numbers never meet.

Modules in order of control flow:
    source             a snapshot
    nodes, edges       one type each
    entities           what both have: ids, ranks, properties
    conditions         which entities satisfy conditions
    comparisons        those that compare a property with a constant
    columns            values in the order of numbers
    adjacency          neighbours, and every edge
    changed            the same after a few changes
    ends               the nodes at the ends of edges, from their ids
    texts, text_index
                       texts by number, numbers by text, and their order
    rows               which row has which number, and the pieces that were made of them
    extension          numbers of a later version
    changes            what happened between two versions
    numbering, numbered
                       who gave out numbers
    growing            arrays that grow without a copy, and in which a few elements differ
    memory             the bound on all of it
    piece, files       what outlives the process
"""
