"""The check of a graph: each module verifies one kind of stored object.

In: the stored objects and tables of a graph. Out: problems, and notices of what is harmless.
Guarantee: nothing is written, and no cache is used. Damage of any kind is reported as a problem
with its place and does not raise an error; only an interrupt ends a check.

    graph_check        the whole check, in order, and its report
    check_problems     problems and notices as they are found
    schema_check       schema objects, and that an identity means one thing in all schemas
    ref_check          branch names and their events, and streams without a name
    stream_check       records: contiguous, chained, folded; checkpoints, hints and times
    pin_check          the tables of every commit: present, with their rows, columns and digests
    checked_reads      rows of a pinned table, and which file is damaged if a read fails
    entity_check       ids, keys, values, unique groups, ends and cardinalities at one snapshot
    change_set_check   what a commit states that it changed, against what it changed
    damage_search      what is damaged, for a repair, and the commits that are whole
"""
