"""The garbage collector: releases old commits and removes every object that nothing refers to.

In: a policy, which states how much of each branch is kept, and a grace. Out: a report of what was
removed, or would be. Guarantee: nothing that a live branch, a tag or a merge between live branches
needs is removed, whatever other processes write in the meantime; what was superseded, deleted or
written within the grace stays; a crash at any step leaves a complete graph.

Objects are listed before the roots are read: whatever is published after the listing is referred to
by a root or is not in the list. What is released is recorded (`retention_floors`) before the roots
are read for the last time, also for deleted branches. So a branch, a tag or a lease that is created
in the meantime is either seen here, or sees that its commit was released. Before a file is removed
that a running write may publish, every live branch gets a fence (`sweeps`): a write that was paused
since before the listing loses its put. Clocks decide what is removed, but never whether a commit
keeps what it refers to.

    collector          lists every stored object with its kind, plans, traces and removes
    gc_roots           the branches and tags that retain commits, how far back, and the policy
    merge_ancestry     the commits that merges between live branches need
    gc_plan            every commit that is kept, what is kept of it, and the objects it needs
"""
