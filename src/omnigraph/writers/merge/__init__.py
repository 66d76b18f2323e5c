"""Merges: what one line of commits changed, brought into another, as one transaction.

In: views of a base, of ours (the target) and of theirs (the source). Out: a change of the target
with everything it depends on, or the conflicts of both sides. Guarantee: only what theirs changed
since the base is looked at; values decide, never copies; what is published is valid as a whole. A
merge, a cherry-pick and a revert differ in nothing but their base and their source.

    wording      what is said of conflicts of a merge, a revert or a cherry-pick
    sides        the three views, and which of them lie on one line
    schemas      the schema of the merged state, and where its columns lie on each side
    preference   which side wins in conflicts of which kind
    verdicts     the row rules: what becomes of every entity that theirs changed
    changes      verdicts as a change of the target; tables that can be adopted as they are
    forwards     fast-forwards whose change sets are known without a look at rows
    images       entities in conflict, on all three sides
    holders      who holds a unique value that both sides want
    foreseen     ours under the merged schema, before anything is written
    conflicts    row conflicts and broken rules, as one list
    three_way    all of it, from three views to a merged change
    publication  from a merged change to a transaction
"""
