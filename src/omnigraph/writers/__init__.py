"""Writes: what a load, a mutation, a migration or a merge does, validated, as one transaction.

In: records or statements, and a view of what is committed. Out: a transaction for the publisher,
with everything that it depends on. Guarantee: nothing is visible before it is published; a write
that breaks a rule of the schema is refused with its violations, and leaves no rows behind.

    inputs      records, files and frames as rows by type
    load        those rows as a change, with the id of every entity
    refusals    what is said of ids and keys that cannot stand
    bulk        loads of any size, in units
    mutate      the statements of a query as a change; `mutations` are its parts
    migrate     a new schema as a transaction of its own
    merge       what another line of commits changed, as a transaction on this one
    maintain    indexes and joined fragments, which change no entity
    change      what a write does to each type, as data
    prepare     from a change to a transaction, by the modules below
    keys        the ids of busy types in memory
    limits      how much is listed one by one
    committed   who exists, who ends, and what is at whom
    absence     strict inserts of entities that exist
    validate    the rules of the schema, on the image after the write
    staging     many rows, written ahead of their commit
"""
