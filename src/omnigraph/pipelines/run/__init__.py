"""Runs: when a pipeline runs, what it reads, and what it commits.

In: a definition, options and the ledger. Out: one commit per target, and a `Run`. Guarantee: the
slot and the positions of all sources are in the ledger before anything is written; a process that
ends anywhere leaves each target untouched or complete, and the next run of the slot makes only the
commits that are missing.

    scheduler             runs the pipelines whose schedule is due
    backfill              runs the slots of a time that has passed
    stream_run            runs a pipeline for each batch of new files, by Structured Streaming
    pipeline_run          one run, from its secrets to its last event
    run_slot              which slot a run stands for, and what it reads
    direct_rules      the rules of a target that need no Spark SQL, and what they read
    target_attempt        the commit of one target, made once in any number of attempts
    run_review            runs whose branches wait for review, and their merges
    dlt_destination       runs a pipeline for each load package of dlt
    plan_sample           what rules make of a few records
    pipeline_inspection   plans, states and past runs, without a run
"""
