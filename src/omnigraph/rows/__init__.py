"""How entities lie in tables, and how columns of their values are evaluated, compared and encoded.

In: a snapshot with its schema and tables, Arrow columns, and typed expressions. Out: views, Arrow
columns, ids, hashes, filters, JSON. Guarantee: three-valued logic and exact arithmetic: no number
is rounded because another has a different type, and a sum is rounded once. An answer does not
depend on how rows are split into files or batches. Reads, writers, diffs and Spark tasks share
these modules.

    view                a snapshot with its schema and tables, open for reading
    columns             the columns of a type in its table
    entity_ids          ids from keys, and generated ids
    value_conversion    values of a property as another type keeps them
    hashing             hashes of texts
    id_predicates       the ids that conditions restrict an answer to
    pushdown            conditions to the SQL filter of a table
    evaluator           typed expressions over columns
    row_filter          which rows satisfy conditions, over any provider of columns
    comparison          comparison and membership by exact value
    text_predicates     `contains` and prefixes
    text_search         which texts have words, phrases and beginnings
    text_analysis       texts to tokens
    vocabulary          the distinct tokens of a field, by text or edit distance
    row_order           the order of values, as sort codes
    row_position        positions in an order of rows
    group_aggregates    groups of rows and their aggregates
    whole_aggregates    aggregates that need all rows of a group at once
    exact_sums          sums and means that are rounded once
    result_types        the Arrow types of results
    json_encoding       values as JSON text
    json_export         the entities of a view as JSON lines that a load reads back
    type_dataset        one type as an Arrow dataset, for DuckDB, polars and others
"""
