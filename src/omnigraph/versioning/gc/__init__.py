"""The collector: lets go of old commits and removes every object that nothing refers to.

In: a policy, which says how much of each branch is kept, and a grace. Out: a report of what went,
or would go. Guarantee: nothing that a live branch, a tag or a merge between live branches needs is
removed, whatever other processes write meanwhile; what was superseded, deleted or written less than
the grace ago stays; a crash at any step leaves a graph that is whole.

Objects are listed first and roots are read second: whatever is published after the listing is
referred to by a root, or is not in the list. What is let go is stated (`floors`) before the roots
are read for the last time, also of branches that were deleted, so that a branch, a tag or a hold
that is created meanwhile is either seen here, or sees that its commit was let go. Before a file is
removed that a write under way might publish, every live branch gets a fence (`sweeps`): a write
that was stopped since before the listing loses its put. Clocks decide what is removed, and never
whether a commit keeps what it refers to.

    policy      how much of a branch is kept
    lines       the branches and tags that hold commits, and how far back each of them reaches
    ancestry    the commits that merges between live branches need
    plan        every commit that is kept, and what is kept of it
    trace       every object that the kept commits need
    inventory   every object there is, and what kind of object it is
    run         list, plan, trace, remove
"""
