"""Merges: what one line of commits changed, applied to another, as one transaction.

In: views of a base, of ours (the target) and of theirs (the source). Out: a change of the target
with everything it depends on, or the conflicts of both sides. Guarantee: only what theirs changed
since the base is read; values decide, not copies; the published state is valid as a whole. A merge,
a cherry-pick and a revert differ only in their base and their source.

    three_way         the whole way from three views to a merged change, and fast-forwards
    merge_sides       the three views, and which of them are on one line
    merged_schema     the schema of the merged state, and its columns on each side
    located_rows      where entities lie on a side, and whether two sides have them alike
    row_rules         what becomes of every entity that theirs changed, as a change of the target
    property_rules    what becomes of each property of an entity that both sides changed
    counted_bases     where the counters of both sides stood, also after merges crosswise
    joined_values     the merge rules: one value of two
    conflict_kinds    the kinds of conflicts, the preferred side of each, and their messages
    conflict_decisions  decisions on conflicts as lines and as data
    decided_sides     whose state or value decisions take
    decided_rows      values that no side has, and deletions, in the change of a merge
    merge_choices     what the caller decides: by property or entity, and whose side counts
    merge_conflicts   schema, row and rule conflicts as one list, with the states of all sides
    tightened_rules   entities of one side that contradict a rule which the other side added
    merge_commit      from a merged change to a transaction, or to its conflicts
"""
