"""Writes: a load, a mutation, a migration or a merge, validated, as one transaction.

In: records or statements, and a view of what is committed. Out: a transaction for the publisher,
with everything that it depends on. Guarantee: nothing is visible before it is published; a write
that breaks a rule of the schema is refused with its violations, and leaves no rows in the graph.

    inputs             records, files and frames as rows by type
    load_records       those rows as a change, with the id of every entity
    key_violations     the messages about ids and keys that cannot be used
    mutate             the statements of a query as a change
    assignments        the constants of a statement as property values
    computed_values    values that a statement computes from rows, as columns
    default_values     what new entities get that are given no value of a property
    filled_columns     the same for entities that exist, when a schema changes
    present_entities   patches of entities that exist, and of no others
    value_faults       where an assigned expression has no value
    pattern_rows       the rows of a pattern on the image at the start of a statement
    pattern_writes     what actions write for those rows, column by column
    record_writes      the entities that records name by a key
    deletions          what consecutive deletions of a mutation end
    matching_rows      the committed rows that the conditions of a statement match
    single_rows        what statements assign to single entities
    pending_rows       the rows that earlier statements of a mutation wrote
    committed_values   the values of committed rows that a write keeps
    schema_migration   a new schema as a transaction
    merge              the changes of another line of commits, as a transaction on this one
    graph_change       what a write does to each type, as data
    prepare            a change to a transaction, by the modules below
    vector_fill        the vectors of texts that are written: kept, cleared or filled
    pending_vectors    which texts wait for a vector, and the commit that brings them
    existing_rows      which entities are committed, which end, and the edges at them
    key_cache          the ids of busy types in memory
    validate           the rules of the schema, on the state after the write
    row_staging        large row sets, written ahead of their commit
    maintain           indexes and compaction, which change no entity
"""
