"""The parts of a check: each looks at one kind of thing and reports what is wrong with it.

In: the stored objects and tables of a graph. Out: problems, and notices of what is harmless.
Guarantee: nothing is written, nothing is taken from a cache, and damage of any kind is a problem
that names its place, never an error; only an interrupt ends a check.

    problems      what was found, with its place
    damage        which file of a damaged table is to blame
    numbers       what the numbers of types and properties mean in all schemas
    schemas       schema objects and the types they declare
    refs          branch names and their events, and streams that no name leads to
    streams       records in a row: contiguous, chained, folded; checkpoints and hints
    pins          the tables of every commit: there, with their rows, columns and files
    rows          the rows of a pinned table, read completely
    entities      ids, keys, values, uniques, ends and cardinalities at one snapshot
    moved         the rows that a commit inserted, deleted and wrote again
    marks         the marks of what a commit moved
    change_sets   what a commit says it changed, compared with what it changed
    digests       every file as it was written
"""
