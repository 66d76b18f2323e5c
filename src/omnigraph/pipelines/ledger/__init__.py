"""What the runs of a pipeline did, as append-only objects.

In: events of runs, and the commits of target branches. Out: runs folded from their events, and the
load that a target holds. Guarantee: an event is an object that is never replaced. Whether data was
written is decided by the records of the graph, by key; the ledger only speeds up the look-up.

    run_ledger    the events of runs, and the batches of followed sources
    run_liveness  heartbeats of runs, and fences before those that were given up
    idempotency   the keys of a target, the loads of a pipeline on a branch, and known outcomes
"""
