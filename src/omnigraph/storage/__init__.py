"""Where a graph's bytes live: objects by path, and tables by pinned version.

In: the address of a graph, bytes, and Arrow data. Out: objects, listings, pins and Arrow data.
Guarantee: an object is seen whole or not at all; one caller creates a path; a table version never
changes; an acknowledged write on a durable local store survives a power loss; and whatever a failed
or dead writer leaves behind cannot be seen. Errors are `StorageError` (it did not happen),
`StorageRefused` (it will not, until something changes) and `StorageUnknown` (it may have happened).

    paths              what the path of an object may be
    layout             every path a graph writes
    objects            the contract of an object store, and how to open one
    local_objects      a directory: hard links and fsync
    empty_folders      what deletions leave of folders whose names are used once
    remote_objects     process memory and S3, through obstore
    source_files       files of others, to be loaded from
    s3_options         how S3 is reached: options and the AWS_* environment
    tables             every effect on a table, as a detached Lance version
    pins               what the layers above hold of a table: a version, and rows nobody sees yet
    handles            open versions, in a bounded cache
    incoming           rows checked against the schema of their table
    blobs              binary columns as Lance stores them
    fragments          new fragments with unused ids, old ones with dead rows
    digests, sealing   digests of bytes, and names of files that carry them
    verification       files compared with their digests before they are read
    compaction_files   joined fragments, replayed on a newer version
    indexes            index segments over a version
    index_files        index segments, committed on a newer version
    disk               fsync of what Lance writes
    table, row_ids     reading one version
    references         every object a version needs
    linear             what was written to a table behind the graph's back
    lance_steps        failures of Lance as failures of ours
    reasons            what the clients say about failures
    faults             crashes, failures and lost acknowledgements at the nth durable step
"""

from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import Objects, open_objects, require_exclusive_puts
from omnigraph.storage.tables.fragment_compaction import Compacted, Compaction
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.storage.tables.table_reader import Table

__all__ = [
    "Compacted",
    "Compaction",
    "Entry",
    "Objects",
    "Pin",
    "Staged",
    "Table",
    "Tables",
    "open_objects",
    "require_exclusive_puts",
]
