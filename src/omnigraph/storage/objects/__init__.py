"""Objects by path: one contract for a local directory, process memory and S3.

In: a path and bytes. Out: bytes and listings. Guarantee: an object is written once and as a whole;
`put_new` has exactly one winner per path; on a durable local store an acknowledged object survives
a power loss.

    object_store    the contract, and how a store is opened
    layout          every path that a graph writes
    local_store     a directory: hard links and fsync
    remote_store    process memory and S3, through obstore
    s3_options      how S3 is reached: options and the AWS_* environment
    advisory_lock   a lock between the local writers of one folder; correctness does not need it
    digests         digests of bytes and files
    disk_reserve    room on a local disk for a clean-up
    source_files    files of others, from which a graph is loaded
    faults          crashes, failures and lost acknowledgements at the nth durable step
"""
