"""The parser of `.gq` texts: recursive descent, written by hand.

In: a text or bytes, and the mode. Out: a `ParsedFile`: the tree, its comments, and every diagnostic
of the text. Guarantee: any input ends in a tree or in errors, in linear time; a declaration with an
error is left out of the tree, so later passes do not report errors that follow from it.

    parse_files          settings lines, then queries or one statement
    parse_declarations   queries: header, parameters, annotations, mutations
    parse_parameters     declared parameters and their types
    parse_row_loops      statements for each record of a parameter
    parse_reads          stages, what is returned, and reads that are combined
    parse_pages          `after` and `total`
    parse_patterns       the clauses of `match`
    parse_table_calls    calls of table functions
    parse_type_sets      the types of a variable, and tests of them
    parse_expressions    expressions and calls
    parse_searches       text predicates, scores and ranks, and the options of calls
    parse_aggregates     aggregates, and the keys of `order`
    parse_literals       literals, variables and lists
    query_cursor         the cursor they share, with recovery after an error
"""

from omnigraph.query.parser.parse_files import ParsedFile, parse_query_file

__all__ = ["ParsedFile", "parse_query_file"]
