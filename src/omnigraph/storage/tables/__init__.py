"""Tables on Lance: every change is a detached version that only its pin reaches.

In: pins, Arrow rows and row ids. Out: pins, rows, and the files that a version refers to.
Guarantee: a pinned version never changes; a failed write leaves only files that no version refers
to; the digests of files are compared before they are read, within a bound. Only this package
imports Lance.

    lance_tables          the gateway: create, append, replace, overwrite, add columns
    pins                  a pinned version, and rows that are written but in no version
    table_handles         open versions, in a bounded cache
    lance_errors          failures of Lance as errors of ours
    blob_columns          binary columns as Lance stores them
    stored_rows           rows in the form that Lance writes
    added_columns         columns at the end, null or made of others
    fragments             new fragments with unused ids, old fragments with deleted rows
    deletion_vectors      deleted rows per fragment
    fsync                 durability of the files that Lance writes
    file_digests          file names that carry digests, and their verification
    fragment_compaction   joins small fragments, and replays this on a newer version
    table_indexes         index segments over a version
    recent_writes         the rows that this process wrote recently, for its readers
    table_reader          reads one version
    row_ids               rows by row id
    table_manifests       every object that a version needs, and the linear history of a table
"""
