"""The type checker of `.gq`.

In: the syntax tree of one query and a catalog. Out: a `typed_reads.CheckedQuery`, or None when
there are errors. Guarantee: every error of the query is reported once, at the name or expression
that is wrong; nothing is reported about what depends on it.

    query_checker       one query: parameters, then its body
    check_context       the catalog, the parameters and the collector
    check_patterns      blocks of clauses, and bindings
    check_type_sets     which types a binding means, and what all of them have
    check_type_tests    `$v is Type`
    check_set_traversals  traversals from and to variables of several types
    ambiguous_clauses   clauses whose meaning depends on the schema
    clause_order        filters and values after the clauses that bind what they read
    open_walks          paths and hops without a maximum and without a narrow end
    check_laterals      blocks whose variables can be seen after them
    check_blocks        blocks in expressions
    check_values        names for values, and the items of lists
    check_table_calls   calls of table functions, and the variables for their columns
    variable_scope      variables and their visibility; access to properties and system fields
    check_traversals    ends, edge types with directions, hop bounds, unconnected groups
    check_expressions   operators over the leaves of a position, and constants for properties
    check_operators     comparisons, text tests, membership, null tests, Booleans
    check_functions     which signature a call has, and the type of its result
    check_constant_arguments  patterns, units and lengths of vectors among the arguments of calls
    check_literals      literals, and their conversion to the compared type
    check_search        text predicates and rank calls
    check_nearest       what vectors are near to, and by which metric
    check_aggregates    aggregates, and what is computed over them
    check_returns       the items of `return`
    check_graphs        the items of `return graph`
    check_having        the conditions of `having`
    check_order         the keys of `order`
    check_pages         `after` and `total`
    check_reads         a pattern with its items and order
    check_stages        what `with` carries on, and reads that are combined
    check_assignments   what a mutation assigns to properties and ends
    check_own_fields    what a value or a condition reads of the entity that is written
    check_actions       what is written for the rows of a `match`
    check_row_loops     lists of records, and what is written for each record
    check_mutations     the statements of a mutation
"""

from omnigraph.query.check.query_checker import check_query

__all__ = ["check_query"]
