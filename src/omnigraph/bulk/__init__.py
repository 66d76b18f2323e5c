"""Bulk loads: an input of any size is cut into splits, which run as tasks here or on Spark.

In: files, staged tables or texts, and a view. Out: one transaction for the publisher. Guarantee:
the result and the error messages of a load in one process, for an input of any size. A task may run
more than once: its rows are not visible until the driver, which accepts one result of each task,
commits them.

    bulk_load           one load, from its source to its transaction
    bulk_sources        what a load reads; tables and texts are staged beside the graph
    mapped_records      records that rules map to rows while they are read
    splits              file ranges and input splits, and the graph as a worker opens it
    task_runner         the interface that runs tasks, and the runner that uses local threads
    task_tracking       which tasks are running, what they wrote, and the objects they exchange
    split_writer        the task that reads, checks and writes a split, and stores its key hashes
    split_reader        reads a split with the same readers as every other load
    split_groups        one task for the splits whose rules map the same records
    row_checks          assigns ids, and removes rows that break a rule on their own
    hash_files          sorted files of hashes of ids and key tuples
    staged_load         the results of all splits, and where each record is
    constraint_checks   compares a staged load with itself and with the committed tables, by hash
    key_join            its tasks: duplicate, missing and shared keys, and edge counts
    load_deletions      what a load ends besides what it writes: named entities, missing ones
    bulk_violations     reads suspected rows back and validates them by value
    bulk_rejects        rejected records, as an error and as a Parquet file
    bulk_commit         the transaction of a valid load
"""
